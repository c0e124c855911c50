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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from kvopt.bounds.backlog import FINE, Prices, Queue
from kvopt.bounds.block_shares import BlockUsers, in_periods
from kvopt.bounds.seconds_evaluation import FULL
from kvopt.bounds.shares import Processed, processed
from kvopt.incumbent.proofs import SharedRoundsProof
from kvopt.kernels.loop_calls import quick
from kvopt.kernels.magnitudes import NEVER, fits
from kvopt.problem.arrays import Integers, Numbers
from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.instance import Instance

_BEYOND = 2**300
"""Above all costs that numbers of instances and prices may lead to."""


@dataclass(frozen=True, eq=False)
class Columns:
    """What a bound by shared rounds needs of the requests, in columns; times in nanoseconds.

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
    ) -> Columns:
        """Return the columns of an instance, in integers of any size.

        With ``chunks`` prompts may be processed in pieces: then each row is one line, and a token
        of a prompt delays others by f(1) - f(0) only.  ``done`` are the prompt tokens that are
        surely processed, if requests hold others as well.
        """
        prompts = _integers([request.prompt for request in instance])
        outputs = _integers([request.output for request in instance])
        fresh = prompts if done is None else _integers(done.own)
        grown = outputs * (outputs - 1) // 2
        token = _longest(model.lines, 1)
        own = model.prompt_ns * fresh
        chosen = [_of(model, row) for row in rows]
        works = [_longest_of(lines, fresh + 1) - _longest(lines, 1) for lines in chosen]
        beside = fresh * (token - _longest(model.lines, 0))
        if not chunks:
            beside = _longest_of(model.lines, fresh + 1) - token
        held = outputs * (prompts + 1) + grown
        first = min(arrivals, default=0)
        return cls(
            arrivals=_integers([arrival - first for arrival in arrivals]),
            alone=_longest_of(model.lines, fresh + 1)
            + own
            + (outputs - 1) * token
            + model.kv_ns * held,
            rounds=outputs,
            shortest=token + model.kv_ns * (prompts + 1),
            held=prompts + 1,
            growth=grown,
            prompts=np.array([work + own for work in (*works, beside)], dtype=object),
            nodes=np.zeros((len(rows) + 1, len(instance)), dtype=object),
            counts=_integers([request.weight for request in instance]),
            profile=(prompts + 1)[:, None],
        )

    @classmethod
    def of_prefixes(
        cls,
        instance: Instance,
        model: BatchTime,
        rows: Sequence[Sequence[int]],
        arrivals: Sequence[int],
    ) -> Columns:
        """Return the columns of an instance with prefixes, for rows that are single lines.

        Whatever the scope, prompts may be processed in pieces.  A request holds all of its prompt
        when it yields a token; its ``profile`` is still that of the whole prompt.
        """
        assert all(len(row) == 1 for row in rows), "nodes are computed in pieces"
        done = processed(instance, arrivals)
        columns = cls.of(instance, model, rows, arrivals, chunks=True, done=done)
        tokens = _integers([sum(nodes) for nodes in done.nodes])
        slopes = [model.lines[line].token_ns + model.prompt_ns for (line,) in rows]
        return replace(columns, nodes=np.array([n * tokens for n in (*slopes, 0)], dtype=object))

    def map(self, change: Callable[[Numbers], Numbers]) -> Columns:
        """Return the columns with a function applied to all of them."""
        return Columns(*(change(getattr(self, field.name)) for field in fields(self)))

    def works(self, rates: Rates) -> Numbers:
        """Return by how much each request makes rounds of others longer in all."""
        held = self.rounds * self.held + self.growth
        works: Numbers = rates.token[-1] * self.rounds + self.prompts[-1] + rates.kv * held
        return works


class Shares(NamedTuple):
    """What requests pay.

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


class Grid(NamedTuple):
    """Denominator of prices, nanoseconds of a cell (a float among floats), cells of a period."""

    unit: int
    cell: Any
    period: int = 2**62


@dataclass(frozen=True, eq=False)
class Rates:
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
        chosen = [_of(model, row) for row in rows]
        fixed = [_longest(lines, 0) for lines in chosen]
        token = [_longest(lines, 1) - f for lines, f in zip(chosen, fixed, strict=True)]
        beside = _longest(model.lines, 1) - _longest(model.lines, 0)
        limit = instance.max_active
        assert by_memory == FULL or limit is not None, "without a limit tokens pay all"
        all_fixed, all_token = _integers([*fixed, 0]), _integers([*token, beside])
        return cls(all_fixed, all_token, model.kv_ns, instance.memory, limit, by_memory)

    def map(self, change: Callable[[Numbers], Numbers]) -> Rates:
        """Return the rates with a function applied to both columns."""
        return replace(self, fixed=change(self.fixed), token=change(self.token))


class Cells(NamedTuple):
    """Prices of cells, over the unit of a proof.

    Parameters
    ----------
    round
        What each round of a request costs, beyond its own price of a round and its tokens.
    token
        What each token costs that is held in a round.
    rows
        Prices of the rows; the last row has the shares of interference.
    """

    round: Numbers
    token: Numbers
    rows: Numbers

    def of(self, kind: Any) -> Cells:
        """Return them in one kind of numbers."""
        return Cells(*(column.astype(kind) for column in self))


def shared_rounds_value(
    instance: Instance,
    model: BatchTime,
    proof: SharedRoundsProof,
    arrivals: Sequence[int],
    *,
    chunks: bool = False,
    done: Processed | None = None,
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
    arrivals
        In nanoseconds.
    chunks, done
        As of `Columns.of`; with block shares in the proof neither is read.

    Examples
    --------
    >>> from kvopt import BatchTime, Instance, Line, Request
    >>> pair, model = Instance(9, [Request(0, 2, 1)] * 2), BatchTime([Line(1000, 0)])
    >>> apart = SharedRoundsProof(((0,),), 64, 1000, (0, 0), (0, 0), (0, 0), ((0,),))
    >>> shared_rounds_value(pair, model, apart, [0, 0])
    2000
    """
    assert not chunks or all(len(row) == 1 for row in proof.rows), "a roof is of whole prompts"
    assert machines_of(instance) == 1 or not any(proof.interference + proof.grown), "of one"
    assert not (proof.grown and (chunks or proof.block_shares)), "the backlog is of whole prompts"
    grid, added = Grid(proof.unit, proof.cell), 0
    if proof.block_shares:
        columns = Columns.of_prefixes(instance, model, proof.rows, arrivals)
        grid = grid._replace(period=proof.period)
        columns = replace(columns, profile=_profile(instance, proof, columns))
    else:
        columns = Columns.of(instance, model, proof.rows, arrivals, chunks=chunks, done=done)
    prices = np.array(proof.row_prices, dtype=object).reshape(len(proof.rows), -1)
    rates = Rates.of(instance, model, proof.rows, proof.by_memory)
    interference = _integers(proof.interference) * (grid.unit // FULL)
    grown = _integers(proof.grown or (0,) * len(instance)) * (grid.unit // FULL)
    left = grown
    if proof.grown:
        queue = queue_of(columns, grid, prices.shape[1])
        in_order = (_integers(column)[queue.order] for column in (*proof.backlog, proof.waits))
        *backlog, waits = in_order
        charged = queue.exactly(grown[queue.order], Prices(np.array(backlog), waits))
        added, left = charged.value // FINE, np.empty_like(grown)
        left[queue.order] = charged.left
    shares = Shares(_integers(proof.fixed), _integers(proof.slopes), interference, grown, left)
    cells = priced(rates, prices, *charges(columns, shares, grid, prices.shape[1]))
    kind = np.int64 if fits(_largest(columns, cells, grid, shares)) else object
    requests, chosen = in_numbers(columns, grid.unit, shares, kind), cells.of(kind)
    answers = Answers.of(len(instance), kind)
    never = _BEYOND if kind is object else NEVER
    quick(find_cheapest, kind)(0, len(instance), grid, never, chosen, requests, answers)
    added += int(beside_value(columns, rates, shares))
    total: int = sum(answers.values.tolist()) + added
    total -= machines_of(instance) * grid.cell * int(cells.rows[:-1].sum())
    return -(-total // grid.unit)


def _profile(instance: Instance, proof: SharedRoundsProof, columns: Columns) -> Numbers:
    """Return the tokens that requests count in each period that has a cell."""
    length = proof.cell * proof.period
    first = [arrival // length for arrival in columns.arrivals.tolist()]
    weights = in_periods(proof.block_shares, first, object)
    missing = -(-len(proof.row_prices[0]) // proof.period) - weights.shape[1]
    return BlockUsers(instance.forest).profile(np.pad(weights, ((0, 0), (0, max(0, missing)))))


def queue_of(columns: Columns, grid: Grid, count: int) -> Queue:
    """Return the requests by arrival, with the works of their prompts by all lines."""
    return Queue.of(columns.arrivals, columns.alone, columns.prompts[-1], grid.cell, count)


def beside_value(columns: Columns, rates: Rates, shares: Shares) -> Any:
    """Return the times alone of shares of interference, less works of requests themselves."""
    works = columns.works(rates)
    values = (shares.interference + shares.grown) * columns.alone - shares.interference * works
    return (values - shares.left * (works - columns.prompts[-1])).sum()


def machines_of(instance: Instance) -> int:
    """Return the number of useful machines: at most the number of requests."""
    return min(instance.workers, max(1, len(instance)))


def charges(columns: Columns, shares: Shares, grid: Grid, count: int) -> tuple[Numbers, ...]:
    """Return what all requests pay in each cell: for a round, all works, and works of tokens."""
    needed = payments(columns.arrivals, shares, grid, count)
    beside = _beside(columns, shares.interference, grid, count)
    return needed, beside, _beside(columns, shares.left, grid, count)


def priced(rates: Rates, prices: Numbers, needed: Numbers, beside: Numbers, left: Numbers) -> Cells:
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
    return Cells(active, held + by_memory // rates.memory, rows)


def payments(arrivals: Numbers, shares: Shares, grid: Grid, count: int) -> Numbers:
    """Return what all requests pay for a round in each cell."""
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


def _beside(columns: Columns, shares: Numbers, grid: Grid, count: int) -> Numbers:
    """Return the sum of the shares whose times alone contain each cell."""
    first, last = windows(columns, grid, count)
    changes = np.zeros(count + 1, dtype=shares.dtype)
    np.add.at(changes, first, shares)
    np.add.at(changes, last, -shares)
    sums: Numbers = np.cumsum(changes[:-1])
    return sums


def windows(columns: Columns, grid: Grid, count: int) -> tuple[Integers, Integers]:
    """Return the first cell wholly in the window of each request, and the one after the last."""
    first = -(-columns.arrivals // grid.cell)
    last = np.maximum((columns.arrivals + columns.alone) // grid.cell, first)
    begins, ends = (np.minimum(places, count).astype(int) for places in (first, last))
    return begins, ends


class Requests(NamedTuple):
    """The columns that the loops read, in one kind of numbers.

    Those that are not of `Columns` or `Shares`: ``whole`` is the least length of all rounds,
    ``later`` that of all but the first, ``rates`` the price of waiting, ``lowest`` the least
    of the profile.
    """

    arrivals: Numbers
    alone: Numbers
    shortest: Numbers
    whole: Numbers
    later: Numbers
    growth: Numbers
    rates: Numbers
    fixed: Numbers
    slopes: Numbers
    prompts: Numbers
    nodes: Numbers
    profile: Numbers
    lowest: Numbers


def in_numbers(columns: Columns, unit: int, shares: Shares, kind: Any) -> Requests:
    """Return the columns that the loops read, in one kind of numbers."""
    rates = columns.counts * unit - shares.interference - shares.grown
    whole = columns.rounds * columns.shortest
    chosen = (columns.arrivals, columns.alone, columns.shortest, whole, whole - columns.shortest,
              columns.growth, rates, shares.fixed, shares.slopes, columns.prompts, columns.nodes,
              columns.profile, columns.profile.min(axis=1))  # fmt: skip
    return Requests(*(np.asarray(column).astype(kind) for column in chosen))


class Answers(NamedTuple):
    """What requests pay.

    Parameters
    ----------
    values
        The least cost, times the unit.
    ends
        The cell in which a request then completes; their number if it is after the last one.
    limits
        The price of the dearest service that it then uses.
    """

    values: Numbers
    ends: Integers
    limits: Numbers

    @classmethod
    def of(cls, count: int, kind: Any) -> Answers:
        """Return space for the answers of so many requests."""
        values, limits = np.zeros((2, count), dtype=kind)
        return cls(values, np.zeros(count, dtype=np.int64), limits)


def find_cheapest(
    first: int,
    last: int,
    grid: Grid,
    never: float,
    prices: Cells,
    requests: Requests,
    answers: Answers,
) -> None:
    """Find the least cost of some requests; in Python where integers pass 64 bits.

    Costs are below ``never``, which stands for that of a wait beyond it.

    A request that completes in a cell uses the cheapest services of all cells from its arrival up
    to this one.  Used cells are on a stack, the dearest first, which may be used in part.
    """
    cell, period = grid.cell, grid.period
    by_round, by_token, rows = prices
    (arrivals, alone, shortest, whole, later, growth, rates, fixed, slopes, prompts, nodes, profile,
     lowest) = requests  # fmt: skip
    values, ends, limits = answers
    count = len(by_round)
    stack, sizes = np.empty_like(by_round), np.empty_like(by_round)
    for i in range(first, last):
        arrival, k = arrivals[i], int(arrivals[i] // cell)
        after, place, wait = k, count, max(alone[i], count * cell - arrival)
        best = never + 0 * arrival if wait * 1.0 * rates[i] >= never else wait * rates[i]
        head, top, total, cost, limit = 0, 0, 0 * arrival, 0 * arrival, 0 * arrival
        token, prompt, least, is_bounded = 0 * arrival, 0 * arrival, 0 * arrival, False
        node = 0 * arrival
        while k < count:
            begin, end = max(k * cell, arrival), (k + 1) * cell
            time = rates[i] * max(alone[i], begin - arrival)
            if time + least >= best:
                break
            # The cell joins those that are used, and what is dearer than needed leaves.
            pays = max(fixed[i] - slopes[i] * (begin - arrival), 0 * arrival)
            price = (pays + by_round[k] + by_token[k] * profile[i, k // period]) // shortest[i]
            if total < whole[i] or price < stack[head]:
                spot = top
                while spot > head and stack[spot - 1] < price:
                    stack[spot], sizes[spot] = stack[spot - 1], sizes[spot - 1]
                    spot -= 1
                stack[spot], sizes[spot] = price, end - begin
                top += 1
                total, cost = total + end - begin, cost + (end - begin) * price
                while total - sizes[head] >= whole[i]:
                    total, cost = total - sizes[head], cost - sizes[head] * stack[head]
                    head += 1
            if begin == arrival or by_token[k] < token:
                token = by_token[k]
            if end > arrival + alone[i]:
                # Its prompt is processed before its later rounds, and so are its nodes, which
                # may be so at another time.
                while after <= k and after * cell < end - later[i]:
                    work, beside = 0 * arrival, 0 * arrival
                    for row in range(len(rows)):
                        work += rows[row, after] * prompts[row, i]
                        beside += rows[row, after] * nodes[row, i]
                    if after * cell <= arrival or work < prompt:
                        prompt = work
                    if after * cell <= arrival or beside < node:
                        node = beside
                    after += 1
                value = time + cost - (total - whole[i]) * stack[head]
                value += growth[i] * token + prompt + node
                if value < best:
                    best, place, limit = value, k, stack[head]
                if not is_bounded and rates[i] > 0:
                    is_bounded = True
                    # Services of all cells that are worth a wait cost so much at the least.
                    last = min(count, int((arrival + best // rates[i]) // cell) + 1)
                    low, token_low = by_round[k], by_token[k]
                    for other in range(int(arrival // cell), last):
                        low = min(low, by_round[other])
                        token_low = min(token_low, by_token[other])
                    least = (low + token_low * lowest[i]) // shortest[i] * whole[i]
                    least += growth[i] * token_low
            k += 1
        values[i], ends[i], limits[i] = best, place, limit


def _largest(columns: Columns, cells: Cells, grid: Grid, shares: Shares) -> int:
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


def _integers(values: Sequence[int]) -> Numbers:
    """Return an array of integers of any size."""
    return np.array(values, dtype=object)


def _of(model: BatchTime, row: Sequence[int]) -> list[Line]:
    """Return the lines of a row."""
    return [model.lines[place] for place in row]


def _longest(lines: Sequence[Line], tokens: int) -> int:
    """Return the length of a round of so many tokens by some lines."""
    return max(line.round_ns + line.token_ns * tokens for line in lines)


def _longest_of(lines: Sequence[Line], tokens: Numbers) -> Numbers:
    """Return the lengths of rounds of so many tokens by some lines."""
    times = lines[0].round_ns + lines[0].token_ns * tokens
    for line in lines[1:]:
        times = np.maximum(times, line.round_ns + line.token_ns * tokens)
    return times
