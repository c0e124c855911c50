"""Options, exit statuses and output rules that all commands share.

With ``--json`` standard output holds one JSON object and nothing else.  Progress and
messages go to standard error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import isroutine
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

import typer

from kvopt import policy
from kvopt.cli.entry import INTERRUPTED as INTERRUPTED
from kvopt.cli.printing import LiveProgress, say, warn
from kvopt.errors import refuse as refuse
from kvopt.files.reading import blamed_on as blamed_on
from kvopt.files.reading import is_standard_input, name_of
from kvopt.incumbent.in_time import InTime
from kvopt.incumbent.interrupts import signals_remembered
from kvopt.incumbent.params import SolveParams
from kvopt.kernels.extensions import import_modules, located
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.hardware.batch_time_files import DEFAULT_MODEL, batch_time
from kvopt.problem.hardware.roofline import expected_error, is_roofline, parts, roofline
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import read_instance
from kvopt.problem.requests import LARGEST_INTEGER
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Slo, allowed_misses
from kvopt.simulate.routers import router

FAILED = 1
"""Exit status when a checked file is wrong, or a part of the work failed."""

NOTHING_FOUND = 3
"""Exit status when the work, or its limit, ended without a result."""

NAMES = {
    "policies": "kvopt.simulate.policies.by_name:POLICIES.names",
    "routers": "kvopt.simulate.routers:ROUTERS.names",
    "engines": "kvopt.search.engines:ENGINES",
    "methods": "kvopt.search.engines:METHODS",
    "families": "kvopt.problem.families:FAMILIES",
    "traces": "kvopt.problem.traces:FORMATS.names",
    "formulations": "kvopt.formulations.export:FORMULATIONS",
    "exports": "kvopt.formulations.export:FORMATS",
    "studies": "kvopt.studies.description:builtin_names",
    "models": "kvopt.problem.hardware.presets:MODELS",
    "gpus": "kvopt.problem.hardware.presets:GPUS",
    "batch_times": "kvopt.problem.hardware.batch_time_files:PRESETS",
    "scopes": "kvopt.problem.scopes:Scope",
}
"""Modules with the names of a kind; ``{policies}`` in a help text becomes the names of policies."""

_PLACE = re.compile(r"\{(\w+)\}")


def names_of(kind: str) -> list[str]:
    """Return the names of a kind; the module is loaded at the first call."""
    names = resolve_name(NAMES[kind])
    return [str(name) for name in (names() if isroutine(names) else names)]


def completing(kind: str) -> Callable[[str], list[str]]:
    """Return a function that completes the names of a kind, for ``autocompletion``."""
    return lambda incomplete: [name for name in names_of(kind) if name.startswith(incomplete)]


def filled_in(text: str) -> str:
    """Return a help text with names in it."""
    return _PLACE.sub(lambda place: ", ".join(names_of(place[1])), text)


def _completed(about: str, names: str) -> Any:
    """Return the completion of a kind, by default the one of a help text; else None."""
    match = _PLACE.search(about)
    kind = names or (match and match[1])
    return completing(kind) if kind else None


def option(
    about: str,
    metavar: str = "",
    flags: str = "",
    default: Any = None,
    names: str = "",
    **more: Any,
) -> Any:
    """Return an option, as the default of a parameter whose name it has.

    ``metavar`` is the type of its value, none for a flag, which is off by default.  ``flags`` are
    more of its names, with blanks between them; a long one replaces the name of the parameter.
    The default ``...`` makes it required.  Shells complete names of the kind ``names``, which is
    by default the one in the help text.  All else is passed on to Typer.
    """
    if not metavar and default is None:
        default = False
    complete = _completed(about, names)
    return typer.Option(
        default, *flags.split(), metavar=metavar, help=about, autocompletion=complete, **more
    )


def argument(metavar: str, about: str, default: Any = ..., names: str = "") -> Any:
    """Return an argument; ``default`` and ``names`` as of `option`."""
    complete = _completed(about, names)
    return typer.Argument(default, metavar=metavar, help=about, autocompletion=complete)


def checked(check: Callable[[str], object]) -> Callable[[Any], Any]:
    """Return a callback that refuses a wrong name, or one of several, before any work."""

    def callback(names: Any) -> Any:
        for name in [names] if isinstance(names, str) else names or ():
            check(name)
        return names

    return callback


def policies(about: str, default: Any = None) -> Any:
    """Return the option that names schedulers."""
    words = f"{about}  One of {{policies}}; `kvopt policies` describes them."
    return option(words, NAMED, "--policy -P", default, callback=checked(policy))


def _read(about: str, metavar: str, read: Callable[[str], object]) -> Any:
    """Return an option whose value is read at once, so that it is refused before any work."""
    return option(
        about, metavar, parser=str, callback=lambda text: None if text is None else read(text)
    )


def _imported(modules: list[str] | None) -> list[str]:
    """Import user modules that add to the built-in names; return full paths."""
    import_modules(modules or (), must_register=True)
    return [located(module, Path()) for module in modules or ()]


INSTANCES = "JSON, or CSV with --memory; - is standard input."
LIMIT = "Seconds, kept within two."
NAMED = "NAME[:KEY=VALUE,...]"
_WRITTEN = "The file to write; - is standard output."
_ROUTER = "Of a fleet, how requests come to workers: one of {routers}."
_SLO = "How many can attain this: ttft=2s,tpot=50ms, e2e=40 in rounds, own; any of the three."
_OWN = "Python file that registers something of your own; may be given several times."
_COVERED = "Schedules that bounds cover: one of {scopes}; default: "
_TOML = "TOML with sizes, a width and a share of time, as kvopt info --params prints them."
_AS_GIVEN = f"{_COVERED}runs, or sharing if prompts have prefixes."
_AS_POLICIES = f"{_COVERED}that of the policies, else runs or sharing."

Json = Annotated[bool, option("Print one JSON object and nothing else.")]
Output = Annotated[Path, option(_WRITTEN, "FILE", "-o", ...)]
OptionalOutput = Annotated[Path | None, option(_WRITTEN, "FILE", "-o")]
TimeLimit = Annotated[float | None, option(LIMIT, "S", "-t", min=0)]
Threads = Annotated[int | None, option("Solver threads; default: every core.", "N", min=1)]
Seed = Annotated[int, option("For random choices.", "N", default=0, min=0)]
Params = Annotated[SolveParams | None, _read(_TOML, "FILE", SolveParams.from_toml)]
Router = Annotated[str, option(_ROUTER, NAMED, default="central", callback=checked(router))]
AllowedScope = Annotated[Scope | None, _read(_AS_GIVEN, "NAME", Scope.parse)]
CoveredScope = Annotated[Scope | None, _read(_AS_POLICIES, "NAME", Scope.parse)]
ServiceLevel = Annotated[Slo | None, _read(_SLO, "LIMITS", Slo.parse)]
Modules = Annotated[
    list[str] | None,
    # Eager: what it registers may be named by other options.
    option(_OWN, "FILE.py", "--module", callback=_imported, is_eager=True),
]


@dataclass(frozen=True)
class LevelOptions:
    """A service level, and the share of requests that shall attain it."""

    slo: ServiceLevel
    attain: str | None = option(
        "With --slo: whether this share of the requests can attain it, 99%, or a number.", "P%"
    )

    def __post_init__(self) -> None:
        if self.attain is not None:
            refuse("--attain", "goes with --slo", self.slo is None)
            allowed_misses(self.attain, LARGEST_INTEGER)

    def lines(self, in_time: InTime | None, before: str = "") -> Iterator[str]:
        """Yield how many requests attain the level, and whether the share can."""
        if in_time is not None:
            yield before + in_time.sentence
            if self.attain is not None:
                yield before + in_time.verdict(self.attain)


@dataclass(frozen=True)
class MemoryOptions:
    """Options that override the file of an instance."""

    memory: int | None = option(
        "Cache size: required for CSV; overrides that of a JSON file.", "M", "-m", min=1
    )
    workers: int | None = option(
        "Machines with a cache of M tokens each; overrides the file.", "N", min=1
    )
    block_size: int | None = option(
        "Memory is given out in whole blocks of B tokens; default: 1.", "B", min=1
    )

    def read_from(self, path: Path) -> Instance:
        """Read the file."""
        return read_instance(path, self.memory, self.workers, self.block_size)


@dataclass(frozen=True)
class InstanceOptions(MemoryOptions):
    """An instance."""

    file: Path = argument("FILE", f"Instance: {INSTANCES}")

    def read(self) -> Instance:
        """Read it."""
        return self.read_from(self.file)


@dataclass(frozen=True)
class ClockOptions:
    """How long a round lasts."""

    seconds: bool = option("Let a round last as long as its batch.")
    batch_time: str | None = option(
        "With --seconds: a .json file, one of {batch_times}, or a roofline, llama-3-8b@h100 say.",
        "MODEL",
    )

    def clock(self) -> Clock:
        """Return the clock of the model that was named, or of the default one."""
        if self.seconds:
            return Seconds(batch_time(self.batch_time or DEFAULT_MODEL))
        refuse("--batch-time", "goes with --seconds", self.batch_time is not None)
        return ROUNDS

    def check(self, file: Path, instance: Instance, slo: Slo | None = None) -> None:
        """Refuse arrivals or a service level without times, then name the assumed machine."""
        with blamed_on(file):
            self.clock().arrivals(instance)
            if slo is not None:
                slo.levels(instance, rounds=not self.seconds)
        self.say_assumed()

    def say_assumed(self) -> None:
        """Report the assumed machine, unless it was named, and whether its times are computed."""
        if self.seconds:
            say_machine(self.batch_time, "--batch-time {}", "--batch-time")


@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """Limits of a search, and its seed."""

    time_limit: TimeLimit
    threads: Threads
    ram: str | None = option(
        "Memory budget, 4G say; default: a share of the machine's memory.", "SIZE"
    )
    params: Params
    seed: Seed


def refuse_own_sizes(options: Any) -> None:
    """Refuse options for the machines of a recorded run."""
    for name in ("memory", "workers"):
        no_run = "goes without a recorded run, which has its own"
        refuse(f"--{name}", no_run, getattr(options, name) is not None)


def say_idle_router(name: str, instance: Instance, file: Path) -> None:
    """Print that a router has no effect, as it has none on a single machine."""
    if name != "central" and instance.workers == 1:
        say(f"{label(file)}: router {name} has no effect: there is one machine")


def say_machine(model: object, assumed: str, option: str) -> None:
    """Print the source of the times of a model, unless a measured one was named.

    Without a model ``assumed`` is the option with the default one, with braces for its name;
    ``option`` names another one.
    """
    if model is None:
        what = f"{assumed.format(DEFAULT_MODEL)} (Llama-2-70B on two A100)"
        say(f"assumed: {what}; give {option} for another machine")
    elif isinstance(model, str) and is_roofline(model):
        shape, gpu, gpus = parts(model)
        name, error = roofline(shape, gpu, gpus).name, expected_error(shape, gpu)
        say(f"assumed: {name} is a roofline, not a measurement: {error}")


def label(file: Path) -> str:
    """Return the name of a file for tables and progress."""
    return name_of(file) if is_standard_input(file) else file.name


@contextmanager
def searching(file: Path, name: str = "", clock: Clock = ROUNDS) -> Iterator[LiveProgress]:
    """Show the progress of work on a file, and name the file in errors."""
    with LiveProgress(name or label(file), clock) as live, blamed_on(file):
        yield live


@contextmanager
def undisturbed() -> Iterator[list[int]]:
    """Run, write and print to the end in spite of Ctrl-C, which ends the command afterwards.

    A search handles signals itself and stops in order; the block gets a list of the other signals.
    The second of them ends the command at once.
    """
    numbers: list[int] = []
    with signals_remembered(numbers.append):
        yield numbers
    finish(numbers[0] if numbers else None)


def finish(signal_number: int | None = None, status: int = 0) -> None:
    """End the command if a signal ended its work, with the status of shells, or if it failed."""
    status = status if signal_number is None else 128 + signal_number
    if status:
        raise typer.Exit(status)


def warn_oversubscription(threads: int | None) -> None:
    """Warn if the number of threads exceeds the cores of the machine."""
    cores = os.cpu_count() or 1
    if threads is not None and threads > cores:
        warn(f"{threads} threads on {cores} cores slow each other down")
