"""Check schedules and runs, and compute their values."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from itertools import accumulate, groupby
from operator import itemgetter, mul, sub
from typing import Any, NamedTuple

from kvopt.verify.certified_problem import Problem, Request
from kvopt.verify.step_budget import Invalid, Work, paired, pairwise, refuse

_Piece = tuple[int, int, int, int]
"""Request, start, end, and tokens held before: work at the times start + 1 .. end."""


class _Use(NamedTuple):
    """Work at the times start + 1 .. end, and tokens of its request.

    These are the tokens before its first round, in it and in its last one, and those of the first
    that it found in the cache, 0 if it goes on.
    """

    start: int
    end: int
    request: int
    before: int
    held: int
    last: int
    cached: int


Times = list[tuple[int, int]]
"""When requests have their first and their last tokens, without those that an eviction loses."""
_Part = tuple[list[_Piece], list[dict[str, Any]], dict[int, int], set[int]]
"""Data of one worker: pieces of work and of prompts, waits, and rounds whose ends are needed."""


def uncovered(claim: dict[str, Any], scope: str) -> str:
    """Return features of a run that a scope does not cover, empty if there are none."""
    used = []
    if "pauses" not in scope and any(len(rows) > 1 for rows in claim.get("segments", [])):
        used.append("pauses")
    if "chunks" not in scope and any(row["tokens"] for row in claim.get("chunks", [])):
        used.append("prompts in pieces")
    return " and ".join(used)


def times_of(claim: dict[str, Any]) -> str:
    """Return the name of the field with the times of a run."""
    return "segments" if "segments" in claim else "starts"


def checked_run(
    problem: Problem, claim: dict[str, Any], what: str, work: Work
) -> tuple[int, Times]:
    """Check a run and its value; return the most tokens that a worker holds, and times."""
    requests, clock = problem.requests, problem.clock
    pieces, begins = _pieces(requests, claim, what)
    chunks, waits = _chunks(requests, claim, what), claim.get("waits", [])
    if clock is None and (waits or chunks):
        raise Invalid(f"{what}: rounds know neither waits nor pieces of prompts")
    on: list[int] = claim.get("workers", [0] * len(requests) if problem.workers == 1 else [])
    has_workers = len(on) == len(requests) and all(0 <= worker < problem.workers for worker in on)
    refuse(not has_workers, f"{what}: needs one of {problem.workers:,} workers for each request")
    size = 2 + (problem.workers > 1)  # a wait of a fleet names its worker
    used = {*on}
    if any(len(row) != size or row[0] < 0 or not used.issuperset(row[2:]) for row in waits):
        raise Invalid(f"{what}: a wait must be [round, time{', worker' * (size > 2)}]")
    work.part, block = f"{what}: ", problem.block
    count = len(pieces) + len(waits) + sum(1 + len(row["tokens"]) for row in chunks)
    lines = 8 * len(clock.lines) if clock else 0
    work.spend(count * (lines + (block > 1) * (20 + 8 * min(block, len(requests)))))
    ends = [end for _, _, end, _ in pieces[: len(requests)]]
    # Workers have rounds of their own, so each is checked by itself; a wait on one names none.
    parts: dict[int, _Part] = defaultdict(lambda: ([], [], {}, set()))
    for piece in pieces:
        parts[on[piece[0]]][0].append(piece)
    for row in chunks:
        parts[on[row["request"]]][1].append(row)
    for row in waits:
        parts[sum(row[2:])][2][row[0]] = row[1]
    for worker, begin, end in paired(on, begins, ends):
        parts[worker][3].update((begin + 1, end))
    replays = "starts" in claim  # else the claim says what requests find in the cache
    kept = {worker: _kept(problem, part, what, work) for worker, part in parts.items()}
    swept = {
        worker: _swept(problem, part, kept[worker], what, replays=replays)
        for worker, part in parts.items()
    }
    times = [swept[worker][1][end] for worker, end in paired(on, ends)]
    weights = problem.weights or (1,) * len(requests)
    latencies = map(sub, times, (request.arrival for request in requests))
    value = sum(map(mul, weights, latencies))
    if claim["value"] != value:
        raise Invalid(f"{what}: says {claim['value']:,}, the {times_of(claim)} give {value:,}")
    firsts = [swept[worker][1][begin + 1] for worker, begin in paired(on, begins)]
    return max((peak for peak, _ in swept.values()), default=0), [*paired(firsts, times)]


def _pieces(
    requests: list[Request], claim: dict[str, Any], what: str
) -> tuple[list[_Piece], list[int]]:
    """Return all work, and the starts of the runs that count.

    The first pieces are those with which the requests complete, in their order.  In segments
    [first, last] are the times of tokens in a row, as they are from a start on: a request that
    paused after g tokens continues as one with a prompt of s + g.
    """
    times = times_of(claim)
    if len(claim[times]) != len(requests):
        raise Invalid(f"{what}: has {len(claim[times])} {times} for {len(requests)} requests")
    segments = claim.get("segments")
    if segments is None:
        pairs = paired(claim["starts"], requests)
        segments = [[[start + 1, start + request.output]] for start, request in pairs]
    last: list[_Piece] = []
    more: list[_Piece] = []
    for i, (request, rows) in enumerate(paired(requests, segments)):
        free, held = 0, request.prompt
        for row in rows:
            if len(row) != 2 or not free < row[0] <= row[1]:
                raise Invalid(
                    f"{what}: work of request {i} is not [first, last] in order, or "
                    "begins before it arrives"
                )
            more.append((i, row[0] - 1, row[1], held))
            free, held = row[1], held + row[1] - row[0] + 1
        if held != request.prompt + request.output:
            raise Invalid(f"{what}: request {i} makes {held - request.prompt:,} tokens")
        last.append(more.pop())
    begins = [rows[0][0] - 1 for rows in segments]
    # Evicted work [i, start, end] held memory at start+1 .. end.  Lost work of a request does not
    # overlap, and is before the start that counts.
    ends = [0] * len(requests)
    for row in sorted(claim.get("lost", [])):
        if len(row) != 3 or not 0 <= row[0] < len(requests):
            raise Invalid(f"{what}: lost work must be [request, start, end]")
        i, start, end = row
        if not ends[i] <= start < end <= min(begins[i], start + requests[i].output - 1):
            raise Invalid(f"{what}: request {i} cannot lose the work of {start:,} .. {end:,}")
        ends[i] = end
        more.append((i, start, end, requests[i].prompt))
    return last + more, begins


def _chunks(requests: list[Request], claim: dict[str, Any], what: str) -> list[dict[str, Any]]:
    """Return the pieces in which prompts were processed, round by round, without a token.

    They do not overlap with each other or with the segments of their request.  With ``cached``
    tokens found in the cache they have at most its prompt and the tokens that it had produced.  A
    segment goes on from the last row that ends where it begins, perhaps one without pieces, which
    only finds tokens.
    """
    rows = sorted(claim.get("chunks", []), key=lambda row: (row["request"], row["start"]))
    free: dict[int, int] = {}
    finders: set[tuple[int, int]] = set()  # rows without pieces
    begins: dict[int, list[int]] = {}  # of its segments
    produced: dict[int, list[int]] = {}  # by a request before each of its segments
    for row in rows:
        i, start, tokens, cached = row["request"], row["start"], row["tokens"], row.get("cached", 0)
        end, is_whole = start + len(tokens), min(tokens, default=1) > 0 <= cached
        in_order = start >= free.get(i, 0) and (tokens or (i, start) not in finders)
        if not (0 <= i < len(requests) and is_whole and in_order):
            raise Invalid(f"{what}: pieces of a prompt of request {i} are not in order")
        free[i] = end
        finders.update([] if tokens else [(i, start)])
        segments = claim["segments"][i]
        if i not in produced:
            begins[i] = [first - 1 for first, _ in segments]
            produced[i] = [0, *accumulate(last - first + 1 for first, last in segments)]
        # The segment that follows, at the same time if the row only finds tokens.
        place = (bisect_right if tokens else bisect_left)(begins[i], start)
        apart = place < len(segments) and (place == 0 or segments[place - 1][1] <= start)
        apart = apart and segments[place][0] > end and (tokens or begins[i][place] == start)
        if not apart or cached + sum(tokens) > requests[i].prompt + produced[i][place]:
            raise Invalid(f"{what}: request {i} has no prompt to process at {start:,} .. {end:,}")
    return rows


def _uses(part: _Part) -> Iterator[_Use]:
    """Yield all work of a worker with the tokens that its request holds."""
    pieces, rows, *_ = part
    ready: dict[tuple[int, int], tuple[int, int]] = {}  # tokens before a segment, and cached ones
    for row in rows:
        i, start, held = row["request"], row["start"], row.get("cached", 0)
        cached = held
        for mark, tokens in enumerate(row["tokens"], start):
            yield _Use(mark, mark + 1, i, held, held + tokens, held + tokens, cached)
            held, cached = held + tokens, 0
        ready[i, start + len(row["tokens"])] = held, cached
    for i, start, end, held in pieces:
        # A segment goes on from the pieces that end where it begins, or begins with a whole prompt.
        before, cached = ready.get((i, start), (0, 0))
        yield _Use(start, end, i, before, held + 1, held + end - start, cached)


def _kept(problem: Problem, part: _Part, what: str, work: Work) -> dict[int, int]:
    """Return by how many tokens more or fewer stay in memory from a time on, for a later use.

    A request that finds tokens needs each of them: computed by another request that still holds
    it, or in the same round, or kept from the end of the last use of so many of them.  The tokens
    of a node are kept once, and in whole blocks, as many as the most that one request needs.
    """
    if not any(row.get("cached") for row in part[1]):
        return {}
    by_start = sorted(_uses(part), key=itemgetter(0))
    uses: dict[int, list[tuple[int, int, int, int, int]]] = defaultdict(list)
    for use in by_start:
        left = 0  # before the node
        for v in problem.paths[use.request] if problem.paths else ():
            size = problem.nodes[v]
            before, held, cached = (
                min(max(tokens - left, 0), size) for tokens in (use.before, use.held, use.cached)
            )
            uses[v].append((use.start, use.end, before, held, cached))
            left += size
        # Private tokens are cached only together with all nodes; -1 - i is their place.
        private = max(use.cached - left, 0)
        last = max(use.last - left, 0)
        uses[-1 - use.request].append((use.start, use.end, last, last, private))
    needed: dict[int, dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for place, rows in uses.items():
        ends: dict[int, int] = {}  # the last end of a use, by the tokens held then
        for start, group in groupby(rows, key=itemgetter(0)):
            now = list(group)
            for _, _, _, _, cached in filter(itemgetter(4), now):
                work.spend(4 * (len(ends) + len(now)))
                # Another request computes them in this round; else they were kept since a use.
                if any(before < cached <= held for _, _, before, held, _ in now):
                    continue
                end = max((end for held, end in ends.items() if held >= cached), default=-1)
                if end < 0:
                    tokens = f"a request finds {cached:,} tokens at {start:,}"
                    raise Invalid(f"{what}: {tokens} that were not computed")
                if end < start:
                    blocks = -(-cached // problem.block)
                    needed[place][blocks * problem.block].append((end, start))
            for _, end, _, held, _ in now:
                ends[held] = max(ends.get(held, 0), end)
    changes: dict[int, int] = defaultdict(int)
    for levels in needed.values():
        # Of tokens kept in layers each lies below those that are kept at its times.
        spans: list[tuple[int, int]] = []
        sizes = sorted(levels, reverse=True)
        for size, lower in paired(sizes, [*sizes[1:], 0]):
            spans = sorted(spans + levels[size])
            work.spend(4 * len(spans))
            free = 0
            for begin, end in spans:
                if end > free:
                    changes[max(begin, free)] += size - lower
                    changes[end] -= size - lower
                    free = end
    return changes


def _swept(
    problem: Problem, part: _Part, kept: dict[int, int], what: str, *, replays: bool
) -> tuple[int, dict[int, int]]:
    """Go through the rounds of a worker; return its most tokens, and the ends of rounds.

    Rounds have numbers; a request that starts at k is active in the rounds k + 1 .. k + o.  On a
    clock in seconds they follow one another at once, except that round r + 1 begins at the time t
    for each wait [r, t], and a request that continues after a pause processes its prompt and its
    tokens again, less what it finds.  A piece holds held - start + t at time t, so from one event
    to the next all hold ``offset + active * t``, which only grows.  In whole blocks, pieces whose
    ``held - start`` leaves the same remainder take a new one at the same times.  Nodes of prefixes
    are held once.

    In seconds claims with starts do not say what is cached, and the cache is replayed: computed
    tokens stay after their last user while they fit.  The least recently used leave first, of a
    request its private tokens, then nodes from the last one, in whole blocks.  With ``more`` tokens
    for each request, what fits then does so in whole blocks of memory as well.
    """
    requests, clock, block = problem.requests, problem.clock, problem.block
    pieces, rows, waits, needed = part
    processed = {
        (row["request"], row["start"] + len(row["tokens"])): row.get("cached", 0)
        + sum(row["tokens"])
        for row in rows
    }
    begins, ends, chunks = defaultdict(list), defaultdict(list), defaultdict(list)
    unused = _Unused() if replays and clock is not None and problem.paths else None
    more, room = block - 1, problem.memory // block * block + block - 1
    due: dict[int, int] = defaultdict(int)  # the latest arrival of the requests that start here
    for i, start, end, held in pieces:
        path = problem.paths[i] if problem.paths else ()
        shift = held - start - sum(problem.nodes[v] for v in path)
        begins[start].append((held - processed.get((i, start), 0), shift, path))
        ends[end].append((i, shift, path))
        due[start] = max(due[start], requests[i].arrival)
    for row in rows:  # tokens processed in a round, and held by then
        due[row["start"]] = max(due[row["start"]], requests[row["request"]].arrival)
        held = row.get("cached", 0)
        for mark, tokens in enumerate(row["tokens"], row["start"]):
            held += tokens
            chunks[mark].append((tokens, *_split(problem, row["request"], held)))
    # Tokens: ``shared`` of nodes in use, ``beside`` of pieces of prompts, ``stays`` kept for later.
    now = active = offset = peak = shared = stays = 0
    using: dict[int, int] = defaultdict(int)  # active pieces by node
    taken: dict[int, int] = defaultdict(int)  # pieces by remainder
    times, after = {}, (mark + 1 for mark in chunks)
    marks = sorted({*begins, *ends, *waits, *chunks, *after, *needed, *kept})
    for mark, following in pairwise([*marks, *marks[-1:]]):
        times[mark] = now = mark if clock is None else now
        # Completions: nodes without a user, and private tokens, stay in the cache while they fit.
        prompts = 0
        if unused is not None:
            held = offset + active * (mark + more) + shared
            unused.drop(held + unused.total - room, problem.unit)
        for i, shift, path in sorted(ends[mark], key=itemgetter(0)):
            active, offset = active - 1, offset - shift
            taken[shift % block] -= 1
            if unused is not None:
                unused.put((i, mark), shift + mark + more)
            for v in reversed(path):
                using[v] -= 1
                shared -= 0 if using[v] else problem.nodes[v]
                if unused is not None and not using[v]:
                    unused.put(v, problem.nodes[v])
        # Nothing begins before it arrives, or before the end of a wait.
        if (begin := waits.get(mark, now)) < now or begin < due[mark]:
            raise Invalid(
                f"{what}: at round {mark:,} something begins too early, before it arrives "
                "or what it waits for"
            )
        now = begin
        # Starts hold their nodes, and process what is not in the cache.
        for prompt, shift, path in begins[mark]:
            active, offset, prompts = active + 1, offset + shift, prompts + prompt
            taken[shift % block] += 1
            for v in path:
                shared += 0 if using[v] else problem.nodes[v]
                if unused is not None:
                    prompts -= problem.nodes[v] if using[v] else unused.take(v)
                using[v] += 1
        steps = chunks.get(mark, ())
        prompts += sum(done for done, _, _ in steps)
        nodes = {v for _, _, path in steps for v in path if not using[v]}
        beside = sum(private for _, private, _ in steps) + sum(problem.nodes[v] for v in nodes)
        # Up to the next mark all hold more and more, so memory peaks there.
        stays += kept.get(mark, 0)
        peak = max(peak, offset + active * following + shared + beside + stays)
        if problem.max_active is not None and active + len(steps) > problem.max_active:
            raise Invalid(
                f"{what}: {active + len(steps):,} requests are active at one time, at most "
                f"{problem.max_active:,} may be"
            )
        if block > 1:  # the tokens, and what rounding up adds
            taken = defaultdict(int, {rest: n for rest, n in taken.items() if n})
            spare = sum(n * (-(rest + following) % block) for rest, n in taken.items())
            spare += sum(-private % block for _, private, _ in steps)
            tokens = offset + active * following + shared + beside + stays + spare
            if (blocks := tokens // block) > problem.memory // block:
                raise Invalid(
                    f"{what}: {blocks:,} blocks are held at one time, there are "
                    f"{problem.memory // block:,}"
                )
        # All rounds up to the next mark, of which the first has the prompts.
        if clock is not None and (active or steps) and (rounds := following - mark):
            now += clock.line(active + prompts) + clock.prompt * prompts
            now += (rounds - 1) * clock.line(active)
            # Twice the mean of the rounds:
            held = 2 * (offset + shared) + active * (mark + 1 + following)
            now += clock.kv * (rounds * held // 2 + beside)
    if peak > problem.memory:
        raise Invalid(f"{what}: {peak:,} tokens are held at one time, memory is {problem.memory:,}")
    return peak, times


def _split(problem: Problem, i: int, held: int) -> tuple[int, tuple[int, ...]]:
    """Return the nodes that the first tokens of a request hold fully, and how many others."""
    path = problem.paths[i] if problem.paths else ()
    full = 0
    while full < len(path) and held >= problem.nodes[path[full]]:
        held, full = held - problem.nodes[path[full]], full + 1
    return held, path[:full]


class _Unused(OrderedDict[Any, int]):
    """Computed tokens without a user, the least recently used first."""

    total = 0

    def put(self, what: int | tuple[int, int], tokens: int) -> None:
        """Add a node, or the private tokens of a request."""
        self[what] = tokens
        self.total += tokens

    def take(self, node: int) -> int:
        """Return the cached tokens of a node that is used again, and remove them."""
        tokens = self.pop(node, 0)
        self.total -= tokens
        return tokens

    def drop(self, over: int, unit: int) -> None:
        """Drop the oldest tokens while there are too many, from nodes whole blocks."""
        while over > 0 and self:
            what, tokens = next(iter(self.items()))
            size = unit if isinstance(what, int) else 1
            gone = min(tokens, -(-over // size) * size)
            self[what], self.total, over = tokens - gone, self.total - gone, over - gone
            if gone == tokens:
                del self[what]
