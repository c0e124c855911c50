"""``kvopt headroom``: from a log to the answers of a serving engineer, and a page with them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from kvopt import BatchTime, Instance, InvalidInput, PolicyRun, import_trace, policy, read_instance
from kvopt.cli import common
from kvopt.cli.common import argument, blamed_on, option, refuse
from kvopt.cli.files import KeptOptions
from kvopt.cli.hardware import MachineOptions
from kvopt.cli.printing import command_line, detail, fitting, is_watched, say, show, try_folder
from kvopt.errors import MissingPackage
from kvopt.files.atomic import write_atomically
from kvopt.files.reading import is_standard_input, open_text, parse_json
from kvopt.kernels.budget import spent_loading, wall_time
from kvopt.problem.clocks import Seconds
from kvopt.problem.hardware.batch_time_files import DEFAULT_MODEL, batch_time
from kvopt.problem.hardware.fitting import fit_linear
from kvopt.problem.hardware.presets import GIGABYTE, SHARE, Gpu, capacity
from kvopt.problem.hardware.roofline import is_roofline, parts
from kvopt.problem.traces.recognition import format_of
from kvopt.simulate.routers import router
from kvopt.timetable.run_files import RecordedRun, is_run, read_run
from kvopt.timetable.server_records import read_record
from kvopt.timetable.timing import timed

_HEAD = 4096
"""Characters of a file that show what it is."""
_PAGE = 3.0, 8.0
"""Seconds of the limit for the page, at least and at most; of a short limit a quarter."""
_PAGE_SHARE = 0.08
"""Share of the limit for the page between them."""
_WRITING = 1.0
"""Time to write certificates over the time to read the log."""
_RULES = {
    "block": "block",
    "budget": "budget",
    "max_num_batched_tokens": "budget",
    "max_seqs": "max_seqs",
    "max_num_seqs": "max_seqs",
    "chunked": "chunked",
    "chunked_prefill": "chunked",
    "watermark": "watermark",
    "asynchronous": "asynchronous",
}
"""Settings in the notes of a record, and the keys of a scheduler for them."""


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """The server: its machine, its scheduler and what it promises."""

    batch_time: str | None = option(
        "In their place a .json file, one of {batch_times}, or a roofline, llama-3-8b@h100 say.",
        "MODEL",
    )
    memory: int | None = option(
        "Cache size in tokens; default: what fits beside the model.", "M", "-m", min=1
    )
    workers: int | None = option("Machines of today, with a cache of M tokens each.", "N", min=1)
    scheduler: str | None = option(
        "The scheduler of today; default: that of the record, else vllm-fcfs as on that GPU.",
        common.NAMED,
        names="policies",
        callback=common.checked(policy),
    )
    router: str = option(
        "How requests come to several machines.",
        common.NAMED,
        default="least-requests",
        callback=common.checked(router),
    )
    slo: common.ServiceLevel
    attain: str | None = option(
        "Share of the requests that shall attain --slo; default: 99%.", "P%"
    )
    scope: common.CoveredScope


class _Log(NamedTuple):
    """The requests of a log, the run of the server if it recorded one, and remarks."""

    instance: Instance
    recorded: RecordedRun | None
    notes: list[str]


def headroom_command(
    *,
    file: Path = argument("LOG", "A trace, a record of vLLM, a run or an instance."),
    format_: str | None = option("One of {traces}; default: recognised.", "NAME", "-f"),
    machine: MachineOptions,
    server: ServerOptions,
    kept: KeptOptions,
    time_limit: float = option("Seconds for all of it.", "S", "-t", 120.0, min=0),
    threads: common.Threads,
    out: Path | None = option("Folder of page and certificates; default: LOG.headroom.", "DIR"),
    _json: common.Json,
    _modules: common.Modules,
) -> None:
    """Tell how long requests wait, how much less is possible, and how to get there.

    Writes a page, a box in Markdown, and certificates of all that is proved.  Settings and
    predicted lengths are simulations.  The log stays on this machine, and the page has no
    prompts.  Ctrl-C keeps what is there.

    Exit status: 0, 3 if the time ended before any bound, 130 after Ctrl-C, 2 for input that is
    refused.
    """
    from kvopt.fleets.analysis import headroom
    from kvopt.fleets.gains import ATTAIN

    common.LevelOptions(server.slo, server.attain)  # refuses a share without a level
    refuse("LOG", "must be a file: its format is recognised first", is_standard_input(file))
    out = Path(f"{file.name.partition('.')[0]}.headroom") if out is None else out
    try_folder(out)
    began = wall_time()
    loading = spent_loading(time_limit)
    with blamed_on(file):
        assumed = _machine(machine, server)
        read = _read(file, format_, kept, server, assumed.fits)
        fitted = None if assumed.name else _fitted(read)
        if fitted is None:
            common.say_machine(assumed.name, "--batch-time {}", "--model and --gpu")
        clock, instance = Seconds(fitted or assumed.model), read.instance
        clock.arrivals(instance)
        if server.slo is not None:
            server.slo.levels(instance, rounds=False)
        scheduler = server.scheduler or _scheduler(read.recorded, assumed)
        recorded = _timed(read, clock)
    drawing = min(max(_PAGE_SHARE * time_limit, _PAGE[0]), _PAGE[1], time_limit / 4)
    reserve = loading + (1 + _WRITING) * (wall_time() - began) + drawing
    with common.undisturbed():
        with common.searching(file, clock=clock) as observer:
            answer = headroom(
                instance,
                scheduler,
                recorded=recorded,
                router=server.router,
                clock=clock,
                slo=server.slo,
                attain=server.attain or ATTAIN,
                scope=server.scope,
                time_limit=max(time_limit - reserve, 0.0),
                threads=threads,
                seed=kept.seed,
                out=out,
                tell=say if is_watched() else detail,
                observer=observer,
                command=command_line(),
                notes=read.notes,
            )
        show(answer.to_json(), map(fitting, answer.lines()))
        for line in answer.notes:
            say(f"kvopt: {line}")
        out.mkdir(parents=True, exist_ok=True)
        write_atomically(out / "headroom.md", answer.markdown())
        write_atomically(out / "headroom.json", json.dumps(answer.to_json(), indent=1) + "\n")
        try:
            from kvopt.studies.report.headroom_page import PAGE, write_headroom

            write_headroom(answer, out)
            page = PAGE
        except MissingPackage as error:
            say(f"kvopt: no page: {error}")
            page = "headroom.md"
        say(f"wrote {out}: {page}, headroom.md to paste, and certificates")
    common.finish(answer.signal_number, common.NOTHING_FOUND * (answer.certificate is None))


class _Machine(NamedTuple):
    """How long rounds last; name and GPU, None if unknown; tokens that fit, 0 if unknown."""

    model: BatchTime
    name: str | None
    gpu: Gpu | None
    fits: int


def _machine(machine: MachineOptions, server: ServerOptions) -> _Machine:
    """Return the machine that options name, or the default one."""
    named = [name for name, value in vars(machine).items() if value is not None]
    for name in named:
        refuse(f"--{name}", "goes without --batch-time", server.batch_time is not None)
    text, (shape, device, gpus) = server.batch_time, machine.parts()
    if named:
        count = f"{gpus}x" if machine.gpus or not (machine.model and machine.gpu) else ""
        text = f"{shape.name}@{count}{device.name}"
    if text is not None and not is_roofline(text):
        return _Machine(batch_time(text), text, None, 0)
    if text is not None:
        shape, device, gpus = parts(text, "--gpu" if named else "--batch-time")
    fits = capacity(shape, device.memory, gpus, SHARE)
    return _Machine(batch_time(text or DEFAULT_MODEL), text, device if text else None, fits)


def _read(
    log: Path, format_: str | None, kept: KeptOptions, server: ServerOptions, fits: int
) -> _Log:
    """Return the requests of a log of any kind."""
    kind = format_ or _kind(log)
    if kind in ("record", "run"):
        common.refuse_own_sizes(server)
        recorded = read_record(log) if kind == "record" else read_run(log)
        return _Log(recorded.instance, recorded, [])
    if kind == "instance":
        return _Log(read_instance(log, server.memory, server.workers), None, [])
    memory = server.memory or fits
    refuse("--memory", "is needed: a batch time does not say how many tokens fit", not memory)
    instance = import_trace(log, kind, memory, **vars(kept))
    notes: Any = instance.notes
    remarks = [
        f"left out {row['rows']}: {reason} (first at line {row['first_line']})"
        for reason, row in notes["dropped"].items()
    ]
    if all(request.arrival_seconds is None for request in instance):
        remarks.append("no arrivals: all requests come at once")
        requests = tuple(replace(request, arrival_seconds=0.0) for request in instance)
        instance = replace(instance, requests=requests)
    return _Log(replace(instance, workers=server.workers or 1), None, remarks)


def _kind(log: Path) -> str:
    """Return what a file is, by its begin: ``record``, ``run``, ``instance`` or a format."""
    if is_run(log):
        return "run"
    with open_text(log, "replace") as file:
        head = file.read(_HEAD)
    if not head.lstrip().startswith("{"):
        return "csv"
    if '"kvopt.instance/' in head:
        return "instance"
    first, newline, _ = head.partition("\n")
    if '"kvopt.record/' in first or '"token_rounds"' in head or '"engine"' in head:
        return "record"
    row = parse_json(first) if newline and first.rstrip().endswith("}") else {}
    if (kind := format_of(row)) is None:
        fields = ", ".join(row) or "none in its first line"
        raise InvalidInput(f"is no known log: name its --format; its fields are {fields}")
    return kind


def _fitted(log: _Log) -> BatchTime | None:
    """Return the batch time of the rounds that a server measured, None if they are too few."""
    if log.recorded is None or log.recorded.measured is None:
        return None
    try:
        fit = fit_linear(log.recorded.measured.batches)
    except InvalidInput:
        return None
    if fit.typical_error > 1:
        log.notes.append("rounds of the record differ too much for a fit of their lengths")
        return None
    log.notes.append(
        f"rounds last as in the record, where one is typically off by {fit.typical_error:.1%}"
    )
    return replace(fit.batch_time, name="fitted to the record")


def _scheduler(recorded: RecordedRun | None, machine: _Machine) -> str:
    """Return the scheduler of a record, else vLLM's with the defaults of a GPU."""
    if recorded is not None:
        rules = {"block": recorded.block, **recorded.notes}
        keys = {_RULES[name]: value for name, value in rules.items() if name in _RULES}
        text = ",".join(
            f"{key}={int(value) if isinstance(value, bool) else value}"
            for key, value in keys.items()
        )
        has_priorities = any(request.priority is not None for request in recorded.instance)
        return f"vllm-priority:by=priority,{text}" if has_priorities else f"vllm-fcfs:{text}"
    gpu, preset = machine.gpu, "serve-h100"
    is_small = gpu is not None and gpu.memory < 70 * GIGABYTE
    if is_small or "a100" in (gpu.name if gpu else machine.model.name or ""):
        preset = "serve-a100"
    elif gpu is not None and gpu.memory >= 160 * GIGABYTE:
        preset = "serve-b200"
    return f"vllm-fcfs:preset={preset}"


def _timed(log: _Log, clock: Seconds) -> PolicyRun | None:
    """Return a recorded run on a clock of seconds, None with a remark if it has none."""
    if (recorded := log.recorded) is None:
        return None
    if (measured := recorded.measured) is not None:
        mean = measured.latency_ns / max(len(log.instance), 1) / clock.scale
        log.notes.append(f"the server measured {mean:.3f} s on average, which is not checked")
    reason = "its record does not say in which rounds prompts were processed"
    if recorded.chunks is not None:
        run = timed(PolicyRun.of(recorded.with_chunks, recorded.policy), clock)
        if not (broken := run.violations()):
            return run
        reason = f"on this clock its requests begin in other rounds, and then {broken[0]}"
    log.notes.append(f"the recorded run is not compared, but its scheduler simulated: {reason}")
    return None
