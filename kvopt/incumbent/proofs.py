"""Proofs of checked lower bounds: data that proves them from the instance alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Slots:
    """Integer prices of slots, by which large requests are counted, see `kvopt.bounds.slots`.

    Parameters
    ----------
    capacity
        Number of slots of each machine.
    times
        Ascending times at which prices are given; in between they change evenly.
    numerators
        Prices of one slot at these times.
    """

    capacity: int
    times: tuple[int, ...]
    numerators: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Shares of nodes of prefixes that users pay for, see `kvopt.bounds.shared_prices`.

    Parameters
    ----------
    denominator
        That of shares.
    times
        Ascending; shares are those of an interval after one of them, up to the next one.
    numerators
        For each node of each request, from the root, without those on all paths: its share in each
        interval.
    """

    denominator: int
    times: tuple[int, ...]
    numerators: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class PriceProof:
    """Integer prices of resources: of a token at the times ``1, 2, ...``, and perhaps of others.

    `kvopt.bounds.prices` evaluates and explains the bound.  Where memory has a block size, whole
    blocks are paid for.

    Parameters
    ----------
    numerators
        Price of a token at time t times ``denominator``, at position t - 1; none is negative.
    denominator
        At least 1.
    others
        Further resources.
    """

    numerators: tuple[int, ...]
    denominator: int
    others: tuple[Slots | Prefixes, ...] = ()

    def __post_init__(self) -> None:
        if self.denominator < 1 or min(self.numerators, default=0) < 0:
            raise ValueError("prices must not be negative, and their denominator is at least 1")

    @property
    def unit(self) -> int:
        """Denominator of payments, for shares of prefixes too."""
        shares = (each.denominator for each in self.others if isinstance(each, Prefixes))
        return math.prod(shares, start=self.denominator)


Staircase = tuple[int, ...]
"""Thresholds, ascending, from 1 to M: see `kvopt.bounds.staircases`."""


@dataclass(frozen=True, slots=True)
class VolumeProof:
    """A bound by volumes, see `kvopt.bounds.volume`: it needs no data except the instance.

    Parameters
    ----------
    staircases
        Staircases whose volumes count in addition to memory, see `kvopt.bounds.staircases`.
    """

    staircases: tuple[Staircase, ...] = ()


@dataclass(frozen=True, slots=True)
class StatePrices:
    """Integer prices of states at some times; in between they are interpolated.

    A state (h, r) is an active request that holds h tokens and has r more rounds to go.
    ``docs/configurations.md`` proves the bound.

    Parameters
    ----------
    denominator
        At least 1.
    peaks
        Pairs (peak, rounds): the states with h + r = peak and r = 0 .. rounds - 1 have prices.
    times
        Ascending; before the first and after the last no state has a price.
    numerators
        For each time the prices times ``denominator``: peak by peak, r upwards.
    """

    denominator: int
    peaks: tuple[tuple[int, int], ...]
    times: tuple[int, ...]
    numerators: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class ConfigurationProof:
    """Stages of state prices; each removes starts, which raises the bounds of later stages.

    Parameters
    ----------
    stages
        At least one; all have the same last time.
    target
        The proof is about schedules with a total latency below this, so the bound is at most
        this.  None if no start is removed.
    searched
        Whether an exhaustive search under the last prices found no schedule below the target.
    kept
        Labels that this search kept in each round, which estimates the time of a check.
    cuts
        For each time from the first arrival on, a lower bound on the cost of sets of states that
        are not kept, times the denominator of the last stage.  With these the search has
        completion bounds, and ``kept`` is a lower bound on the effort of a check.
    """

    stages: tuple[StatePrices, ...]
    target: int | None = None
    searched: bool = False
    kept: tuple[int, ...] = field(default=(), compare=False)
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchProof:
    """An exhaustive search under prices of tokens found no schedule below a target.

    Parameters
    ----------
    prices
        Prices by which partial schedules are dropped.
    target
        No schedule has a smaller total latency.
    kept, cuts
        As in `ConfigurationProof`.
    """

    prices: PriceProof
    target: int
    kept: tuple[int, ...] = field(default=(), compare=False)
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PartProof:
    """The proof of the bound of a part of the requests, see `kvopt.problem.parts`.

    Parameters
    ----------
    begin
        The part holds the requests that arrive from this round on and before the next part
        begins.  Times in the proof count from it.
    proof
        Proof of the part alone.
    """

    begin: int
    proof: PriceProof | VolumeProof | ConfigurationProof | SearchProof


@dataclass(frozen=True, slots=True)
class SplitProof:
    """The bounds of parts of the requests, which add up.

    Parameters
    ----------
    parts
        In order of time, the first one from the first arrival or before.
    """

    parts: tuple[PartProof, ...]


@dataclass(frozen=True, slots=True)
class SharesProof:
    """The proof of a bound in seconds, with the instance and the model.

    Parameters
    ----------
    lines
        Positions of the lines of the model that give the machine time of requests.
    weights
        For each request a number in 0 .. 64 times its weight, in parts of 64; empty if all are the
        largest ones.
    company
        Shares of company; empty if all are 0.
    mix
        Numbers of at least 1 by which the lines are mixed into one; empty if their maximum counts.
    parts
        Number of parts of the rounds after the first; 0 if a request is one part.
    by_memory
        How much of the fixed part of a round is paid by tokens in memory, in parts of 64; active
        requests pay the rest, as there is a limit of them.
    """

    lines: tuple[int, ...]
    weights: tuple[int, ...] = ()
    company: tuple[int, ...] = ()
    mix: tuple[int, ...] = ()
    parts: int = 0
    by_memory: int = 64


Proof = PriceProof | VolumeProof | ConfigurationProof | SearchProof | SplitProof | SharesProof

_MOST_TIMES = 10_000_000
"""Limit of the times of prices of parts on one clock."""


def prices_of(proof: Proof | None) -> PriceProof | None:
    """Return the prices of tokens in a proof, those of its parts on one clock.

    None if other resources have prices too, or they are too far apart for a list of all times.

    Examples
    --------
    >>> late = PartProof(3, PriceProof((1, 2), 2))
    >>> prices_of(SplitProof((PartProof(0, PriceProof((1,), 3)), late)))
    PriceProof(numerators=(2, 0, 0, 3, 6), denominator=6, others=())
    """
    if isinstance(proof, PriceProof):
        return None if proof.others else proof
    parts = proof.parts if isinstance(proof, SplitProof) else ()
    priced = [
        (part.begin, part.proof)
        for part in parts
        if isinstance(part.proof, PriceProof) and not part.proof.others
    ]
    if not priced:
        return None
    longest = max(begin + len(prices.numerators) for begin, prices in priced)
    if longest > _MOST_TIMES:
        return None
    over = math.lcm(*(prices.denominator for _, prices in priced))
    numerators = [0] * longest
    for begin, prices in priced:
        for after, numerator in enumerate(prices.numerators):
            numerators[begin + after] += numerator * (over // prices.denominator)
    return PriceProof(tuple(numerators), over)


@dataclass(frozen=True, slots=True)
class CheckedBound:
    """A lower bound that was re-evaluated in integers.

    Parameters
    ----------
    value
        No schedule has a smaller total latency.
    bounded_by
        The method that found it.
    proof
        Its proof.
    relaxations
        Names of the steps to the wider problem that the proof is about, see
        `kvopt.bounds.relaxations`.
    """

    value: int
    bounded_by: str
    proof: Proof
    relaxations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeadlinePrices:
    """Prices that bound the number of attained deadlines, see `kvopt.bounds.deadlines`.

    Parameters
    ----------
    times
        Borders, ascending: a price holds after one of them, up to the next one.  Before the first
        and after the last prices are 0.
    numerators
        Prices times the denominator, one fewer than borders; none is negative.
    denominator
        At least 1.
    lines
        In seconds, the positions of the lines that give the machine time of requests.
    """

    times: tuple[int, ...]
    numerators: tuple[int, ...]
    denominator: int
    lines: tuple[int, ...] = ()

    @property
    def paid(self) -> int:
        """The sum of the prices of all times, times the denominator."""
        lengths = map(int.__sub__, self.times[1:], self.times)
        return sum(map(int.__mul__, self.numerators, lengths))
