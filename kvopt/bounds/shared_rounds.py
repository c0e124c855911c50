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

from kvopt.bounds.backlog import Queue
from kvopt.bounds.cheapest_services import CellGrid, CellPrices, Payments, Services, find_cheapest
from kvopt.bounds.prefix_shares import BlockUsers, Processed, in_periods, processed
from kvopt.bounds.seconds_evaluation import FULL, integers, longest
from kvopt.incumbent.proofs import SharedRoundsProof
from kvopt.kernels.interruptible import quick
from kvopt.kernels.magnitudes import NEVER, fits
from kvopt.problem.arrays import Integers, Numbers
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.instance import Instance

_BEYOND = 2**300
"""Above all costs that numbers of instances and prices may lead to."""


class RoundColumns(NamedTuple):
    """Requests in the columns that a bound by shared rounds needs; times in nanoseconds.

    Parameters
    ----------
    arrivals
        From the first one on.
    alone
        Least time from the arrival to the completion.
    rounds
        Rounds that yield a token.
    shortest
        Least length of such a round.
    held
        Tokens held in the first of them.
    growth
        Tokens held in addition in all later ones.
    prompts
        For each row the work of the prompt beyond that of a token; the last row is interference.
    nodes
        For each row the work of the nodes whose first user to arrive it is.
    counts
        Weights of the latencies.
    profile
        Tokens for which it pays in its first round, by periods of cells.
    """

    arrivals: Numbers
    alone: Numbers
    rounds: Numbers
    shortest: Numbers
    held: Numbers
    growth: Numbers
    prompts: Numbers
    nodes: Numbers
    counts: Numbers
    profile: Numbers

    @classmethod
    def of(
        cls,
        instance: Instance,
        model: BatchTime,
        rows: Sequence[Sequence[int]],
        arrivals: Sequence[int],
        *,
        chunks: bool = False,
        done: Processed | None = None,
    ) -> RoundColumns:
        """Return the columns of an instance, in integers of any size.

        With ``chunks`` prompts may be processed in pieces: then each row is one line, and a token
        of a prompt delays others by f(1) - f(0) only.  ``done`` are the prompt tokens that are
        surely processed, if requests hold others as well; nodes are so in pieces.  The profile is
        that of the whole prompt.
        """
        prompts = integers([request.prompt for request in instance])
        outputs = integers([request.output for request in instance])
        fresh = prompts if done is None else integers(done.private)
        grown = outputs * (outputs - 1) // 2
        token, prefill = longest(model.lines, 1), longest(model.lines, fresh + 1)
        more = model.prompt_ns * fresh
        chosen = [[model.lines[line] for line in row] for row in rows]
        works = [longest(lines, fresh + 1) - longest(lines, 1) for lines in chosen]
        beside = fresh * (token - longest(model.lines, 0)) if chunks else prefill - token
        held = outputs * (prompts + 1) + grown
        nodes = np.zeros((len(rows) + 1, len(instance)), dtype=object)
        if done is not None and done.nodes:
            slopes = [line.token_ns + model.prompt_ns for (line,) in chosen]
            nodes[:-1] = np.outer(slopes, integers(list(map(sum, done.nodes))))
        return cls(
            arrivals=integers(arrivals) - min(arrivals, default=0),
            alone=prefill + more + (outputs - 1) * token + model.kv_ns * held,
            rounds=outputs,
            shortest=token + model.kv_ns * (prompts + 1),
            held=prompts + 1,
            growth=grown,
            prompts=np.array([work + more for work in (*works, beside)], dtype=object),
            nodes=nodes,
            counts=integers([request.weight for request in instance]),
            profile=(prompts + 1)[:, None],
        )

    def in_floats(self) -> RoundColumns:
        """Return the columns in floats."""
        return RoundColumns(*(column.astype(float) for column in self))

    def works(self, rates: Rates) -> Numbers:
        """Return by how much each request makes rounds of others longer in all."""
        held = self.rounds * self.held + self.growth
        works: Numbers = rates.token[-1] * self.rounds + self.prompts[-1] + rates.kv * held
        return works


class Shares(NamedTuple):
    """Prices of rounds, and shares of interference.

    Parameters
    ----------
    fixed, slopes
        Prices of rounds, as in a proof.
    interference
        Shares that charge works in times alone, over the unit.
    grown
        Shares that charge prompts by the backlog, over the unit.
    left
        What of ``grown`` charges the works of tokens in times alone, over the unit.
    """

    fixed: Numbers
    slopes: Numbers
    interference: Numbers
    grown: Numbers
    left: Numbers


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
    assert machines_of(instance) == 1 or not any(proof.interference + proof.grown), "of one"
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
    cells = priced(rates, prices, *charges(columns, shares, grid))
    kind = np.int64 if fits(_largest(columns, cells, grid, shares)) else object
    payments, never = Payments.of(len(instance), kind), _BEYOND if kind is object else NEVER
    services = services_of(columns, grid.unit, shares, kind)
    cells_of_kind = CellPrices(*(column.astype(kind) for column in cells))
    quick(find_cheapest, kind)(0, len(instance), grid, never, cells_of_kind, services, payments)
    total: int = sum(payments.values.tolist()) + added
    total += int(times_alone_value(columns, rates, shares))
    total -= machines_of(instance) * grid.cell * int(cells.rows[:-1].sum())
    return -(-total // grid.unit)


def queue_of(columns: RoundColumns, grid: CellGrid) -> Queue:
    """Return the requests by arrival, with the works of their prompts by all lines."""
    return Queue.of(columns.arrivals, columns.alone, columns.prompts[-1], grid.cell, grid.cells)


def times_alone_value(columns: RoundColumns, rates: Rates, shares: Shares) -> Any:
    """Return the times alone of shares of interference, less works of requests themselves."""
    works = columns.works(rates)
    values = (shares.interference + shares.grown) * columns.alone - shares.interference * works
    return (values - shares.left * (works - columns.prompts[-1])).sum()


def machines_of(instance: Instance) -> int:
    """Return the number of useful machines: at most the number of requests."""
    return min(instance.workers, max(1, len(instance)))


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


def windows(columns: RoundColumns, grid: CellGrid) -> tuple[Integers, Integers]:
    """Return the first cell wholly in the window of each request, and the one after the last."""
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


def services_of(columns: RoundColumns, unit: int, shares: Shares, kind: Any) -> Services:
    """Return the columns that the loops read, in one kind of numbers."""
    whole = columns.rounds * columns.shortest
    services = Services(
        columns.arrivals,
        columns.alone,
        columns.shortest,
        whole,
        whole - columns.shortest,
        columns.growth,
        columns.counts * unit - shares.interference - shares.grown,
        shares.fixed,
        shares.slopes,
        columns.prompts,
        columns.nodes,
        columns.profile,
        columns.profile.min(axis=1),
    )
    return Services(*(np.asarray(column, dtype=kind) for column in services))


def _largest(columns: RoundColumns, cells: CellPrices, grid: CellGrid, shares: Shares) -> int:
    """Return a limit of all numbers in `find_cheapest`."""
    if not len(columns.arrivals) or not len(cells.round):
        return 0
    fixed, slopes = int(shares.fixed.max()), int(shares.slopes.max())
    alone, count = int(columns.alone.max()), len(cells.round)
    wait = grid.unit * int(columns.counts.max()) * (2 * alone + 2 * grid.cell)
    each = fixed + int(cells.token.max()) * int(columns.held.max()) + int(cells.round.max())
    service = (each // int(columns.shortest.min()) + 1) * (alone + 2 * grid.cell)
    works = columns.prompts.max(axis=1) + columns.nodes.max(axis=1)
    prompt = int((cells.rows.max(axis=1) * works).sum())
    growth = int(columns.growth.max()) * int(cells.token.max())
    # A price falls while it is positive, and one cell further.
    times = (
        max(int(columns.arrivals.max()), grid.cell * count),
        slopes * (alone + grid.cell * count),
    )
    return int(max(wait + service + prompt + growth, each, *times))
