"""``hunt``: the instance on which a policy is furthest from the optimum, among small ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, Unpack

from kvopt import Certificate, InvalidInput, Policy, certify
from kvopt import policy as policy_from
from kvopt.certificates.files import certificate_text
from kvopt.errors import Stopped
from kvopt.experiments.hunting.judge import Found, Judge, instance_of, shrunk
from kvopt.experiments.hunting.space import Space, needs_order
from kvopt.incumbent.limits import LimitOptions, limits_of
from kvopt.kernels.clock import wall_time
from kvopt.problem.instance_files import instance_to_json
from kvopt.problem.requests import checked_integer
from kvopt.problem.scopes import Scope, least_scope
from kvopt.simulate.policies.servers import uncovered
from kvopt.verify import verify_text

MOST_REQUESTS = 12
"""Limit of the requests of an instance; beyond, its optimum takes more than milliseconds."""

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

Watch = Callable[[Fraction, int], None]
"""Called with the worst ratio so far and the number of instances tried when it grows."""


@dataclass(frozen=True)
class Hunt:
    """Result of a hunt.

    Parameters
    ----------
    policies
        Policies whose worst instance was searched for; without any, the optimum of runs is compared
        with the optimum of a wider scope.
    certificate
        The worst instance with its optimum and the runs on it; None if no policy was ever worse
        than the optimum.
    verified
        Whether `kvopt.verify` agrees with the certificate.
    exhausted
        Every instance of up to so many requests was tried, with every memory up to the largest.
    tried, livelocks
        Instances tried, and those that a policy never finished.
    interrupted
        Whether Ctrl-C ended it.
    seconds
        Wall time.
    scope
        Scope of the optimum.
    runs
        Without policies, the certificate of the optimum of runs.
    """

    policies: tuple[str, ...]
    certificate: Certificate | None
    verified: bool
    exhausted: int
    tried: int
    livelocks: int
    interrupted: bool
    seconds: float
    scope: Scope = Scope.RUNS
    runs: Certificate | None = None

    @property
    def value(self) -> int | None:
        """Total latency of the best of the policies, or a lower bound on them."""
        if self.certificate is None:
            return None
        if self.runs is not None:
            return self.runs.lower_bound
        values = [run.objective for run in self.certificate.runs if run.is_complete]
        return min(values, default=None)

    @property
    def sides(self) -> list[Certificate]:
        """Certificates of all optima."""
        return [found for found in (self.certificate, self.runs) if found is not None]

    @property
    def proved(self) -> bool:
        """Whether the optimum, or both optima, are proved, so that the ratio is exact."""
        sides = self.sides
        return bool(sides) and all(found.objective == found.lower_bound for found in sides)

    @property
    def ratio(self) -> Fraction | None:
        """The certified ratio: the value over the latency of a checked schedule."""
        found = self.certificate
        if found is None or self.value is None or not found.objective:
            return None
        return Fraction(self.value, found.objective)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt hunt --json`` prints."""
        found, ratio = self.certificate, self.ratio
        return {
            "policies": list(self.policies),
            "ratio": ratio and float(ratio),
            "value": self.value,
            "optimum": found and found.objective,
            "lower_bound": found and found.lower_bound,
            "proved": self.proved,
            "scope": str(self.scope),
            "verified": self.verified,
            "instance": found and instance_to_json(found.instance),
            "values": {run.policy: run.objective for run in found.runs} if found else {},
            "exhausted": self.exhausted,
            "tried": self.tried,
            "livelocks": self.livelocks,
            "seconds": round(self.seconds, 3),
        }


def hunt(
    policies: Sequence[str],
    *,
    n: int,
    memory: int,
    last_arrival: int = 0,
    equal_prompts: bool = False,
    scope: Scope | str | None = None,
    watch: Watch = lambda *_: None,
    **options: Unpack[LimitOptions],
) -> Hunt:
    """Look for the small instance on which the policies are furthest from the optimum.

    Without a policy, and with a scope in which requests may pause, it is the instance on which
    pausing is worth most: the optimum of runs is compared with that of the scope.

    Parameters
    ----------
    policies
        Schedulers, ``NAME[:key=value,...]``.  With several, the best of them on an instance
        counts, so the result is bad for all.
    n, memory
        At most so many requests, and at most so much memory.
    last_arrival
        Arrivals are 0 .. this.
    equal_prompts
        Whether all requests of an instance have the same prompt.
    scope
        Scope of the optimum; by default the scope that the policies need.
    watch
        Receives progress.
    options
        ``time_limit``: seconds for search, shrinking and certificate, 60 by default;
        ``seed`` of the local search.

    Examples
    --------
    >>> found = hunt(["mc-sf"], n=4, memory=4, time_limit=20)
    >>> found.ratio, found.proved, found.verified
    (Fraction(11, 8), True, True)
    """
    began = wall_time()
    limits = limits_of({"time_limit": 60.0, **options})
    chosen = [policy_from(label) for label in policies]
    covered = _scope(scope, chosen, policies)
    checked_integer(memory, "--memory", 1)
    checked_integer(last_arrival, "--last-arrival", 0)
    if checked_integer(n, "--n", 1) > MOST_REQUESTS:
        raise InvalidInput(f"must be at most {MOST_REQUESTS}, got {n}", field="--n")
    space = Space(memory, n, last_arrival, equal_prompts, needs_order(chosen))
    deadline, end = began + _SEARCH_SHARE * limits.time_limit, began + limits.time_limit
    judge = Judge(chosen, lambda: wall_time() > deadline, covered)
    search = Chase(space, judge, Random(limits.seed), watch, deadline)
    interrupted = search.run()
    certificate = runs = None
    if search.worst is not None:
        patient = Judge(chosen, lambda: wall_time() > end, covered)
        try:
            small = shrunk(search.worst, patient, space.holds)
        except KeyboardInterrupt:  # the result so far is reported
            small, interrupted = search.worst, True
        runs, certificate = _certified(small, policies, covered, end - wall_time())
    sides = [certificate_text(found) for found in (certificate, runs) if found is not None]
    verified = bool(sides) and all(verify_text(text).valid for text in sides)
    return Hunt(
        tuple(policies),
        certificate,
        verified,
        search.exhausted,
        judge.tried,
        judge.livelocks,
        interrupted,
        wall_time() - began,
        covered,
        runs,
    )


def _scope(given: Scope | str | None, chosen: Sequence[Policy], labels: Sequence[str]) -> Scope:
    """Return the scope of the optimum; refuse one that does not cover the policies."""
    needed = [policy.scope(rounds=True) for policy in chosen]
    scope = least_scope(needed) if given is None else Scope.parse(given)
    if not chosen and not scope.covers(Scope.PAUSES):
        reason = f"needs at least one; none goes with --scope {Scope.PAUSES}"
        raise InvalidInput(reason, field="--policy")
    for each, label in zip(needed, labels, strict=True):
        if not scope.covers(each):
            raise InvalidInput(uncovered(each), field=f"policy {label}")
    return scope


@dataclass
class Chase:
    """Enumeration and local search of a hunt, and the worst instance of both."""

    space: Space
    judge: Judge
    rng: Random
    watch: Watch
    deadline: float
    worst: Found | None = None
    exhausted: int = 0

    @property
    def level(self) -> Fraction:
        """The worst ratio so far."""
        return Fraction(1) if self.worst is None else self.worst.ratio

    def run(self) -> bool:
        """Search until time is up or no size remains; return whether Ctrl-C ended it."""
        try:
            self.exhaust()
            if self.exhausted < self.space.most:
                self.climb()
        except Stopped:
            pass
        except KeyboardInterrupt:
            return True
        return False

    def exhaust(self) -> None:
        """Try every instance of one request, then of two, and so on until time is over."""
        began = wall_time()
        for count in range(1, self.space.most + 1):
            now = wall_time()
            each = (now - began) / self.judge.tried if self.judge.tried > 1000 else _SECONDS_EACH
            if self.space.size(count) * each > _ENUMERATION_SHARE * (self.deadline - now):
                return
            for case in self.space.every(count):
                ratio = self.judge.at_least(case, self.level, strictly=True)
                if ratio is not None:
                    self._keep(Found(case, ratio))
            self.exhausted = count

    def climb(self) -> None:
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
            self.watch(found.ratio, self.judge.tried)


def _certified(
    found: Found, policies: Sequence[str], scope: Scope, seconds: float
) -> tuple[Certificate | None, Certificate]:
    """Return the certificate, and before it that of runs if there are no policies."""
    memory, requests = found.case
    name = f"hunt-{'-'.join(policies) or scope}-n{len(requests)}-m{memory}"
    notes = {"found_by": "kvopt hunt", "policies": list(policies)}
    instance = instance_of(found.case, name, notes)
    # With pauses more time seldom closes a remaining gap.
    limit = _LEAST_PROOF if scope.covers(Scope.PAUSES) else max(seconds, _LEAST_PROOF)
    if policies:
        return None, certify(instance, policies, scope=scope, time_limit=limit)
    runs = certify(instance, time_limit=max(seconds, _LEAST_PROOF))
    return runs, certify(instance, schedule=runs.upper, scope=scope, time_limit=limit)
