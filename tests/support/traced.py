"""Records of a trace that met several caches at several rates, without a study that ran."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

from studied import record

from kvopt.studies.record_lines import FILE, Record

PLACE = "/home/someone/logs/{}.json"
GRID = [(memory, rate) for memory in (100, 200, 400) for rate in (1, 2)]


def trace(name: str, policy: str, memory: int, rate: float, value: int | None) -> Record:
    """Return a record of a trace of ten requests that is met with a cache and at a rate."""
    return record(
        crc32(name.encode()) + 10 * memory + int(rate),
        policy,
        value,
        name=f"{name}.json",
        family=None,
        seed=None,
        requests=10,
        memory=memory,
        parameters={"memory": memory, "rate": rate, "file": PLACE.format(name)},
        upper=None if value is None else 800 * rate - memory,
        lower=None if value is None else 700 * rate - memory,
        certificate=None,
    )


def folder_of(place: Path, records: Iterable[Record], description: str | None = None) -> Path:
    """Write the folder of a study that found these records."""
    place.mkdir()
    (place / FILE).write_text("".join(json.dumps(each.to_json()) + "\n" for each in records))
    if description is not None:
        (place / "study.toml").write_text(description)
    return place


def traced(place: Path) -> Path:
    """Write the folder of a study of a trace, whose optimum is open by a tenth."""
    records = [
        trace("chat", policy, memory, rate, more * 1000 * int(rate) - memory)
        for memory, rate in GRID
        for policy, more in (("fcfs", 2), ("svf", 1))
    ]
    text = (
        'name = "test"\ntitle = "How much memory?"\nmodules = ["/home/someone/own.py"]\n'
        f'[[instances]]\nfile = "{PLACE.format("chat")}"\n'
    )
    return folder_of(place, records, text)
