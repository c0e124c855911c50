"""Hunt for the small instance on which schedulers are furthest from the optimum, and certify it.

    python benchmarks/hunts/hunt.py --policy mc-sf --n 4 --memory 9 [--equal-prompts]
                                    [--last-arrival A] [--time-limit S] [--seed K] [-o OUT.json]
    python benchmarks/hunts/hunt.py --scope pauses --n 2 --memory 6 --last-arrival 3

With several ``--policy`` the best of them on an instance counts, so the instance is bad for all.
With ``--scope pauses`` and no policy it is the instance on which pausing is worth most: the optimum
of runs is compared with that of pauses.

It tries every instance while these are few, then searches locally.  It shrinks the worst instance,
certifies it and verifies the certificate.  Exit status: 0 when a policy was worse than the optimum,
3 when none ever was, 130 after Ctrl-C, 2 for input that is refused.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from pathlib import Path
from random import Random
from time import monotonic
from typing import NamedTuple

from space import Case, Space, changed, needs_order

from kvopt import (
    Certificate,
    Instance,
    InvalidInput,
    KvoptError,
    Policy,
    Problem,
    Request,
    Scope,
    Stopped,
    certify,
    policy,
    run,
    tiny_optimum,
    verify,
    write_certificate,
)

MOST_REQUESTS = 12
"""Limit of the requests of an instance, that of `kvopt.tiny_optimum`."""

_SECONDS_EACH = 2e-4
"""Expected seconds for an instance, until a thousand were tried."""

_ENUMERATION_SHARE = 0.6
"""A size is enumerated if this should take at most this share of the remaining time."""

_SEARCH_SHARE = 0.8
"""Share of the time for the search; the rest is for shrinking and the certificate."""

_LEAST_PROOF = 5.0
"""Least seconds for a proof; for so few requests it takes one or two."""

_PATIENCE = 400
"""Steps without anything better before a local search begins anew."""


class Found(NamedTuple):
    """An instance with a ratio of at least ``ratio`` to the optimum."""

    case: Case
    ratio: Fraction


@dataclass
class Judge:
    """Evaluates instances by the best of the policies on them, or without any by runs.

    Parameters
    ----------
    policies
        Policies to compare with the optimum of the scope.
    scope
        Scope of the optimum.
    end
        Time at which it stops.
    tried, livelocks
        Instances evaluated, and those that a policy never finished: they have no ratio.
    """

    policies: Sequence[Policy]
    scope: Scope
    end: float
    tried: int = 0
    livelocks: int = 0

    def is_late(self) -> bool:
        """Whether its time is over."""
        return monotonic() > self.end

    def at_least(self, case: Case, ratio: Fraction, *, strictly: bool = False) -> Fraction | None:
        """Return the ratio of an instance if it is not below, or is above, the given one."""
        self.tried += 1
        instance = instance_of(case)
        value = self._value(instance)
        if value is None:
            self.livelocks += 1
            return None
        # value / optimum > ratio means optimum < value / ratio
        share, rest = divmod(value * ratio.denominator, ratio.numerator)
        below = share + (rest > 0 or not strictly)
        wide = Problem(instance, scope=self.scope)
        optimum = tiny_optimum(wide, below=below, should_stop=self.is_late)
        return Fraction(value, optimum) if optimum else None

    def _value(self, instance: Instance) -> int | None:
        """Return the least total latency of the policies, None if one never finishes."""
        if not self.policies:
            if self.is_late():
                raise Stopped
            return tiny_optimum(instance, should_stop=self.is_late)
        values = []
        for each in self.policies:
            value = run(instance, each, should_stop=self.is_late).objective
            if value is None:
                return None
            values.append(value)
        return min(values)


def instance_of(case: Case, name: str | None = None, notes: object = None) -> Instance:
    """Return a case as an instance."""
    memory, requests = case
    return Instance(memory, [Request(*triple) for triple in requests], name, notes)


# ---- searching --------------------------------------------------------------------------------


class Chase:
    """Enumeration and local search of a hunt, and the worst instance of both."""

    def __init__(self, space: Space, judge: Judge, seed: int) -> None:
        self.space, self.judge, self.rng = space, judge, Random(seed)
        self.worst: Found | None = None
        self.exhausted = 0

    @property
    def level(self) -> Fraction:
        """The worst ratio so far."""
        return Fraction(1) if self.worst is None else self.worst.ratio

    def run(self) -> bool:
        """Search until time is up or no size remains; return whether Ctrl-C ended it."""
        try:
            self.exhaust()
            if self.exhausted < self.space.most:
                self.search()
        except Stopped:
            pass
        except KeyboardInterrupt:
            return True
        return False

    def exhaust(self) -> None:
        """Try every instance of one request, then of two, and so on until time is over."""
        began = monotonic()
        for count in range(1, self.space.most + 1):
            now = monotonic()
            many = self.judge.tried > 1000
            seconds = (now - began) / self.judge.tried if many else _SECONDS_EACH
            if self.space.size(count) * seconds > _ENUMERATION_SHARE * (self.judge.end - now):
                return
            for case in self.space.every(count):
                ratio = self.judge.at_least(case, self.level, strictly=True)
                if ratio is not None:
                    self._keep(Found(case, ratio))
            self.exhausted = count

    def search(self) -> None:
        """Change one thing at a time and keep results as bad or worse, from many instances."""
        while True:
            case = self.space.drawn(self.rng)
            if self.worst is not None and self.rng.random() < 0.3:
                case = self.worst.case
            level, idle = self.judge.at_least(case, Fraction(1)) or Fraction(1), 0
            while idle < _PATIENCE:
                other = self.space.neighbour(case, self.rng)
                ratio = self.judge.at_least(other, level)
                idle += 1
                if ratio is not None:
                    idle = idle if ratio == level else 0
                    case, level = other, ratio
                    self._keep(Found(case, ratio))

    def _keep(self, found: Found) -> None:
        if found.ratio > self.level:
            self.worst = found
            if sys.stderr.isatty():
                print(f"{found.ratio} after {self.judge.tried:,} instances", file=sys.stderr)


def shrunk(found: Found, judge: Judge, holds: Callable[[Case], bool]) -> Found:
    """Return an instance of the same ratio or more that nothing can be taken from.

    Whole requests go first, then tokens of the cache, then ones of single numbers.
    """
    with suppress(Stopped):  # the instance so far is as bad
        while True:
            for case in filter(holds, _smaller(found.case)):
                ratio = judge.at_least(case, found.ratio)
                if ratio is not None:
                    found = Found(case, ratio)
                    break
            else:
                break
    return found


def _smaller(case: Case) -> Iterator[Case]:
    memory, requests = case
    for i in range(len(requests)):
        yield memory, requests[:i] + requests[i + 1 :]
    for column in (1, 2):  # all prompts, or all outputs, with the cache
        yield memory - 1, tuple(changed(request, column, -1) for request in requests)
    yield memory - 1, requests
    yield memory, tuple(changed(request, 1, -1) for request in requests)
    for i, request in enumerate(requests):
        for column in range(3):
            yield memory, (*requests[:i], changed(request, column, -1), *requests[i + 1 :])


# ---- proving and reporting --------------------------------------------------------------------


def certified(
    case: Case, labels: Sequence[str], scope: Scope, seconds: float
) -> tuple[Certificate | None, Certificate]:
    """Return the certificate, and before it that of runs if there are no policies."""
    memory, requests = case
    name = f"hunt-{'-'.join(labels) or scope}-n{len(requests)}-m{memory}"
    instance = instance_of(case, name, {"found_by": "hunt.py", "policies": list(labels)})
    # With pauses more time seldom closes a remaining gap.
    limit = _LEAST_PROOF if scope.covers(Scope.PAUSES) else max(seconds, _LEAST_PROOF)
    if labels:
        return None, certify(instance, labels, scope=scope, time_limit=limit)
    runs = certify(instance, time_limit=max(seconds, _LEAST_PROOF))
    return runs, certify(instance, schedule=runs.upper, scope=scope, time_limit=limit)


def is_valid(certificate: Certificate) -> bool:
    """Whether `kvopt.verify` agrees with a certificate."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "worst.cert.json"
        write_certificate(certificate, path)
        return verify(path).valid


def report(runs: Certificate | None, certificate: Certificate) -> Iterator[str]:
    """Yield the lines about a certified instance."""
    sides = [side for side in (certificate, runs) if side is not None]
    verified = all(map(is_valid, sides))
    proved = all(side.objective == side.lower_bound for side in sides)
    checked = "proved and verified" if proved and verified else "not proved"
    if verified and not proved:
        checked = "verified, and at least that"
    value, optimum = _values(runs, certificate)
    if runs is not None:
        yield "optimum of runs over the optimum with pauses:"
    yield (
        f"ratio {value} / {optimum} = {value / optimum:.4f} ({checked}), "
        f"memory {certificate.instance.memory}"
    )
    yield "request  arrival  prompt  output"
    for r in certificate.instance:
        yield f"{r.id:7}{r.arrival:9}{r.prompt:8}{r.output:8}"


def _values(runs: Certificate | None, certificate: Certificate) -> tuple[int, int]:
    """Return both sides of the certified ratio: a run or a bound, and a checked schedule."""
    values = [each.objective for each in certificate.runs if each.is_complete]
    value = min(values, default=None) if runs is None else runs.lower_bound
    assert value is not None, "the policies completed it"
    assert certificate.objective, "every request takes time"
    return value, certificate.objective


def scope_of(given: str | None, labels: Sequence[str], policies: Sequence[Policy]) -> Scope:
    """Return the scope of the optimum, by default that of the policies; refuse a narrower one."""
    needed = [each.scope(rounds=True) for each in policies]
    least = reduce(Scope.joined, needed, Scope.RUNS)
    if Scope.RESTARTS.covers(least):
        least = Scope.RUNS  # evictions gain nothing in hindsight
    scope = least if given is None else Scope.parse(given)
    if not policies and not scope.covers(Scope.PAUSES):
        raise InvalidInput(f"needs one; none goes with --scope {Scope.PAUSES}", field="--policy")
    for each, label in zip(needed, labels, strict=True):
        if not scope.covers(each):
            raise InvalidInput(f"needs --scope {each}", field=f"--policy {label}")
    return scope


def hunt(options: argparse.Namespace) -> int:
    """Hunt, print what was found, and return the exit status."""
    labels = options.policy or []
    policies = [policy(label) for label in labels]
    scope = scope_of(options.scope, labels, policies)
    began = monotonic()
    end = began + options.time_limit
    space = Space(
        options.memory,
        options.n,
        options.last_arrival,
        options.equal_prompts,
        needs_order(policies),
    )
    judge = Judge(policies, scope, began + _SEARCH_SHARE * options.time_limit)
    chase = Chase(space, judge, options.seed)
    interrupted = chase.run()
    tried = (
        f"every instance of up to {chase.exhausted} requests and {space.memory} tokens of memory"
    )
    if chase.exhausted < space.most:
        tried += f", and of up to {space.most} some of them"
    print(f"tried {judge.tried:,} instances: {tried}")
    if judge.livelocks:
        print(f"{judge.livelocks:,} of them end in a livelock and have no ratio")
    if chase.worst is None:
        print(
            f"{'no policy was worse than the optimum' if labels else 'pausing is worth nothing'}"
            " on any"
        )
        return 130 if interrupted else 3
    worst = chase.worst
    try:
        worst = shrunk(worst, Judge(policies, scope, end), space.holds)
    except KeyboardInterrupt:  # the result so far is reported
        interrupted = True
    runs, certificate = certified(worst.case, labels, scope, end - monotonic())
    print("\n".join(report(runs, certificate)))
    if scope is not Scope.RUNS:
        print(scope.sentence, file=sys.stderr)
    if options.output:
        write_certificate(certificate, options.output)
        print(f"wrote {options.output}; kvopt verify checks it")
    return 130 if interrupted else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, and hunt."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-P", "--policy", action="append", help="NAME[:key=value,...]; repeatable")
    parser.add_argument("--scope", help="schedules of the optimum")
    parser.add_argument("--n", type=int, required=True, help="requests, at most")
    parser.add_argument("-m", "--memory", type=int, required=True, help="cache size, at most")
    parser.add_argument("-t", "--time-limit", type=float, default=60.0, help="seconds")
    parser.add_argument("--seed", type=int, default=0, help="of the local search")
    parser.add_argument("--equal-prompts", action="store_true", help="one prompt in an instance")
    parser.add_argument("--last-arrival", type=int, default=0, help="arrivals are 0 .. this")
    parser.add_argument("-o", "--output", type=Path, help="write the certificate")
    options = parser.parse_args(arguments)
    if not 1 <= options.n <= MOST_REQUESTS or options.memory < 1 or options.last_arrival < 0:
        parser.error(f"--n is 1 .. {MOST_REQUESTS}, --memory 1 or more, --last-arrival 0 or more")
    try:
        return hunt(options)
    except KvoptError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
