"""Go through what `solve`, `bound`, `certify`, `run` and `fleet` use, and say what is compiled.

python tests/support/doors.py      prints a line for each call in which something was compiled
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kvopt import (
    BatchTime,
    Instance,
    Line,
    Request,
    bound,
    certify,
    generate,
    run,
    solve,
    write_instance,
)
from kvopt.kernels.compiled import compile_here, functions_compiled
from kvopt.problem.clocks import Seconds
from kvopt.simulate.policies.by_name import POLICIES

CLOCK = Seconds(BatchTime([Line(10_000_000, 10_000)]))
SECONDS = 1.0
GIVEN = {
    "alpha-protect": ":alpha=0.2",
    "alpha-beta": ":alpha=0.1,beta=0.3",
    "svf-1bit": ":threshold=30,short=10,long=50",
    "k-lpm": ":k=2",
}

Call = tuple[str, Callable[[], Any]]


def instances() -> Iterator[Instance]:
    """Yield backlogs and late arrivals of 4 to 60 requests, in small caches and large ones."""
    for n in (4, 20, 60):
        yield replace(generate("arrival-1", n=n, seed=1), round_ms=10.0)
        drawn = generate("conversation", n=n, memory=2_000, seed=2)
        late = [Request(7 * i, each.prompt, each.output) for i, each in enumerate(drawn)]
        yield Instance(2_000, late, name=f"late-n{n}", round_ms=10.0)


def runs(instance: Instance) -> Iterator[Call]:
    """Yield runs of all schedulers, and of fleets."""
    fleet = replace(instance, workers=2)
    for name in POLICIES.names():
        policy = name + GIVEN.get(name, "")
        yield f"run {policy}", partial(run, instance, policy)
        if name != "sglang":
            yield f"run --seconds {policy}", partial(run, instance, policy, clock=CLOCK)
    for router in ("central", "least-volume"):
        yield f"run fleet {router}", partial(run, fleet, "svf", router=router)
        yield (
            f"run fleet --seconds {router}",
            partial(run, fleet, "svf", router=router, clock=CLOCK),
        )


def searches(instance: Instance) -> Iterator[Call]:
    """Yield searches, bounds and certificates on both clocks, of all scopes and of fleets."""
    fleet, blocks = replace(instance, workers=2), replace(instance, block_size=16)
    limit: dict[str, Any] = {"time_limit": SECONDS}
    for scope in ("runs", "restarts", "pauses"):
        yield f"solve {scope}", partial(solve, instance, scope=scope, **limit)
        yield f"bound {scope}", partial(bound, instance, scope=scope, **limit)
        yield f"certify {scope}", partial(certify, instance, ["svf"], scope=scope, **limit)
        yield f"solve blocks {scope}", partial(solve, blocks, scope=scope, **limit)
    for scope in ("runs", "restarts", "pauses", "chunks", "pauses+chunks"):
        timed = partial(certify, instance, ["svf"], clock=CLOCK, scope=scope, **limit)
        yield f"certify --seconds {scope}", timed
    for method in ("lp", "lagrangian", "slots", "configuration"):
        yield f"bound {method}", partial(bound, instance, method, **limit)
    for name, each in (("one", instance), ("fleet", fleet)):
        yield f"solve {name}", partial(solve, each, **limit)
        yield f"solve --seconds {name}", partial(solve, each, clock=CLOCK, **limit)
        yield f"bound {name}", partial(bound, each, **limit)
        for clock, slo in ((None, "e2e=60"), (CLOCK, "ttft=1s,tpot=1s")):
            options = limit if clock is None else {**limit, "clock": clock}
            yield (f"certify {name} {slo}", partial(certify, each, ["svf"], slo=slo, **options))
    yield "fleet", partial(fleet_command, instance)
    yield "fleet --seconds", partial(fleet_command, instance, "--seconds")


def fleet_command(instance: Instance, *options: str) -> None:
    """Call ``kvopt fleet`` in this process."""
    from typer.testing import CliRunner

    from kvopt.cli.app import app

    with TemporaryDirectory() as folder:
        file = Path(folder) / "instance.json"
        write_instance(instance, file)
        wish = ["--match", "fcfs", "--workers", "2", "-t", str(SECONDS)]
        done = CliRunner().invoke(app, ["fleet", str(file), *wish, *options])
    assert done.exit_code == 0, done.output


def calls() -> Iterator[Call]:
    """Yield all calls, with what they are."""
    for instance in instances():
        for name, call in (*runs(instance), *searches(instance)):
            yield f"{name}: {instance.name}", call


def compiled_by(environment: dict[str, str]) -> list[str]:
    """Return the calls that compile in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.splitlines()


if __name__ == "__main__":
    compile_here()
    for name, call in calls():
        before = functions_compiled()
        call()
        if functions_compiled() > before:
            print(name, functions_compiled() - before, flush=True)
