"""Draws of a study as they are kept: found in folders, the better of two sides, packed, checked."""

from __future__ import annotations

import datetime
import json
import lzma
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from kvopt import verify
from kvopt.configurations.evaluation import evaluate
from kvopt.configurations.states import Knots, States
from kvopt.errors import InvalidInput
from kvopt.experiments.studies import Record
from kvopt.experiments.studies.records import lines_of
from kvopt.files.atomic import atomic_path
from kvopt.files.instances import instance_from_json
from kvopt.files.reading import parse_json, read_text
from kvopt.files.schedules import read_schedule
from kvopt.verify import MOST_STATED
from kvopt.version import __version__

_COARSE = 64
"""Denominator of the prices of states that are kept."""
_LOST = Fraction(1, 1000)
"""Share of a bound that rounding may cost: a width of 3% becomes one of 3.1%."""

Draw = dict[str, Any]
"""A line: records, their certificate, and how each side came about."""


# ----------------------------------------------------------------------------------- what was found


def draws_of(folder: Path) -> Iterator[Draw]:
    """Yield what a folder of a study holds of each draw that has a certificate."""
    by_draw: dict[str, dict[str, Record]] = {}
    for record in lines_of(folder):
        if record.policy is not None and record.certificate is not None:
            by_draw.setdefault(record.instance.hash, {})[record.policy] = record
    for mine in by_draw.values():
        first, *_ = mine.values()
        path = folder / str(first.certificate)
        if path.is_file():
            day = datetime.date.fromtimestamp(path.stat().st_mtime).isoformat()
            facts = {"version": first.versions["kvopt"], "date": day, "seconds": first.seconds}
            yield {
                "upper": {"by": first.found_by, **facts},
                "lower": {"by": first.bounded_by, **facts},
                "records": [record.to_json() for record in mine.values()],
                "certificate": json.loads(path.read_text()),
            }


def with_schedules(kept: Iterable[Draw], folder: Path, seconds: float) -> Iterator[Draw]:
    """Yield draws for which a folder has a better schedule, with this one."""
    if not folder.is_dir():
        raise InvalidInput("is no folder", file=str(folder))
    draws = {hash_of(draw): draw for draw in kept}
    for path in sorted(folder.glob("*.json")):
        draw = draws.get(_instance_named_in(path))
        if draw is None:
            continue
        schedule = read_schedule(path, instance_from_json(draw["certificate"]["instance"]))
        if schedule.objective < _value(draw, "upper"):
            day = datetime.date.fromtimestamp(path.stat().st_mtime).isoformat()
            upper = {"value": schedule.objective, "starts": list(schedule.starts)}
            facts = {"by": "exact", "version": __version__, "date": day, "seconds": seconds}
            certificate = {**draw["certificate"], "upper": upper}
            yield with_values({**draw, "upper": facts, "certificate": certificate})


def _instance_named_in(path: Path) -> str:
    """Return the hash of the instance that a file of a schedule is for."""
    try:
        content = parse_json(read_text(path))
    except InvalidInput as error:
        raise error.located(file=str(path)) from None
    if not isinstance(content, dict) or not isinstance(content.get("instance"), str):
        raise InvalidInput("names no instance by its hash", file=str(path))
    return str(content["instance"])


def better(old: Draw, new: Draw) -> Draw:
    """Return a draw with the better of two schedules and the better of two bounds."""
    found = dict(new)
    for side, sign in (("upper", -1), ("lower", 1)):
        if sign * _value(old, side) > sign * _value(new, side):
            found[side] = old[side]
            found["certificate"] = {**found["certificate"], side: old["certificate"][side]}
    return with_values(found)


def coarser(draw: Draw) -> Draw:
    """Return a draw whose bound takes fewer bytes, the same one if that cost too much of it.

    What its certificate says is believed here: what comes out is verified before it is kept.
    """
    proof = draw["certificate"]["lower"]["proof"]
    if proof["kind"] != "configurations" or proof["searched"]:
        return draw
    if len(proof["stages"]) == 1 and proof["stages"][0]["denominator"] <= _COARSE:
        return draw
    instance = instance_from_json(draw["certificate"]["instance"])
    stage = proof["stages"][-1]
    exact = np.array(stage["numerators"]) * _COARSE
    numerators = (2 * exact + stage["denominator"]) // (2 * stage["denominator"])
    knots, states = Knots(np.array(stage["times"])), States.of(instance)
    value = evaluate(states, knots, states.all_starts(knots.last), numerators, _COARSE).bound
    if value < _value(draw, "lower") * (1 - _LOST):
        return draw
    prices = {
        "denominator": _COARSE,
        "peaks": stage["peaks"],
        "times": stage["times"],
        "numerators": numerators.tolist(),
    }
    proof = {**proof, "target": None, "stages": [prices]}
    found = {**draw["certificate"], "lower": {"value": value, "proof": proof}}
    return with_values({**draw, "certificate": found})


def with_values(draw: Draw) -> Draw:
    """Return a draw with records of what its certificate says."""
    records = [
        replace(
            Record.from_json(row),
            upper=_value(draw, "upper"),
            lower=_value(draw, "lower"),
            found_by=draw["upper"]["by"],
            bounded_by=draw["lower"]["by"],
        )
        for row in draw["records"]
    ]
    return {**draw, "records": [record.to_json() for record in records]}


def _value(draw: Draw, side: str) -> int:
    return int(draw["certificate"][side]["value"])


def hash_of(draw: Draw) -> str:
    """Return the hash of the instance of a draw."""
    return str(draw["certificate"]["hash"])


# -------------------------------------------------------------------------------------------- files


def read(path: Path) -> list[Draw]:
    """Return the draws that a file keeps, none if it is not there."""
    if not path.exists():
        return []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [unpacked(json.loads(line)) for line in lines]


def write(draws: Iterable[Draw], path: Path) -> None:
    """Write draws into a file, small."""
    text = "".join(json.dumps(packed(draw), separators=(",", ":")) + "\n" for draw in draws)
    path.parent.mkdir(exist_ok=True)
    with atomic_path(path) as temporary:
        temporary.write_bytes(lzma.compress(text.encode()))


def packed(draw: Draw) -> Draw:
    """Return a draw with prices of states as changes from time to time: small, and often alike."""

    def change(stage: Draw) -> Draw:
        rows = stage["numerators"]
        changes = np.diff(rows, axis=0).tolist()
        return {**stage, "numerators": rows[:1], "changes": changes}

    return with_stages(draw, change)


def unpacked(draw: Draw) -> Draw:
    """Return a draw as it was before it was packed."""

    def change(stage: Draw) -> Draw:
        rest = {name: value for name, value in stage.items() if name != "changes"}
        rows = [*stage["numerators"], *stage.get("changes", [])]
        return {**rest, "numerators": np.cumsum(rows, axis=0).tolist() if rest != stage else rows}

    return with_stages(draw, change)


def with_stages(draw: Draw, change: Callable[[Draw], Draw]) -> Draw:
    """Return a draw with its stages of prices changed, if its bound has any."""
    certificate, lower = draw["certificate"], draw["certificate"]["lower"]
    if lower["proof"]["kind"] != "configurations":
        return draw
    proof = {**lower["proof"], "stages": [change(stage) for stage in lower["proof"]["stages"]]}
    return {**draw, "certificate": {**certificate, "lower": {**lower, "proof": proof}}}


# ------------------------------------------------------------------------------------------- checks


def fault_of(draw: Draw, places: Container[str]) -> str | None:
    """Say what is wrong with a draw, None if its records follow from its certificate.

    Its instance has to be one of those that were drawn again.
    """
    records = [Record.from_json(row) for row in draw["records"]]
    instance, certificate = records[0].instance, draw["certificate"]
    if hash_of(draw) not in places or any(r.instance.hash != hash_of(draw) for r in records):
        return f"{instance.name}: the study draws no such instance"
    runs = {run["policy"]: run["value"] for run in certificate["policies"]}
    for record in records:
        sides = {"upper": record.upper, "lower": record.lower}
        said = {side: certificate[side]["value"] for side in sides}
        if sides != said or runs[record.policy] != record.value:
            return f"{instance.name}: its certificate says otherwise than its records"
    with written(draw) as path:
        found = verify(path, MOST_STATED)
    return None if found.valid else f"{instance.name}: {found.lines[-1]}"


@contextmanager
def written(draw: Draw) -> Iterator[Path]:
    """Write the certificate of a draw into a file, for so long."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        path.write_text(json.dumps(draw["certificate"]))
        yield path
