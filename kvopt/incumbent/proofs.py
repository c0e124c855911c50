"""Proofs of checked lower bounds: data that proves them from the instance alone.

Certificates have them as they are: fields are members of objects in JSON.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace


class Tokens(Struct, frozen=True, tag_field="name", tag="tokens"):
    """Prices of a token, at all times from the first one on; 0 before and after.

    Parameters
    ----------
    first
        At least 1.
    numerators
        None is negative.
    """

    first: int
    numerators: tuple[int, ...]


class Slots(Struct, frozen=True, tag_field="name", tag="slots"):
    """Prices of slots, by which large requests are counted, see `kvopt.bounds.slots`.

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


class Prefixes(Struct, frozen=True, tag_field="name", tag="prefixes"):
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


class MachinePrices(Struct, frozen=True, tag_field="name", tag="machine", omit_defaults=True):
    """Prices of machine time in seconds, see `kvopt.bounds.slo_ceiling`.

    Parameters
    ----------
    times
        Ascending; a price holds after one of them, up to the next one.  At all other times it is 0.
    numerators
        Prices in these intervals.
    lines
        Positions of the lines of the model that give the machine time of requests.
    reach
        Requests that leave others at most so much time pay for fixed parts by their prompts
        (Theorem 6.6); 0 if all pay by the tokens that they hold.
    """

    times: tuple[int, ...]
    numerators: tuple[int, ...]
    lines: tuple[int, ...]
    reach: int = 0


class PriceProof(Struct, frozen=True, tag_field="kind", tag="prices"):
    """Integer prices of resources over time.

    `kvopt.bounds.prices` evaluates and explains the bound on total latency, and
    `kvopt.bounds.slo_ceiling` that on the requests that attain their service levels.  Where memory
    has a block size, whole blocks are paid for.

    Parameters
    ----------
    denominator
        That of all prices, at least 1.
    resources
        In rounds tokens once, others perhaps; in seconds the time of machines.
    """

    denominator: int
    resources: tuple[Tokens | Slots | Prefixes | MachinePrices, ...]

    def __post_init__(self) -> None:
        lowest = (min(r.numerators, default=0) for r in self.resources if isinstance(r, Tokens))
        if self.denominator < 1 or min(lowest, default=0) < 0:
            raise ValueError("prices must not be negative, and their denominator is at least 1")

    @property
    def tokens(self) -> Tokens:
        """Prices of tokens."""
        (tokens,) = (resource for resource in self.resources if isinstance(resource, Tokens))
        return tokens

    @property
    def numerators(self) -> tuple[int, ...]:
        """Prices of a token at the times 1, 2, ..., times the denominator."""
        return (0,) * (self.tokens.first - 1) + self.tokens.numerators

    @property
    def unit(self) -> int:
        """Denominator of payments, for shares of prefixes too."""
        shares = (
            resource.denominator for resource in self.resources if isinstance(resource, Prefixes)
        )
        return math.prod(shares, start=self.denominator)

    def later(self, by: int) -> PriceProof:
        """Return the same prices of tokens, or of machine time, so much later."""
        (prices,) = self.resources
        if isinstance(prices, MachinePrices):
            moved = replace(prices, times=tuple(time + by for time in prices.times))
            return PriceProof(self.denominator, (moved,))
        return PriceProof(self.denominator, (replace(self.tokens, first=self.tokens.first + by),))


def token_prices(
    numerators: Sequence[int], denominator: int, others: Sequence[Slots | Prefixes] = ()
) -> PriceProof:
    """Return the proof by prices of a token at the times 1, 2, ..., and of other resources.

    Examples
    --------
    >>> token_prices([0, 0, 5, 0], 9).resources
    (Tokens(first=3, numerators=(5, 0)),)
    """
    first = next((t for t, price in enumerate(numerators, 1) if price), 1)
    return PriceProof(denominator, (Tokens(first, tuple(numerators[first - 1 :])), *others))


Staircase = tuple[int, ...]
"""Thresholds, ascending, from 1 to M: see `kvopt.bounds.staircases`."""


class VolumeProof(Struct, frozen=True, tag_field="kind", tag="volume", omit_defaults=True):
    """A bound by volumes, see `kvopt.bounds.volume`: it needs no data except the instance.

    Parameters
    ----------
    staircases
        Staircases whose volumes count in addition to memory, see `kvopt.bounds.staircases`.
    """

    staircases: tuple[Staircase, ...] = ()


class StatePrices(Struct, frozen=True):
    """Integer prices of states at some times; in between they are interpolated.

    A state (h, r) is an active request that holds h tokens and has r more rounds to go.
    ``docs/theory/configurations.md`` proves the bound.

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


class ConfigurationProof(Struct, frozen=True, tag_field="kind", tag="configurations"):
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
        cost-to-go bounds, and ``kept`` is a lower bound on the effort of a check.
    """

    stages: tuple[StatePrices, ...]
    target: int | None = None
    searched: bool = False
    kept: tuple[int, ...] = ()
    cuts: tuple[int, ...] = ()


class BranchProof(Struct, frozen=True, tag_field="kind", tag="branches"):
    """A tree of cases in each of which sums of starts prove a bound, see `kvopt.bounds.branches`.

    Parameters
    ----------
    target
        The bound is about schedules of a smaller total latency; others are no better.
    branches
        Of each node with children, a case before its children: a request and those that may be
        active at its completion, or -1 - i and a time to which request i starts, or later.
    leaves
        Of each node without children its place among all nodes, a denominator, and pairs of a row
        and its multiplier.
    """

    target: int
    branches: tuple[tuple[int, ...], ...]
    leaves: tuple[tuple[int, ...], ...]


class PartProof(Struct, frozen=True, rename={"begin": "from"}):
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
    proof: PriceProof | VolumeProof | ConfigurationProof | BranchProof


class SplitProof(Struct, frozen=True, tag_field="kind", tag="split"):
    """The bounds of parts of the requests, which add up.

    Parameters
    ----------
    parts
        In order of time, the first one from the first arrival or before.
    """

    parts: tuple[PartProof, ...]


class SharesProof(Struct, frozen=True, tag_field="kind", tag="shares", omit_defaults=True):
    """The proof of a bound in seconds, with the instance and the model.

    Parameters
    ----------
    lines
        Positions of the lines of the model that give the machine time of requests.
    weights
        For each request a number in 0 .. 64 times its weight, in parts of 64; empty if all are the
        largest ones.
    company
        Shares of interference; empty if all are 0.
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


class SharedRoundsProof(
    Struct, frozen=True, tag_field="kind", tag="shared-rounds", omit_defaults=True
):
    """Prices of rounds that active requests share, and of machine time, in seconds.

    `kvopt.bounds.shared_rounds` evaluates and explains the bound.

    Parameters
    ----------
    rows
        Sets of lines of the model, by their positions; each bounds rounds from below.
    unit
        Denominator of all prices, a multiple of 64.
    cell
        Nanoseconds of a cell; the first one begins with the first arrival.
    fixed
        For each request the price of a round when it arrives.
    slopes
        By how much this price falls in each nanosecond, to 0 at the lowest.
    interference
        Parts of the weights of requests, in parts of 64.
    row_prices
        For each row the price of machine time in each cell; the first row comes to what rounds pay
        in addition.
    by_memory
        As of `SharesProof`.
    block_shares
        With prefixes a weight of each request in each period from that of its arrival on; users
        count their part of a block by these.  Without them requests hold constant shares.
    period
        Cells of a period.
    grown
        Parts of the weights, in parts of 64, whose interference grows with the work that arrives.
    backlog
        In each part of windows the price of the backlog at a border of cells, for each request.
    waits
        For each request the price of waiting, times its prompt's work (`kvopt.bounds.backlog`).
    """

    rows: tuple[tuple[int, ...], ...]
    unit: int
    cell: int
    fixed: tuple[int, ...]
    slopes: tuple[int, ...]
    interference: tuple[int, ...]
    row_prices: tuple[tuple[int, ...], ...]
    by_memory: int = 64
    block_shares: tuple[tuple[int, ...], ...] = ()
    period: int = 0
    grown: tuple[int, ...] = ()
    backlog: tuple[tuple[int, ...], ...] = ()
    waits: tuple[int, ...] = ()


Proof = (
    PriceProof
    | VolumeProof
    | ConfigurationProof
    | BranchProof
    | SplitProof
    | SharesProof
    | SharedRoundsProof
)

_MAX_TIMES = 10_000_000
"""Limit of the times of prices of parts on one clock."""


def prices_of(proof: Proof | None) -> PriceProof | None:
    """Return the prices of tokens in a proof, those of its parts on one clock.

    None if other resources have prices too, or they are too far apart for a list of all times.

    Examples
    --------
    >>> late = PartProof(3, token_prices((1, 2), 2))
    >>> prices_of(SplitProof((PartProof(0, token_prices((1,), 3)), late))).numerators
    (2, 0, 0, 3, 6)
    """
    if isinstance(proof, PriceProof):
        is_near = proof.tokens.first <= _MAX_TIMES
        return proof if len(proof.resources) == 1 and is_near else None
    parts = proof.parts if isinstance(proof, SplitProof) else ()
    begun = ((part.begin, prices_of(part.proof)) for part in parts)
    priced = [(begin, prices) for begin, prices in begun if prices is not None]
    if not priced:
        return None
    longest = max(begin + len(prices.numerators) for begin, prices in priced)
    if longest > _MAX_TIMES:
        return None
    over = math.lcm(*(prices.denominator for _, prices in priced))
    numerators = [0] * longest
    for begin, prices in priced:
        for after, numerator in enumerate(prices.numerators):
            numerators[begin + after] += numerator * (over // prices.denominator)
    return token_prices(numerators, over)


def lines_of(proof: Proof) -> tuple[int, ...]:
    """Return the lines of the model by which a proof in seconds counts machine time.

    Of shared rounds these are the last row, which counts prompts most.
    """
    assert isinstance(proof, SharesProof | SharedRoundsProof), "only in seconds"
    return proof.lines if isinstance(proof, SharesProof) else proof.rows[-1]


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
