"""``kvopt hunt``: the small instance on which a scheduler does worst."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from signal import SIGINT
from typing import TYPE_CHECKING, Annotated

from kvopt.certificates.files import write_certificate
from kvopt.cli import common
from kvopt.cli.common import option
from kvopt.cli.outputs import certificate_written
from kvopt.problem.scopes import Scope

if TYPE_CHECKING:
    from kvopt.experiments.hunting import Hunt


@dataclass(frozen=True)
class SpaceOptions:
    """Which instances are tried, for how long; the names are of `hunt`."""

    n: Annotated[int, option("--n", "Requests, at most.", "N", min=1)]
    memory: Annotated[int, option("--memory -m", "Cache size, at most.", "M", min=1)]
    time_limit: Annotated[float, option("--time-limit -t", "Seconds.", "S", min=0)] = 60.0
    seed: common.Seed = 0
    equal_prompts: Annotated[
        bool, option("--equal-prompts", "One prompt for all requests of an instance.")
    ] = False
    last_arrival: Annotated[int, option("--last-arrival", "Arrivals are 0 .. A.", "A", min=0)] = 0


def hunt_command(
    space: SpaceOptions,
    names: Annotated[
        list[str] | None,
        common.policies("Policy to hunt; of several the best on an instance counts."),
    ] = None,
    scope: common.Covers = None,
    output: common.OptionalOutput = None,
    json: common.Json = False,
    _modules: common.Modules = None,
) -> None:
    """Hunt for the small instance on which schedulers are furthest from the optimum.

    With --scope pauses and no policy: for the one on which pausing is worth most.

    Tries every instance where those are few and searches locally beyond, takes away what the
    ratio does not need, certifies the rest and verifies the certificate.  Exit status: 0 when a
    policy was worse than the optimum, 3 when none ever was, 130 after Ctrl-C.
    """
    # Loads numba: no other command should wait for it.
    from kvopt.experiments.hunting import hunt

    def watch(ratio: Fraction, tried: int) -> None:
        if not json and common.is_watched():
            common.say(f"{ratio} = {float(ratio):.4f} after {tried:,} instances")

    found = hunt(names or [], scope=scope, watch=watch, **vars(space))
    with certificate_written("--output", output, found.certificate, write_certificate):
        if json:
            common.print_json(found.to_json())
        else:
            _print(found, space.n, space.memory)
    signal_number = SIGINT if found.interrupted else None
    common.finish(signal_number, common.NOTHING_FOUND * (found.certificate is None))


def _print(found: Hunt, n: int, memory: int) -> None:
    tried = f"every instance of up to {found.exhausted} requests and {memory} tokens of memory"
    if found.exhausted < n:
        tried += f", and of up to {n} some of them"
    print(f"tried {found.tried:,} instances: {tried}")
    if found.livelocks:
        print(f"{found.livelocks:,} of them end in a livelock and have no ratio")
    certificate = found.certificate
    if certificate is None or found.ratio is None:
        judged = (
            "no policy was worse than the optimum" if found.policies else "pausing is worth nothing"
        )
        print(f"{judged} on any")
        return
    checked = "proved and verified" if found.proved and found.verified else "not proved"
    if found.verified and not found.proved:
        checked = "verified, and at least that"
    if found.runs is not None:
        print("optimum of runs over the optimum with pauses:")
    print(
        f"ratio {found.value} / {certificate.objective} = {float(found.ratio):.4f} ({checked}), "
        f"memory {certificate.instance.memory}"
    )
    common.print_rows(
        [
            {
                "request": str(request.id),
                "arrival": request.arrival,
                "prompt": request.prompt,
                "output": request.output,
            }
            for request in certificate.instance
        ]
    )
    if found.scope is not Scope.RUNS:
        common.say(found.scope.sentence)
