"""``kvopt generate``, ``import``, ``import-run`` and ``export``: make files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kvopt import export, generate, import_trace, write_instance
from kvopt.bounds.start_windows import start_windows
from kvopt.cli.common import InstanceOptions, Modules, Output, Seed, argument, option, refuse
from kvopt.cli.printing import say, write_output
from kvopt.errors import InvalidInput
from kvopt.formulations.export import SUFFIXES, format_of
from kvopt.problem.families import FAMILIES
from kvopt.show.summary import counted
from kvopt.simulate.policies.by_name import pairs
from kvopt.simulate.run_policy import given_schedule
from kvopt.timetable.run_files import write_run
from kvopt.timetable.server_records import read_record


def families() -> str:
    """List every family with its keys, for the help text."""
    lines = ["**Families**", ""]
    for family in FAMILIES.values():
        about = [f"{family.summary}; n {family.n}, M {family.memory} ({family.source})"]
        for key in family.parameters:
            default = "" if key.default is None else f"={key.default}"
            about.append(f"-p {key.name}{default}: {key.help}")
        lines.append(f"* **{family.name}**: {'; '.join(about)}")
    return "\n".join(lines)


def generate_command(
    *,
    family: str = argument("FAMILY", "A name from the list below.", names="families"),
    output: Output,
    n: int | None = option("Number of requests.", "N", min=0),
    memory: int | None = option("Cache size.", "M", "-m", min=1),
    seed: Seed,
    parameter: list[str] | None = option("A key of the family.", "KEY=VALUE", "-p"),
) -> None:
    """Write an instance of a named family; same arguments, same bytes."""
    keys = pairs(",".join(parameter or ()), "-p")
    instance = generate(family, n=n, memory=memory, seed=seed, parameters=keys)
    about = f": {len(instance)} requests, memory {instance.memory}"
    write_output(output, write_instance, instance, about)


@dataclass(frozen=True, kw_only=True)
class KeptOptions:
    """Options that select requests of a trace and set their fields; see `import_trace`."""

    limit: int | None = option("Stop after N requests.", "N", min=0)
    sample: int | None = option("Draw N of them.", "N", min=0)
    seed: Seed
    round_ms: float | None = option("Length of a round; 50 by default.", "X")
    all_at_once: bool = option("Forget arrivals: a backlog.")
    max_total: int | None = option("Skip requests of more tokens.", "T", min=1)
    prompt_column: str | None = option("Prompt tokens; csv knows many names.", "NAME")
    output_column: str | None = option("Output tokens, likewise.", "NAME")
    time_column: str | None = option("Arrival, likewise.", "NAME")
    e2e_column: str | None = option("Limit of the time to the last token, in csv.", "NAME")
    where: list[str] | None = option(
        "Read rows with this value in a column; may be given several times.", "COLUMN=VALUE"
    )
    prefixes: bool = option("Keep the blocks that prompts share.")
    block_tokens: int | None = option("Their tokens in csv; 16.", "B", min=1)


def import_command(
    *,
    trace: Path = argument("TRACE", "The file to read; - is standard input."),
    format_: str = option("{traces}, or one of --module.", "NAME", "-f", ...),
    memory: int = option("Cache size in tokens.", "M", "-m", ..., min=1),
    output: Output,
    kept: KeptOptions,
    _modules: Modules,
) -> None:
    """Turn a trace of requests into an instance; same arguments, same bytes.

    The file is read line by line.  Lines without a usable request are skipped; their number and
    the reasons are printed and stored in the notes of the instance.
    """
    instance = import_trace(trace, format_, memory, **vars(kept))
    length = "" if instance.round_ms is None else f", rounds of {instance.round_ms:g} ms"
    about = f": {len(instance)} requests, memory {instance.memory}{length}"
    write_output(output, write_instance, instance, about)
    notes = instance.notes
    assert isinstance(notes, dict)
    if "columns" in notes:
        say(f"columns: {notes['columns']}")
    if "cached_tokens" in notes:
        say(
            f"kvopt: {notes['cached_tokens']:,} tokens of these prompts were cached, and count as "
            "processed and held all the same: the trace does not say which ones"
        )
    for reason, entry in notes["dropped"].items():
        say(f"left out {entry['rows']}: {reason} (first at line {entry['first_line']})")
    if notes["out_of_order"]:
        say(f"sorted: {notes['out_of_order']} arrived before an earlier line")


def import_run_command(
    *, record: Path = argument("RECORD", "A record of a server."), output: Output
) -> None:
    """Read the decisions of a server, replay them in integers, and write them as a run.

    A record is a file of kvopt.integrations.vllm, or one JSON object with
    all rounds.  A record that breaks its own rules is refused with request and round.
    """
    run = read_record(record)
    schedule = run.schedule
    about = (
        f": {run.policy}, {len(run.instance):,} requests, total latency "
        f"{schedule.objective:,} rounds, {counted(schedule.pauses, 'pause')}"
    )
    write_output(output, write_run, run, about)
    if left_out := run.notes.get("left_out"):
        say(f"left out {counted(left_out, 'request')} that did not finish")


def export_command(
    *,
    problem: InstanceOptions,
    output: Output,
    formulation: str = option("One of {formulations}.", "NAME", default="time-indexed"),
    format_: str | None = option("One of {exports}; default: as OUT ends.", "NAME"),
    upper: int | None = option("Total latency of a schedule: no later starts.", "U", min=0),
    schedule: Path | None = option("Take U from this schedule.", "SCHEDULE"),
) -> None:
    """Write the time-indexed program or its LP relaxation as MPS or LP.

    A name that ends in .gz is compressed.  With a total latency U the program leaves out starts
    that no schedule of at most U has.  It keeps an optimum, and has no solution if U is too low.
    """
    try:
        kind = format_ or format_of(output)
    except InvalidInput as error:
        names = ", ".join(SUFFIXES)
        reason = f"must end in one of {names}; another name needs --format"
        raise InvalidInput(reason, field=f"--output {error.file}") from None
    instance = problem.read()
    if schedule is not None:
        refuse("--upper", "goes without --schedule", upper is not None)
        feasible = given_schedule(instance, schedule, f"--schedule {schedule}")
        has_pauses = "has pauses, the program has none"
        refuse(f"--schedule {schedule}", has_pauses, bool(feasible.pauses))
        upper = int(feasible.objective)
    windows = None if upper is None else start_windows(instance, upper)
    write = partial(export, formulation=formulation, format=kind, windows=windows)
    write_output(output, write, instance)
