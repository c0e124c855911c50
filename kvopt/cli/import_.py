"""``kvopt import``: a trace as an instance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from kvopt.cli import common
from kvopt.cli.common import argument, option
from kvopt.cli.outputs import write_output
from kvopt.problem.instance_files import write_instance
from kvopt.problem.traces import import_trace


@dataclass(frozen=True)
class KeptOptions:
    """Which requests of a trace are kept, and what is made of them; see `import_trace`."""

    limit: Annotated[int | None, option("--limit", "Stop after N requests.", "N", min=0)] = None
    sample: Annotated[int | None, option("--sample", "Draw N of them.", "N", min=0)] = None
    seed: common.Seed = 0
    round_ms: Annotated[
        float | None, option("--round-ms", "Length of a round; 50 by default.", "X")
    ] = None
    all_at_once: Annotated[bool, option("--all-at-once", "Forget arrivals: a backlog.")] = False
    max_total: Annotated[
        int | None, option("--max-total", "Leave out what needs more tokens.", "T", min=1)
    ] = None
    prompt_column: Annotated[
        str | None, option("--prompt-column", "Prompt tokens; csv knows many names.", "NAME")
    ] = None
    output_column: Annotated[
        str | None, option("--output-column", "Output tokens, likewise.", "NAME")
    ] = None
    time_column: Annotated[str | None, option("--time-column", "Arrival, likewise.", "NAME")] = None


def import_command(
    trace: Annotated[Path, argument("TRACE", "The file to read; - is standard input.")],
    format_: Annotated[
        str, option("--format -f", "{traces}, or one of --module.", "NAME", names="traces")
    ],
    memory: Annotated[int, option("--memory -m", "Cache size in tokens.", "M", min=1)],
    output: common.Output,
    kept: KeptOptions,
    _modules: common.Modules = None,
) -> None:
    """Turn a trace of requests into an instance; same arguments, same bytes.

    The file is read line by line.  Lines that are no request, or one that cannot be kept, are
    left out; how many and why is printed and stored in the notes of the instance.
    """
    instance = import_trace(trace, format_, memory, **vars(kept))
    length = "" if instance.round_ms is None else f", rounds of {instance.round_ms:g} ms"
    about = f": {len(instance)} requests, memory {instance.memory}{length}"
    write_output(output, partial(write_instance, instance), about)
    notes = instance.notes
    assert isinstance(notes, dict)
    if "columns" in notes:
        common.say(f"columns: {notes['columns']}")
    if "cached_tokens" in notes:
        common.say(
            f"kvopt: {notes['cached_tokens']:,} tokens of these prompts were cached, and count as "
            "processed and held all the same: kvopt knows no prefix caching yet"
        )
    for reason, found in notes["dropped"].items():
        common.say(f"left out {found['rows']}: {reason} (first at line {found['first_line']})")
    if notes["out_of_order"]:
        common.say(f"sorted: {notes['out_of_order']} arrived before one that stands above")
