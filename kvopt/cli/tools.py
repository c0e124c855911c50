"""``kvopt policies``, ``info`` and ``warmup``."""

from __future__ import annotations

import os
import platform
import signal
from dataclasses import MISSING, fields
from time import monotonic
from typing import Any

from kvopt import KvoptError, Policy
from kvopt.cli.common import Json, Modules, finish, option
from kvopt.cli.printing import say, show, table, warn
from kvopt.incumbent.limits import available_threads
from kvopt.incumbent.params import DEFAULT
from kvopt.kernels.dependencies import available_solvers, missing_extras, versions
from kvopt.show.optional import EXTRAS, remedy
from kvopt.show.summary import counted, first_line
from kvopt.simulate.policies.by_name import policies
from kvopt.simulate.routers import ROUTERS


def policies_command(
    *,
    _modules: Modules,
    routers: bool = option("List the routers of fleets instead, see kvopt run --router."),
    _json: Json,
) -> None:
    """List the schedulers with their source, required knowledge and parameters.

    Every scheduler also takes pred=exact|lower|upper|mid|noise,
    intervals=file|rough|buckets|relative, eps, width and seed: its beliefs about outputs.
    """
    if routers:
        rows = [
            {
                "router": kind.name,
                "summary": first_line(kind),
                "source": kind.source,
                "given": "when it arrives" if kind.is_irrevocable else "when it starts",
            }
            for kind in ROUTERS.all().values()
        ]
    else:
        rows = [_described(kind) for kind in policies().values()]
    lines = table(rows)
    show({"routers" if routers else "policies": rows}, lines)


def _described(kind: type[Policy]) -> dict[str, Any]:
    shared = {item.name for item in fields(Policy)}
    own = (item for item in fields(kind) if item.init and item.name not in shared)
    presets = {"preset": "|".join(kind.presets)} if kind.presets else {}
    return {
        "policy": kind.name,
        "summary": first_line(kind),
        "source": kind.source,
        "needs": [str(need) for need in kind.needs],
        "parameters": presets
        | {
            item.name: None if item.default in (MISSING, None) else str(item.default)
            for item in own
        },
    }


def info_command(
    *, _json: Json, params: bool = option("Print the parameters of --params FILE, as TOML.")
) -> None:
    """Print versions, machine and available solvers, for a bug report, and the missing parts."""
    if params:
        show(DEFAULT.tables(), DEFAULT.to_toml().splitlines())
        return
    missing = missing_extras()
    solvers, problem = [], None
    try:
        solvers = available_solvers()
    except KvoptError as error:
        problem = str(error)
    facts: dict[str, object] = {
        "versions": versions(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "usable_threads": available_threads(),
        "pyomo_solvers": solvers,
        "problem": problem,
        "missing_extras": missing,
    }
    remedies = {EXTRAS[name].package: f"not installed: {remedy(name)}" for name in missing}
    rows = {**versions(), **remedies, **facts, "versions": None, "missing_extras": None}
    lines = (
        f"{name:15} {', '.join(value) if isinstance(value, list) else value}"
        for name, value in rows.items()
        if value not in (None, [])
    )
    show(facts, lines)


def warmup_command(_json: Json) -> None:
    """Compile everything once, so that no later command has to wait for it.

    Machine code is stored on disk, next to the code or in NUMBA_CACHE_DIR; a second
    call finds it there.  It is for the processor of this machine.
    """
    from kvopt.warmup import Warmed, warm_up

    parts, ended, began = list[Warmed](), list[int](), monotonic()
    say("compiling, up to a minute or two in all ...")

    def end(number: int, _: object) -> None:
        ended.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)  # else the processes would continue
    try:
        for part in warm_up():
            parts.append(part)
            say(f"{part.name}: {_compiled(part.compiled, part.seconds)}")
    except KeyboardInterrupt:
        say("kvopt: interrupted; compiled parts are kept")
        finish(ended[0] if ended else signal.SIGINT)
    finally:
        signal.signal(signal.SIGTERM, before)
    count, seconds = sum(part.compiled for part in parts), monotonic() - began
    nothing = "nothing to compile, all of it was kept from before"
    facts = {"parts": [part._asdict() for part in parts], "compiled": count, "seconds": seconds}
    show(facts, [f"done: {_compiled(count, seconds) if count else nothing}"])
    if not all(part.is_kept for part in parts):
        warn("not kept on disk: set NUMBA_CACHE_DIR to a folder that can be written, now and later")


def _compiled(count: int, seconds: float) -> str:
    return f"{counted(count, 'function')} compiled in {seconds:.1f} s"
