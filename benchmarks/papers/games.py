"""Games of jaillet-2025: the adversary waits for the policy's first move, then answers it.

    python benchmarks/papers/games.py DIR [--time-limit 30] [--jobs N] [--small]

plays both games against seven schedulers, runs the study ``adversary.toml`` of constructions
against single rules, keeps all certificates in DIR, and judges the claims of the papers.  The same
command goes on with what is left.

A policy that is deterministic and online starts the first request at a round that does not
depend on later arrivals.  So a game runs the policy on that request alone, and builds the rest of
the instance around the chosen round.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isqrt
from pathlib import Path

from adversaries import adversary

from kvopt import (
    Certificate,
    Instance,
    InvalidInput,
    KvoptError,
    Request,
    Schedule,
    certify,
    read_certificate,
    run,
    write_certificate,
)
from kvopt.studies import (
    Record,
    StudiedInstance,
    StudyResult,
    read_study,
    run_study,
)

SOURCES = {"thm-4.1": "jaillet-2025-v2 appendix B.1", "v1-thm-6.2": "jaillet-2025-v1 theorem 6.2"}
SIZES = {"thm-4.1": (16, 64, 256, 1024), "v1-thm-6.2": (20, 80, 320)}
"""Tokens of the cache, at least 4."""
POLICIES = ("mc-sf", "fcfs", "svf", "mc-sf-total", "h-sf", "sorted-f:phase1=swap", "a-max")
"""Deterministic, and without knowledge of later arrivals: the games are for no others."""
STUDY = Path(__file__).parent / "adversary.toml"
EPSILON = 0.1
"""Share of M that a prompt takes in theorem 6.2."""


def shape(game: str, memory: int) -> tuple[int, int, int]:
    """Return the prompt of all requests, the rounds left of the long one, and the others' number.

    In theorem 4.1 half of M requests (1, 1) arrive when the long one has about sqrt(M) / 2 rounds
    left; in theorem 6.2 epsilon M requests (epsilon M, 1) when it leaves no room for one.
    """
    if game == "thm-4.1":
        return 1, isqrt(memory) // 2 - 1, memory // 2
    share = round(EPSILON * memory)
    if not 1 <= share < memory / 2:
        raise InvalidInput(f"{share} is not in 1 .. M / 2 for M = {memory}", field="epsilon M")
    return share, share, share


def play(game: str, policy: str, memory: int) -> Instance:
    """Play a game against a policy and return the resulting instance: the long request first."""
    prompt, left, count = shape(game, memory)
    long = Request(0, prompt, memory - prompt)
    start = run(Instance(memory, [long]), policy).starts[0]
    if start is None:
        raise InvalidInput(f"{policy} never starts the first request of {game}", field="policies")
    notes = {"game": game, "source": SOURCES[game], "policy": policy, "start": start}
    others = [Request(start + long.output - left, prompt, 1)] * count
    return Instance(memory, [long, *others], f"{game}-m{memory}-{policy}", notes)


def reference(instance: Instance) -> Schedule:
    """Return the schedule that the proof compares a policy with.

    It is the better of two: the first request waits until all others are done, or it starts at once
    and others that arrive before its end wait for it.
    """
    long, *short = instance.requests
    arrival = max((request.arrival for request in short), default=0)
    waiting = _batches(instance, arrival)
    last = max((start + 1 for start in waiting), default=0)
    following = _batches(instance, max(arrival, long.output))
    found = (Schedule(instance, [last, *waiting]), Schedule(instance, [0, *following]))
    return min(found, key=lambda schedule: schedule.objective)


def _batches(instance: Instance, begin: int) -> list[int]:
    """Return starts of all requests except the first, as many in a round as fit alone."""
    short = instance.requests[1:]
    together = instance.memory // max((request.peak for request in short), default=1)
    return [begin + position // together for position in range(len(short))]


def played(folder: Path, seconds: float, sizes: int | None) -> Iterator[Record]:
    """Certify each game against each policy, unless that is done; yield records."""
    for game, memories in SIZES.items():
        for memory in memories[:sizes]:
            for policy in POLICIES:
                instance = play(game, policy, memory)
                path = folder / "games" / f"{str(instance.name).replace(':', '-')}.cert.json"
                if path.exists():
                    certificate = read_certificate(path)
                else:
                    certificate = certify(
                        instance, [policy], reference(instance), time_limit=seconds
                    )
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write_certificate(certificate, path)
                    print(f"{instance.name}: done", file=sys.stderr, flush=True)
                yield record_of(certificate, game, policy, path.relative_to(folder))


def record_of(certificate: Certificate, game: str, policy: str, path: Path) -> Record:
    """Return the record of a game as that of a study."""
    instance = certificate.instance
    run_of_it = next(run for run in certificate.runs if run.policy == policy)
    described = StudiedInstance(
        str(instance.name), game, {}, None, len(instance), instance.memory, instance.hash
    )
    return Record(
        key=f"{instance.name}",
        study="adversary",
        instance=described,
        policy=policy,
        outcome="completed" if run_of_it.is_complete else "livelock",
        value=run_of_it.objective,
        upper=certificate.objective,
        lower=certificate.lower_bound,
        certificate=path.as_posix(),
    )


def constructions(options: argparse.Namespace) -> StudyResult:
    """Run the study of constructions against single rules, or what is left of it."""
    study = read_study(STUDY)
    limits = tuple(replace(each, time_limit=options.time_limit) for each in study.limits)
    return run_study(replace(study, limits=limits), options.folder, jobs=options.jobs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, run the study, and print the verdicts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--time-limit", type=float, default=30, help="seconds of each instance")
    parser.add_argument("--jobs", type=int, default=1, help="instances of the study at a time")
    parser.add_argument("--small", action="store_true", help="the smallest size of each game alone")
    options = parser.parse_args(arguments)
    try:
        games = [*played(options.folder, options.time_limit, 1 if options.small else None)]
        rest = None if options.small else constructions(options)
    except KvoptError as error:
        print(error, file=sys.stderr)
        return 2
    for verdict in adversary([*games, *(rest.records if rest else ())]):
        print(verdict, flush=True)
    return 128 + rest.signal_number if rest and rest.signal_number else 0


if __name__ == "__main__":
    sys.exit(main())
