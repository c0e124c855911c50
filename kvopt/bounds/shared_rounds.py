"""Bound total latency in seconds by prices of rounds that active requests share, in integers.

The fixed part f(0) of a round is paid once, however many requests are active in it.  Let time be
cut into *cells*.  In each cell

* a *row* is a set of lines of the model whose maximum bounds rounds from below, and ``row_prices``
  are the prices of its machine time: a request pays them for its work by this row;
* a request pays for a round that it is in, ``fixed`` when it arrives and ``slopes`` less for each
  nanosecond after that.  All requests together pay no more than the fixed parts of the rows at
  their prices.  The first row has its price raised until that holds;
* what is left of the fixed parts is paid by tokens in memory, or by a limited number of requests.

``interference`` is the share of a request's latency, in parts of 64, that is bounded by its time
alone and the works of others in the window of that time.  ``docs/theory/seconds.md`` proves the
bound.

With prefixes ``block_shares`` say which part of a block each of its users pays for, by weights
that change every ``period`` cells.  They sum to at most 1, so that a block is held and read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kvopt.bounds.backlog import Queue, exact
from kvopt.bounds.cheapest_services import (
    CellGrid,
    CellPrices,
    Payments,
    RoundColumns,
    Shares,
    find_cheapest,
    in_kind,
)
from kvopt.bounds.prefix_shares import BlockUsers, in_periods, processed
from kvopt.bounds.seconds_evaluation import FULL, integers, longest
from kvopt.incumbent.proofs import SharedRoundsProof
from kvopt.kernels.loop_calls import map_ranges, quick
from kvopt.kernels.magnitudes import NEVER, fits
from kvopt.problem.arrays import Floats, Integers, Numbers
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.instance import Instance

_BEYOND = 2**300
"""Above all costs that numbers of instances and prices may lead to."""


class Rates(NamedTuple):
    """What rows cost: a row is a set of lines, and the last one is interference.

    Parameters
    ----------
    fixed
        f(0) of each row, in nanoseconds; 0 of the last one.
    token
        f(1) - f(0) of each row.
    kv
        What a token held costs.
    memory
        Tokens that may be held in a round.
    most_active
        Limit of the requests that are active in a round.
    by_memory
        What tokens pay of a fixed part, in parts of 64; active requests pay the rest.
    """

    fixed: Numbers
    token: Numbers
    kv: int
    memory: int
    most_active: int | None
    by_memory: int

    @classmethod
    def of(
        cls, instance: Instance, model: BatchTime, rows: Sequence[Sequence[int]], by_memory: int
    ) -> Rates:
        """Return the rates of rows of a model."""
        chosen = [*([model.lines[line] for line in row] for row in rows), model.lines]
        fixed, first = (integers([longest(lines, k) for lines in chosen]) for k in (0, 1))
        token, limit = first - fixed, instance.max_active
        fixed[-1] = 0
        assert by_memory == FULL or limit is not None, "without a limit tokens pay all"
        return cls(fixed, token, model.kv_ns, instance.memory, limit, by_memory)

    def in_floats(self) -> Rates:
        """Return the rates with both columns in floats."""
        return self._replace(fixed=self.fixed.astype(float), token=self.token.astype(float))


def shared_rounds_value(
    instance: Instance, model: BatchTime, proof: SharedRoundsProof, *, chunks: bool = False
) -> int:
    """Return the bound of a proof on total latency in nanoseconds, rounded up.

    Parameters
    ----------
    instance
        The requests, and the memory that they share.
    model
        How long rounds last, at least.
    proof
        Prices.
    chunks
        Whether prompts are processed in pieces; in any case with block shares in the proof.

    Examples
    --------
    >>> from kvopt import BatchTime, Instance, Line, Request
    >>> pair, model = Instance(9, [Request(0, 2, 1)] * 2), BatchTime([Line(1000, 0)])
    >>> apart = SharedRoundsProof(((0,),), 64, 1000, (0, 0), (0, 0), (0, 0), ((0,),))
    >>> shared_rounds_value(pair, model, apart)
    2000
    """
    chunks = chunks or bool(proof.block_shares)
    assert not chunks or all(len(row) == 1 for row in proof.rows), "a roof is of whole prompts"
    assert instance.used_workers == 1 or not any(proof.interference + proof.grown), "of one"
    assert not (proof.grown and chunks), "the backlog is of whole prompts"
    arrivals = arrivals_ns(instance)
    done = processed(instance, arrivals) if proof.block_shares else None
    columns = RoundColumns.of(instance, model, proof.rows, arrivals, chunks=chunks, done=done)
    prices = np.array(proof.row_prices, dtype=object).reshape(len(proof.rows), -1)
    grid = CellGrid(proof.unit, proof.cell, prices.shape[1])
    if proof.block_shares:
        grid = grid._replace(period=proof.period)
        length = proof.cell * proof.period
        first = [arrival // length for arrival in columns.arrivals.tolist()]
        weights = in_periods(proof.block_shares, first, -(-grid.cells // grid.period))
        columns = columns._replace(profile=BlockUsers(instance.forest).profile(weights))
    rates = Rates.of(instance, model, proof.rows, proof.by_memory)
    interference = integers(proof.interference) * (grid.unit // FULL)
    grown = integers(proof.grown or (0,) * len(instance)) * (grid.unit // FULL)
    added, left = 0, grown
    if proof.grown:
        added, left = queue_of(columns, grid).exactly(
            grown, np.array(proof.backlog, dtype=object), integers(proof.waits)
        )
    shares = Shares(integers(proof.fixed), integers(proof.slopes), interference, grown, left)
    total, _, _ = evaluated(columns, rates, shares, prices, grid, instance.used_workers)
    return int(-(-(total + added) // grid.unit))


def evaluated(
    columns: RoundColumns,
    rates: Rates,
    shares: Shares,
    prices: Numbers,
    grid: CellGrid,
    machines: int,
    threads: int = 1,
) -> tuple[Any, CellPrices, Payments]:
    """Return a bound without the backlog, over the unit, in floats or integers.

    With it come the prices of cells, and the payments of requests.
    """
    cells = priced(rates, prices, *charges(columns, shares, grid))
    kind, never = columns.arrivals.dtype, float(_BEYOND)
    if kind.hasobject:
        is_small = fits(largest_number(columns, cells, grid, shares))
        kind, never = (np.dtype(np.int64), NEVER) if is_small else (kind, _BEYOND)
    payments, search = Payments.of(len(columns.arrivals), kind), quick(find_cheapest, kind)
    numbers = in_kind(cells, kind), in_kind(columns, kind), in_kind(shares, kind)
    map_ranges(
        lambda first, last: search(first, last, grid, never, *numbers, payments),
        len(payments.values),
        threads,
    )
    total = exact(payments.values).sum() - machines * grid.cell * cells.rows[:-1].sum()
    return total + times_alone_value(columns, rates, shares), cells, payments


def queue_of(columns: RoundColumns, grid: CellGrid) -> Queue:
    """Return the requests by arrival, with the works of their prompts by all lines."""
    return Queue.of(columns.arrivals, columns.alone, columns.prompts[-1], grid.cell, grid.cells)


def works_of(columns: RoundColumns, rates: Rates) -> Numbers:
    """Return by how much each request makes rounds of others longer in all."""
    held = columns.rounds * columns.held + columns.growth
    works: Numbers = rates.token[-1] * columns.rounds + columns.prompts[-1] + rates.kv * held
    return works


def times_alone_value(columns: RoundColumns, rates: Rates, shares: Shares) -> Any:
    """Return the times alone of shares of interference, less works of requests themselves."""
    works = works_of(columns, rates)
    values = (shares.interference + shares.grown) * columns.alone - shares.interference * works
    return (values - shares.left * (works - columns.prompts[-1])).sum()


def charges(columns: RoundColumns, shares: Shares, grid: CellGrid) -> tuple[Numbers, ...]:
    """Return what all requests pay in each cell: for a round, all works, and works of tokens."""
    first, last = windows(columns, grid)
    beside, left = (
        sums_over(first, last, column, grid.cells) for column in (shares.interference, shares.left)
    )
    return payments_of_rounds(columns.arrivals, shares, grid), beside, left


def priced(
    rates: Rates, prices: Numbers, needed: Numbers, beside: Numbers, left: Numbers
) -> CellPrices:
    """Return the prices of all cells, in integers or in floats.

    The first row is raised to the ``needed`` payments of rounds; what is left of fixed parts is
    paid by tokens, or by active requests if they are limited.
    """
    rows = np.concatenate([prices, beside[None]])
    paid = 0 * needed
    for fixed, row in zip(rates.fixed[1:-1], prices[1:], strict=True):
        paid = paid + fixed * row
    # Raised by whole numbers, rounded up; all that is shared out is rounded down.
    missing = np.maximum(needed - paid, 0)
    assert rates.fixed[0] or not missing.any(), "rounds of the first row have no fixed part"
    rows[0] += -(-missing // max(rates.fixed[0], 1))
    unpaid = paid + rates.fixed[0] * rows[0] - needed
    by_memory = unpaid * rates.by_memory // FULL
    active = (rates.token[:, None] * rows).sum(axis=0) + rates.token[-1] * left
    if rates.most_active is not None:
        active = active + (unpaid - by_memory) // rates.most_active
    held = rates.kv * (rows.sum(axis=0) + left)
    return CellPrices(active, held + by_memory // rates.memory, rows)


def payments_of_rounds(arrivals: Numbers, shares: Shares, grid: CellGrid) -> Numbers:
    """Return the payment of all requests for a round in each cell."""
    count = grid.cells
    kind = shares.fixed.dtype
    if kind.hasobject and len(arrivals) and count:
        last = max(int(arrivals.max()), count * grid.cell)
        largest = int(shares.fixed.max()) * len(arrivals) + int(shares.slopes.max()) * last + last
        kind = np.dtype(np.int64) if fits(largest) else kind
    needed: Numbers = np.zeros(count, dtype=kind)
    arrived, fixed, slopes = (
        column.astype(kind) for column in (arrivals, shares.fixed, shares.slopes)
    )
    quick(_add_payments, kind)(arrived, fixed, slopes, grid.cell, needed)
    return needed.astype(shares.fixed.dtype)


def _add_payments(
    arrivals: Numbers, fixed: Numbers, slopes: Numbers, cell: Any, needed: Numbers
) -> None:
    """Add what each request pays for a round in each cell, until it pays nothing."""
    for i in range(len(arrivals)):
        for k in range(int(arrivals[i] // cell), len(needed)):
            pays = fixed[i] - slopes[i] * max(k * cell - arrivals[i], 0 * arrivals[i])
            if pays <= 0:
                break
            needed[k] += pays


def row_slopes(
    rates: Rates, used: tuple[Floats, Floats, Floats], prices: Floats, needed: Floats, there: float
) -> tuple[Floats, Floats, Floats]:
    """Return works by each row, and slopes of a bound: by payments for a round, and by rows.

    Requests use rounds, tokens and works of prompts, and pay ``needed`` for a round; ``there`` is
    the time of all machines in a cell.
    """
    rounds, tokens, prompts = used
    works = rates.token[:, None] * rounds + rates.kv * tokens + prompts
    # What is left of the fixed parts is worth what tokens and active requests pay of it.
    left = rates.by_memory / FULL * tokens / rates.memory
    if rates.most_active is not None:
        left = left + (1 - rates.by_memory / FULL) * rounds / rates.most_active
    # A round that is paid raises the first row, or takes from what tokens pay.
    is_raised = needed > (rates.fixed[1:-1, None] * prices[1:]).sum(axis=0)
    dear = np.where(is_raised, (there - works[0]) / rates.fixed[0], left)
    rows = works[:-1] - there + rates.fixed[:-1, None] * dear
    rows[0] += rates.fixed[0] * (left - dear)
    return works, dear, rows


def windows(columns: RoundColumns, grid: CellGrid) -> tuple[Integers, Integers]:
    """Return the first cell wholly in the window of each request, and the one after the last.

    Works in other cells pay no interference, which only lowers a bound.
    """
    first = -(-columns.arrivals // grid.cell)
    last = np.maximum((columns.arrivals + columns.alone) // grid.cell, first)
    begins, ends = (np.minimum(places, grid.cells).astype(int) for places in (first, last))
    return begins, ends


def sums_over(first: Integers, last: Integers, numbers: Numbers, count: int) -> Numbers:
    """Return for each cell the sum of the numbers whose range of cells contains it."""
    changes = np.zeros(count + 1, dtype=numbers.dtype)
    np.add.at(changes, first, numbers)
    np.add.at(changes, last, -numbers)
    sums: Numbers = np.cumsum(changes[:-1])
    return sums


def largest_number(columns: RoundColumns, cells: CellPrices, grid: CellGrid, shares: Shares) -> int:
    """Return a limit of all numbers in `find_cheapest`.

    A wait, services in the longest time that they may take, a prompt with its nodes, and tokens.
    """
    if not len(columns.arrivals) or not len(cells.round):
        return 0
    fixed, slopes = int(shares.fixed.max()), int(shares.slopes.max())
    alone, count = int(columns.alone.max()), len(cells.round)
    wait = grid.unit * int(columns.counts.max()) * (2 * alone + 2 * grid.cell)
    price = fixed + int(cells.token.max()) * int(columns.held.max()) + int(cells.round.max())
    service = (price // int(columns.shortest.min()) + 1) * (alone + 2 * grid.cell)
    works = columns.prompts.max(axis=1) + columns.nodes.max(axis=1)
    prompt = int((cells.rows.max(axis=1) * works).sum())
    growth = int(columns.growth.max()) * int(cells.token.max())
    last = max(int(columns.arrivals.max()), grid.cell * count)
    # A price falls while it is positive, and one cell further.
    fall = slopes * (alone + grid.cell * count)
    return int(max(wait + service + prompt + growth, price, last, fall))
