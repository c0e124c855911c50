"""Check schedules and runs, and compute their values."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict, defaultdict
from itertools import accumulate
from operator import itemgetter, mul, sub
from typing import Any

from kvopt.verify.problem import Problem, Request
from kvopt.verify.work import Invalid, Work, paired, pairwise, refuse

_Piece = tuple[int, int, int, int]
"""Request, start, end, and tokens held before: work at the times start + 1 .. end."""
_Part = tuple[list[_Piece], list[dict[str, Any]], dict[int, int], set[int]]
"""Data of one worker: pieces of work and of prompts, waits, and rounds whose ends are needed."""


def uncovered(claim: dict[str, Any], scope: str) -> str:
    """Return features of a run that a scope does not cover, empty if there are none."""
    used = []
    if "pauses" not in scope and any(len(rows) > 1 for rows in claim.get("segments", [])):
        used.append("pauses")
    if "chunks" not in scope and claim.get("chunks"):
        used.append("prompts in pieces")
    return " and ".join(used)


def times_of(claim: dict[str, Any]) -> str:
    """Return the name of the field with the times of a run."""
    return "segments" if "segments" in claim else "starts"


def checked_run(
    problem: Problem, claim: dict[str, Any], what: str, work: Work, *, first: bool = False
) -> tuple[int, list[int]]:
    """Check a run and its value; return the most tokens that a worker holds, and some times.

    They are those at which requests complete, or have their first tokens, without tokens that an
    eviction loses.
    """
    requests, clock, lost = problem.requests, problem.clock, claim.get("lost", [])
    pieces, begins = _pieces(requests, claim, what)
    chunks, waits = _chunks(requests, claim, what), claim.get("waits", [])
    if clock is None and (waits or chunks):
        raise Invalid(f"{what}: rounds know neither waits nor pieces of prompts")
    is_cut = chunks or len(pieces) > len(requests) + len(lost)
    if clock is not None and problem.paths and is_cut:
        raise Invalid(f"{what}: in seconds prefixes go without pauses and prompts in pieces")
    on: list[int] = claim.get("workers", [0] * len(requests) if problem.workers == 1 else [])
    is_known = len(on) == len(requests) and all(0 <= worker < problem.workers for worker in on)
    refuse(not is_known, f"{what}: needs one of {problem.workers:,} workers for each request")
    size = 2 + (problem.workers > 1)  # a wait of a fleet names its worker
    used = {*on}
    if any(len(row) != size or row[0] < 0 or not used.issuperset(row[2:]) for row in waits):
        raise Invalid(f"{what}: a wait must be [round, time{', worker' * (size > 2)}]")
    work.part, block = f"{what}: ", problem.block
    count = len(pieces) + len(waits) + sum(1 + len(row["tokens"]) for row in chunks)
    lines = 8 * len(clock.lines) if clock else 0
    work.spend(count * (lines + (block > 1) * (20 + 8 * min(block, len(requests)))))
    ends = [end for _, _, end, _ in pieces[: len(requests)]]
    asked = [begin + 1 for begin in begins] if first else ends
    parts: dict[int, _Part] = defaultdict(lambda: ([], [], {}, set()))
    for piece in pieces:
        parts[on[piece[0]]][0].append(piece)
    for row in chunks:
        parts[on[row["request"]]][1].append(row)
    for row in waits:
        parts[sum(row[2:])][2][row[0]] = row[1]
    for worker, mark in paired(on, asked):
        parts[worker][3].add(mark)
    swept = {worker: _swept(problem, part, what) for worker, part in parts.items()}
    times = [swept[worker][1][end] for worker, end in paired(on, ends)]
    weights = problem.weights or (1,) * len(requests)
    latencies = map(sub, times, (request.arrival for request in requests))
    value = sum(map(mul, weights, latencies))
    if claim["value"] != value:
        raise Invalid(f"{what}: says {claim['value']:,}, the {times_of(claim)} give {value:,}")
    times = [swept[worker][1][mark] for worker, mark in paired(on, asked)]
    return max((peak for peak, _ in swept.values()), default=0), times


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

    They do not overlap with each other or with the segments of their request, and process at most
    its prompt and the tokens that it had produced.
    """
    rows = sorted(claim.get("chunks", []), key=lambda row: (row["request"], row["start"]))
    free: dict[int, int] = {}
    begins: dict[int, list[int]] = {}  # of its segments
    made: dict[int, list[int]] = {}  # by a request before each of its segments
    for row in rows:
        i, start, tokens = row["request"], row["start"], row["tokens"]
        if not 0 <= i < len(requests) or not tokens or min(tokens) < 1 or start < free.get(i, 0):
            raise Invalid(f"{what}: pieces of a prompt of request {i} are not in order")
        free[i] = end = start + len(tokens)
        segments = claim["segments"][i]
        if i not in made:
            begins[i] = [first - 1 for first, _ in segments]
            made[i] = [0, *accumulate(last - first + 1 for first, last in segments)]
        place = bisect_right(begins[i], start)
        apart = place < len(segments) and (place == 0 or segments[place - 1][1] <= start)
        most = requests[i].prompt + made[i][place]
        if not apart or segments[place][0] <= end or sum(tokens) > most:
            raise Invalid(f"{what}: request {i} has no prompt to process at {start:,} .. {end:,}")
    return rows


def _swept(problem: Problem, part: _Part, what: str) -> tuple[int, dict[int, int]]:
    """Go through the rounds of a worker; return its most tokens, and the ends of rounds.

    Rounds have numbers; a request that starts at k is active in the rounds k + 1 .. k + o.  On a
    clock in seconds they follow one another at once, except that round r + 1 begins at the time t
    for each wait [r, t], and a request that continues after a pause processes its prompt and its
    tokens again.  A piece holds held - start + t at time t, so from one event to the next all hold
    ``offset + active * t``, which only grows.  In whole blocks, pieces whose ``held - start``
    leaves the same remainder take a new one at the same times.  Nodes of prefixes are held once.

    In seconds computed tokens stay after their last user while they fit: the least recently used
    leave first, of a request its private tokens, then nodes from the last one, in whole blocks.
    """
    requests, clock, block = problem.requests, problem.clock, problem.block
    pieces, rows, waits, asked = part
    processed = {
        (row["request"], row["start"] + len(row["tokens"])): sum(row["tokens"]) for row in rows
    }
    begins, ends, chunks = defaultdict(list), defaultdict(list), defaultdict(list)
    unused = _Unused() if clock is not None and problem.paths else None
    due: dict[int, int] = defaultdict(int)  # the latest arrival of the requests that start here
    for i, start, end, held in pieces:
        path = problem.paths[i] if problem.paths else ()
        shift = held - start - sum(problem.nodes[v] for v in path)
        begins[start].append((held - processed.get((i, start), 0), shift, path))
        ends[end].append((i, shift, path))
        due[start] = max(due[start], requests[i].arrival)
    for row in rows:  # tokens processed in a round, and held by then
        due[row["start"]] = max(due[row["start"]], requests[row["request"]].arrival)
        for mark, step in enumerate(paired(row["tokens"], accumulate(row["tokens"])), row["start"]):
            chunks[mark].append(step)
    now = active = offset = peak = shared = 0
    using: dict[int, int] = defaultdict(int)  # active pieces by node
    taken: dict[int, int] = defaultdict(int)  # pieces by remainder
    known, after = {}, (mark + 1 for mark in chunks)
    marks = sorted({*begins, *ends, *waits, *chunks, *after, *asked})
    for mark, following in pairwise([*marks, *marks[-1:]]):
        known[mark] = now = mark if clock is None else now
        prompts = 0
        if unused is not None:
            held = offset + active * mark + shared
            unused.drop(held + unused.total - problem.memory, problem.unit)
        for i, shift, path in sorted(ends[mark], key=itemgetter(0)):
            active, offset = active - 1, offset - shift
            taken[shift % block] -= 1
            if unused is not None:
                unused.put((i, mark), shift + mark)
            for v in reversed(path):
                using[v] -= 1
                shared -= 0 if using[v] else problem.nodes[v]
                if unused is not None and not using[v]:
                    unused.put(v, problem.nodes[v])
        if (begin := waits.get(mark, now)) < now or begin < due[mark]:
            raise Invalid(
                f"{what}: at round {mark:,} something begins too early, before it arrives "
                "or what it waits for"
            )
        now = begin
        for prompt, shift, path in begins[mark]:
            active, offset, prompts = active + 1, offset + shift, prompts + prompt
            taken[shift % block] += 1
            for v in path:
                shared += 0 if using[v] else problem.nodes[v]
                if unused is not None:
                    prompts -= problem.nodes[v] if using[v] else unused.take(v)
                using[v] += 1
        prompts += sum(done for done, _ in chunks.get(mark, ()))
        beside = sum(held for _, held in chunks.get(mark, ()))
        peak = max(peak, offset + active * following + shared + beside)
        if problem.most is not None and active > problem.most:
            raise Invalid(
                f"{what}: {active:,} requests are active at one time, at most "
                f"{problem.most:,} may be"
            )
        if block > 1:  # the tokens, and what rounding up adds
            taken = defaultdict(int, {rest: n for rest, n in taken.items() if n})
            spare = sum(n * (-(rest + following) % block) for rest, n in taken.items())
            if (blocks := (offset + active * following + spare) // block) > problem.memory // block:
                raise Invalid(
                    f"{what}: {blocks:,} blocks are held at one time, there are "
                    f"{problem.memory // block:,}"
                )
        if clock is not None and (active or beside) and (rounds := following - mark):
            now += clock.line(active + prompts) + clock.prompt * prompts
            now += (rounds - 1) * clock.line(active)
            # Twice the mean of the rounds:
            held = 2 * (offset + shared) + active * (mark + 1 + following)
            now += clock.kv * (rounds * held // 2 + beside)
    if peak > problem.memory:
        raise Invalid(f"{what}: {peak:,} tokens are held at one time, memory is {problem.memory:,}")
    return peak, known


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
