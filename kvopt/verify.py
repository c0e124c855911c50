"""Check a certificate of kvopt in exact integers, with the standard library alone.

    python -m kvopt.verify FILE [--budget K]      exit status 0 valid, 1 invalid, 2 unreadable

This file needs nothing else of kvopt: it can be copied, and read, on its own.

The problem: a cache of M tokens; request i arrives at round a, has a prompt of s tokens and
produces o more, one a round.  Started at k >= a it holds s + (t - k) tokens at the times
t = k+1 .. k+o; its latency is k + o - a.  No more than M tokens may be held at any time.  The
optimum is the least total latency of a schedule.

A certificate claims that the optimum is at most ``upper``, with a schedule; that it is at least
``lower``, with a proof; and what policies reached, with their runs.  It is unreadable when it
does not have the shape below, and invalid when it has but says something that is not so.  A
file may state how long its check takes, and is granted that up to about ten minutes.  One that
takes more steps or memory is unreadable too, with the budget that it needs where that is known;
``--budget K`` allows K times half a minute.

Of a fleet there are ``workers`` such caches; a schedule names the worker of each request, and on
each worker no more than M tokens may be held.

A certificate in seconds says the same of a clock on which a round lasts as long as its batch
needs, see `_Clock`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import signal
import sys
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import accumulate, chain, count, pairwise, repeat
from operator import add, itemgetter, le, mul, sub
from types import ModuleType
from typing import Any, NamedTuple, NoReturn, TypeVar

COVERED = (
    "covered: every schedule that runs each request to its end once started, or evicts it, loses "
    "its tokens and starts it again; not covered: pausing a request with its tokens kept, or "
    "processing a prompt in pieces"
)
"""The line of a report that says of which schedules its lower bound speaks."""
COVERED_BY = {
    "runs": COVERED,
    "restarts": COVERED,
    "pauses": (
        "covered: every schedule that runs each request to its end, pauses it with its tokens "
        "kept, or evicts it, loses its tokens and starts it again; not covered, in seconds: "
        "processing a prompt in pieces"
    ),
    "chunks": (
        "covered: every schedule that processes each prompt at once or in pieces, and runs each "
        "request to its end once started, or evicts it, loses its tokens and starts it again; not "
        "covered: pausing a request with its tokens kept"
    ),
    "pauses+chunks": (
        "covered: every schedule that processes each prompt at once or in pieces, and runs each "
        "request to its end, pauses it with its tokens kept, or evicts it, loses its tokens and "
        "starts it again"
    ),
}
"""The same for each scope.  In rounds a prompt in pieces only comes later than one at once."""

LARGEST_FILE = 90_000_000
"""Bytes; a larger file is refused unread."""
STEPS = 600_000_000
"""Steps that a check may take if its file states no more: half a minute, each about 50 ns."""
BYTES = 850_000_000
"""Bytes of tables that it may hold at one time then."""
MOST_STATED = 20
"""Times as many steps that are granted to a file that states them: about ten minutes."""
MOST_BYTES = 4_000_000_000
"""Bytes that are granted to it at most."""
UNLISTED = 3
"""Times as many steps for a search of which a file does not state how large its rounds are."""
MOST_PARTS = 10_000_000
"""Brackets and commas in a file, so that a short text cannot become huge objects."""
MOST_DIGITS = 300
"""Digits of an integer; no honest one comes near, and none makes arithmetic slow."""
LARGEST_FIELD = 2**53 - 1
"""Of an instance: what every JSON reader keeps exactly."""
MOST_TIMES = 1_000_000
"""Times the default budget; a refusal does not name more than this."""

_FEW_DIGITS = 19
"""Digits up to which arithmetic costs what a step allows for."""
_MOST_LINES = 9
"""Lines of a model that the report names one by one."""
_OF_RUNS = ("configurations", "search", "slot-prices")
"""Proofs that look ahead along a run."""
_MARK = STEPS // 2
"""Steps from one word of progress to the next."""
_SMALL = 6
"""A block of 2^6 starts is looked at start by start."""

# Shapes: a type, a fixed text, None, a list of one shape, the fields of an object ("?" marks
# those that may be left out), or a tuple of alternatives.
_REQUEST = {
    "arrival": int, "prompt": int, "output": int, "id?": str, "arrival_seconds?": (int, float),
    "predicted?": {"lower": int, "upper": int}, "priority?": int,
    "deadline?": int,
}  # fmt: skip
_INSTANCE = {
    "schema": ("kvopt.instance/1", "kvopt.instance/2"), "name?": str, "notes?": (str, dict),
    "memory": int, "workers?": int, "round_ms?": (int, float), "requests": [_REQUEST],
    "block_size?": int,
}  # fmt: skip
_STAGE = {"denominator": int, "peaks": [[int]], "times": [int], "numerators": [[int]]}
_PROOFS = (
    {"kind": "prices", "denominator": int, "first": int, "numerators": [int]},
    {"kind": "volume", "staircases?": [[int]]},
    {"kind": "configurations", "target": (None, int), "searched": bool, "stages": [_STAGE]},
)
_RUN = {"value": int, "starts": [int]}
_FLEET = {**_RUN, "workers?": [int]}
_PAUSED = {"value": int, "segments": [[[int]]], "workers?": [int]}
_NAMED = {"policy": str, "outcome": "completed"}
_POLICY = (
    {**_NAMED, **_RUN, "lost?": [[int]]},
    {"policy": str, "outcome": ("livelock", "unfinished"), "value": None},
)
_SCOPES = tuple(COVERED_BY)
_SHARES = {"kind": "shares", "lines": [int], "weights": [int], "company": [int]}
_SHARES_2 = {**_SHARES, "mix?": [int], "parts?": int}
_SEARCH = {**_PROOFS[0], "kind": "search", "target": int}
_SLOTS = {
    **_PROOFS[0], "kind": "slot-prices", "borders": [int],
    "slots": [{"count": int, "numerators": [int]}],
}  # fmt: skip
_PARTS = (*_PROOFS, _SEARCH, _SLOTS)
_SPLIT = {"kind": "split", "parts": [{"from": int, "proof": _PARTS}]}
_BLOCK_PRICES = {**_PROOFS[0], "kind": "block-prices"}
_SLOWER = {"machine": [int], "value": int}
_BUDGET = (int, {"times": int, "searches": [[int]]})
_CERTIFICATE = {
    "schema": "kvopt.certificate/1",
    "instance": _INSTANCE,
    "hash": str,
    "upper": (None, _RUN),
    "lower": (None, {"value": int, "proof": _PROOFS}),
    "policies?": [_POLICY],
    "provenance?": dict,
}
_MODEL = {
    "name?": str, "notes?": str, "lines": [{"round_ns": int, "token_ns": int}],
    "kv_ns": int, "prompt_ns": int,
}  # fmt: skip
_TIMED = {**_RUN, "lost?": [[int]], "waits?": [[int]]}
_CHUNKS = {"request": int, "start": int, "tokens": [int]}
_TIMED_PAUSED = {**_PAUSED, "waits?": [[int]], "chunks?": [_CHUNKS]}
_SECONDS = {
    "schema": "kvopt.seconds-certificate/1",
    "instance": _INSTANCE,
    "hash": str,
    "model": _MODEL,
    "upper": (None, _TIMED),
    "lower": (None, {"value": int, "proof": _SHARES}),
    "policies?": [({**_TIMED, **_NAMED}, _POLICY[1])],
    "provenance?": dict,
}
_PRICED = {"times": [int], "numerators": [int], "denominator": int, "lines?": [int]}
_DEADLINES = {
    "aim": ("completion", "first-token"), "after": (int, "own"), "ceiling": int, "proof": _PRICED,
    "attained": [(None, int)],
}  # fmt: skip
_MANY_IN_TIME = {"attained": int, "lost?": [[int]]}
_SHAPES: dict[Any, dict[str, Any]] = {
    "kvopt.certificate/1": _CERTIFICATE,
    "kvopt.certificate/2": {
        **_CERTIFICATE,
        "schema": "kvopt.certificate/2",
        "upper": (None, _FLEET, _PAUSED),
        "lower": (None, {"value": int, "proof": (*_PARTS, _SPLIT, _BLOCK_PRICES)}),
        "policies?": [({**_POLICY[0], **_FLEET}, _POLICY[1], {**_NAMED, **_PAUSED})],
        "slower?": [{**_SLOWER, "proof?": (*_PARTS, _SPLIT)}],
        "scope?": _SCOPES,
        "budget?": _BUDGET,
        "deadlines?": {
            **_DEADLINES,
            "best": (None, {**_FLEET, **_MANY_IN_TIME}, {**_PAUSED, "attained": int}),
        },
    },
    "kvopt.seconds-certificate/1": _SECONDS,
    "kvopt.seconds-certificate/2": {
        **_SECONDS,
        "schema": "kvopt.seconds-certificate/2",
        "upper": (None, {**_TIMED, **_FLEET}, _TIMED_PAUSED),
        "lower": (None, {"value": int, "proof": _SHARES_2}),
        "policies?": [({**_TIMED, **_FLEET, **_NAMED}, _POLICY[1], {**_TIMED_PAUSED, **_NAMED})],
        "slower?": [{**_SLOWER, "proof?": _SHARES_2}],
        "scope?": _SCOPES,
        "budget?": _BUDGET,
        "deadlines?": {
            **_DEADLINES,
            "best": (
                None,
                {**_TIMED, **_FLEET, **_MANY_IN_TIME},
                {**_TIMED_PAUSED, "attained": int},
            ),
        },
    },
}


@dataclass(frozen=True)
class Verdict:
    """What was found: ``valid`` if every claim holds; ``lines`` say in words what it proves."""

    valid: bool
    readable: bool
    lines: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        """0 valid, 1 invalid, 2 unreadable."""
        return 0 if self.valid else 1 if self.readable else 2


class Unreadable(Exception):
    """The file does not have the shape of a certificate."""


class Invalid(Exception):
    """The file says something that is not so."""


class Request(NamedTuple):
    """Arrival round, prompt tokens, output tokens."""

    arrival: int
    prompt: int
    output: int


_T = TypeVar("_T")


def verify(
    path: str | os.PathLike[str],
    budget: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Verdict:
    """Check a certificate file; whatever the file holds, the answer is a verdict.

    Parameters
    ----------
    path
        The file.
    budget
        How many times the default number of steps, and of bytes, the check may take; None for
        what the file states, up to about ten minutes and 4 GB.
    progress
        Called with a line every quarter of a minute or so.

    Raises
    ------
    ValueError
        If the budget is not a positive number.
    """
    work = _Work(budget, progress)
    try:
        certificate = _read(path, work)
        work.grant(certificate.get("budget"))
        return Verdict(True, True, tuple(_report(certificate, work)))
    except Invalid as error:
        return Verdict(False, True, (f"INVALID: {error}",))
    except Unreadable as error:
        return Verdict(False, False, (f"UNREADABLE: {error}",))
    except MemoryError:
        return Verdict(False, False, ("UNREADABLE: needs more memory than there is",))


# ---- the budget -------------------------------------------------------------------------


class _Work:
    """Counts what a check takes, so that no file keeps the checker busy for hours.

    What is linear in the size of a file is bounded with that.  Everything else is charged before
    it is done: in steps, and in bytes where it fills tables.  Integers of many digits are slow,
    and large: ``weight`` is how often a step counts then, ``entry`` the bytes of a number in a
    list.  Of each search to come ``searches`` has the sizes of rounds that the file states.
    """

    def __init__(
        self, times: float | None = None, progress: Callable[[str], None] | None = None
    ) -> None:
        if times is not None and not 0 < times < math.inf:  # which NaN is not
            raise ValueError("budget: must be a positive number")
        self.is_told, self.progress, self.searches = times is not None, progress, list[list[int]]()
        self.used, self.held, self.weight, self.entry, self.mark = 0, 0, 1, 40, _MARK
        self.times = 1.0 if times is None else times
        self.bytes = self.times * BYTES

    def grant(self, stated: int | dict[str, Any] | None) -> None:
        """Allow what a file states that its check needs, unless the reader decided on that."""
        known = stated if isinstance(stated, dict) else {"times": stated, "searches": []}
        times = known["times"]
        if times is not None and times < 2:
            raise Invalid("budget: must be at least 2")
        if self.is_told or times is None:
            return
        if times > MOST_STATED:
            raise Unreadable(f"the file says that it needs {_needed(times, 'steps')}")
        self.times, self.bytes = times, min(times * BYTES, MOST_BYTES)
        self.searches = known["searches"][::-1]

    def widen(self, digits: int) -> None:
        """Take note that integers may have so many digits."""
        self.weight = max(self.weight, 1 + digits // 100)
        self.entry = max(self.entry, 40 + digits // 2)

    def spend(self, steps: int, why: str = "") -> None:
        """Take steps, each about the time of an entry of a table."""
        steps *= self.weight
        self.used += steps
        if self.used > self.times * STEPS:
            needed = -(-self.used // STEPS)
            if steps > STEPS:  # a loop whose length is known, so most of it all
                raise Unreadable(f"{why}needs about {_needed(needed, 'steps')}")
            raise Unreadable(
                f"{why}the budget of {int(self.times * STEPS):,} steps is used up: "
                f"{_option(max(2 * math.ceil(self.times), needed))}"
            )
        if self.progress is not None and self.used >= self.mark:
            self.mark = self.used + _MARK
            share = int(100 * self.used / (self.times * STEPS))
            self.progress(f"checking, {share}% of at most about {_minutes(self.times)}")

    def each(self, items: Collection[_T], why: str) -> Iterator[_T]:
        """Yield items; refuse when those that took half a minute foretell too much for all."""
        began = self.used
        for done, item in enumerate(items, 1):
            yield item
            if (spent := self.used - began) > STEPS:
                foretold = self.used + spent * (len(items) - done) // done
                if foretold > 2 * self.times * STEPS:
                    raise Unreadable(f"{why}needs about {_needed(-(-foretold // STEPS), 'steps')}")

    def sizes(self) -> Iterator[float]:
        """Return the most partial schedules of each round of the next search."""
        if self.searches:
            return chain([1], (2 * size + 100 for size in self.searches.pop()), repeat(100))
        if not self.is_told:
            self.times, self.bytes = min(self.times, UNLISTED), min(self.bytes, UNLISTED * BYTES)
        return repeat(math.inf)

    def left(self) -> float:
        """Return how many bytes more may be held."""
        return self.bytes - self.held

    def check_room(self, size: int, why: str = "") -> None:
        """Refuse to hold so many bytes more than what is held, if that is too much."""
        if size > self.left():
            raise Unreadable(
                f"{why}needs about {_needed(-(-(self.held + size) // BYTES), 'memory')}"
            )

    @contextmanager
    def room(self, size: int, why: str = "") -> Iterator[None]:
        """Hold so many bytes for a while."""
        self.check_room(size, why)
        self.held += size
        try:
            yield
        finally:
            self.held -= size


def _needed(times: int, what: str) -> str:
    if times > MOST_TIMES:
        return f"more than {MOST_TIMES:,} times the default budget of {what}"
    return f"{times:,} times the default budget of {what}: {_option(times)}"


def _option(times: int) -> str:
    size = f"{times * BYTES / 10**9:,.1f} GB"
    return f"verify --budget {times} allows it about {_minutes(times)} and {size}"


def _minutes(times: float) -> str:
    return "half a minute" if times <= 1 else f"{math.ceil(times / 2):,} min"


# ---- reading ----------------------------------------------------------------------------


def _read(path: str | os.PathLike[str], work: _Work) -> dict[str, Any]:
    """Return the object of a file that has the shape of a certificate."""
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            raw = stream.read(LARGEST_FILE + 1) if size <= LARGEST_FILE else b""
        if max(size, len(raw)) > LARGEST_FILE:
            raise Unreadable(f"has more than {LARGEST_FILE:,} bytes")
        text = raw.decode("utf-8-sig")
        lists, objects, commas = map(text.count, "[{,")
        if lists + objects + commas > MOST_PARTS:
            raise Unreadable(f"has more than {MOST_PARTS:,} parts")
        work.held = 64 * lists + 240 * objects + 48 * commas
        value = json.loads(text, object_pairs_hook=_no_doubles,
                           parse_int=functools.partial(_short_integer, work),
                           parse_float=_finite, parse_constant=_finite)  # fmt: skip
    except RecursionError:
        raise Unreadable("is nested too deeply") from None
    except (OSError, ValueError) as error:  # a file that is not there, not text or not JSON
        raise Unreadable(f"cannot be read: {_shown(str(error))}") from None
    schema = value.get("schema") if type(value) is dict else None
    shape = _SHAPES.get(schema if type(schema) is str else None)
    if shape is None:
        raise Unreadable(f"certificate: must have the schema {' or '.join(_SHAPES)}")
    if misfit := _misfit(value, shape, "certificate"):
        raise Unreadable(misfit)
    found: dict[str, Any] = value
    return found


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise Unreadable("an object has a key twice")
    return found


def _short_integer(work: _Work, text: str) -> int:
    if len(text) > _FEW_DIGITS:
        if len(text) > MOST_DIGITS:
            raise Unreadable(f"holds an integer of more than {MOST_DIGITS} digits")
        work.widen(len(text))
    return int(text)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise Unreadable(f"holds {_shown(text)}, which is not a finite number")
    return number


def _misfit(value: Any, shape: Any, where: str) -> str | None:
    """Say where a value has not the shape it should have; None when it has."""
    if isinstance(shape, tuple):
        misfits = [_misfit(value, choice, where) for choice in shape]
        return None if None in misfits else max(filter(None, misfits), key=len)
    if isinstance(shape, type):  # not isinstance(value, ...): True is no integer here
        fits = type(value) is shape
        return None if fits else f"{where}: must be {shape.__name__}, is {type(value).__name__}"
    if isinstance(shape, list):
        if type(value) is not list:
            return f"{where}: must be a list"
        if shape == [int] and set(map(type, value)) <= {int}:
            return None
        parts = ((entry, shape[0], f"{where} {i}") for i, entry in enumerate(value))
    elif isinstance(shape, dict):
        known = {name.rstrip("?"): inner for name, inner in shape.items()}
        needed = {name for name in shape if name[-1] != "?"}
        if type(value) is not dict or not needed <= value.keys() <= known.keys():
            return f"{where}: must be an object with the fields {' '.join(shape)}"
        parts = ((entry, known[name], f"{where}, {name}") for name, entry in value.items())
    else:
        return None if value == shape else f"{where}: must be {shape}"
    return next(filter(None, (_misfit(*part) for part in parts)), None)


def _shown(text: str) -> str:
    """Return foreign text as 'text': short, on one line, and nothing in it ends the quotes."""
    pieces = [c.encode("unicode_escape").decode().replace("'", "\\'") for c in text[:81]]
    if len(text) <= 80 and sum(map(len, pieces)) <= 160:
        return f"'{''.join(pieces)}'"
    ends = accumulate(map(len, pieces[:77]))
    return f"'{''.join(piece for piece, end in zip(pieces, ends, strict=False) if end <= 157)}'..."


# ---- the instance -----------------------------------------------------------------------


class _Memory(int):
    """Tokens of the cache of a worker, and how many workers have one."""

    workers: int = 1


def _memory_of(instance: dict[str, Any]) -> _Memory:
    """Return the memory of an instance, with its workers."""
    memory = _Memory(instance["memory"])
    memory.workers = instance.get("workers", 1)
    if "workers" in instance and (memory.workers < 2 or instance["schema"][-1] == "1"):
        raise Invalid("instance: workers must be 2 or more, and need the schema kvopt.instance/2")
    return memory


def _used(memory: int, requests: Sequence[Request]) -> int:
    """Return how many workers can be of use: no more than there are requests."""
    return min(getattr(memory, "workers", 1), max(1, len(requests)))


def _requests(instance: dict[str, Any]) -> list[Request]:
    """Return the requests of an instance that keeps its own rules."""
    memory, rows = instance["memory"], instance["requests"]
    requests = [Request(row["arrival"], row["prompt"], row["output"]) for row in rows]
    for i, (arrival, prompt, output) in enumerate(requests):
        if not (0 <= arrival <= LARGEST_FIELD and prompt >= 0 and output >= 1):
            raise Invalid(f"instance: request {i} has a number that is too small or too large")
        if prompt + output > memory:
            raise Invalid(f"instance: request {i} needs more than the memory, so none is feasible")
    if not 1 <= memory <= LARGEST_FIELD:
        raise Invalid("instance: memory must be in 1 .. 2^53 - 1")
    if instance["schema"][-1] == "1" and any("priority" in r or "deadline" in r for r in rows):
        raise Invalid("instance: priorities and deadlines need the schema kvopt.instance/2")
    if not all(1 <= row.get("deadline", 1) <= LARGEST_FIELD for row in rows):
        raise Invalid("instance: a deadline is too small or too large")
    ids = {row.get("id", f"r{i}") for i, row in enumerate(rows)}
    if len(ids) < len(rows) or "" in ids:
        raise Invalid("instance: an id is empty or used twice")
    return requests


def _hash(instance: dict[str, Any]) -> str:
    """Return the hash of what the problem is: name, notes and ids are labels."""
    rows = []
    for row in instance["requests"]:
        known = row.get("predicted")
        rows.append([row["arrival"], row["prompt"], row["output"]])
        if known or "arrival_seconds" in row:
            rows[-1].append(known and [known["lower"], known["upper"]])
        if "arrival_seconds" in row:
            rows[-1].append(_clock(row["arrival_seconds"]))
        if newer := {name: row[name] for name in ("priority", "deadline") if name in row}:
            rows[-1].append(newer)
    content = {"schema": instance["schema"], "memory": instance["memory"], "requests": rows}
    if "workers" in instance:
        content["workers"] = instance["workers"]
    if "block_size" in instance:
        content["block_size"] = instance["block_size"]
    if "round_ms" in instance:
        content["round_ms"] = _clock(instance["round_ms"])
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _clock(number: float) -> float:
    if not 0 <= number <= sys.float_info.max:
        raise Invalid("instance: a time in seconds or milliseconds is negative or endless")
    return float(number) + 0.0  # which turns -0.0 into 0.0


# ---- schedules and runs -----------------------------------------------------------------


def _peak_of(
    memory: int,
    requests: list[Request],
    work: _Work,
    claim: dict[str, Any],
    what: str,
    block: int = 1,
) -> int:
    """Check starts, lost work, memory and value of a run; return the most tokens it holds."""
    pieces, _ = _pieces(requests, claim, what)
    value = sum(end for _, _, end, _ in pieces[: len(requests)])
    value -= sum(request.arrival for request in requests)
    if claim["value"] != value:
        raise Invalid(f"{what}: says {claim['value']:,}, the {_times_of(claim)} give {value:,}")
    on = _workers_of(memory, requests, claim, what)
    by_worker: dict[int, list[_Piece]] = defaultdict(list)
    for piece in pieces:
        by_worker[on[piece[0]]].append(piece)
    peak = max(map(_most_held, by_worker.values()), default=0)
    if peak > memory:
        raise Invalid(f"{what}: {peak:,} tokens are held at one time, memory is {memory:,}")
    if block > 1 and (needed := _most_blocks(pieces, block, work)) > memory // block:
        raise Invalid(
            f"{what}: {needed:,} blocks are held at one time, there are {memory // block:,}"
        )
    return peak


def _workers_of(
    memory: int, requests: Sequence[Request], claim: dict[str, Any], what: str
) -> list[int]:
    """Return the worker that each request runs on, 0 where there is one."""
    most = getattr(memory, "workers", 1)
    found: list[int] = claim.get("workers", [0] * len(requests) if most == 1 else [])
    if len(found) != len(requests) or not all(0 <= worker < most for worker in found):
        raise Invalid(f"{what}: needs one of {most:,} workers for each request")
    return found


_Piece = tuple[int, int, int, int]
"""Request, start, end, and tokens held before: work at the times start + 1 .. end."""


def _times_of(claim: dict[str, Any]) -> str:
    return "segments" if "segments" in claim else "starts"


def _count_of(requests: list[Request], claim: dict[str, Any]) -> int:
    """Return about how many pieces of work a run has."""
    return len(requests) + len(claim.get("lost", [])) + sum(map(len, claim.get("segments", [])))


def _pieces(
    requests: list[Request], claim: dict[str, Any], what: str
) -> tuple[list[_Piece], list[int]]:
    """Return all work, and when each request first starts.

    The first pieces are those with which the requests complete, in their order.
    """
    if "segments" in claim:
        return _segments(requests, claim["segments"], what)
    starts = claim["starts"]
    if len(starts) != len(requests):
        raise Invalid(f"{what}: has {len(starts)} starts for {len(requests)} requests")
    if any(k < request.arrival for k, request in zip(starts, requests, strict=True)):
        raise Invalid(f"{what}: a request starts before it arrives")
    pieces = [
        (i, k, k + r.output, r.prompt)
        for i, (k, r) in enumerate(zip(starts, requests, strict=True))
    ]
    free = [request.arrival for request in requests]
    firsts = list(starts)
    # Evicted work [i, start, end] held memory at start+1 .. end.  What a request lost lies after
    # its arrival, apart, and before the start that counts.
    for row in sorted(claim.get("lost", [])):
        if len(row) != 3 or not 0 <= row[0] < len(requests):
            raise Invalid(f"{what}: lost work must be [request, start, end]")
        i, start, end = row
        if not free[i] <= start < end <= min(starts[i], start + requests[i].output - 1):
            raise Invalid(f"{what}: request {i} cannot lose the work of {start:,} .. {end:,}")
        free[i], firsts[i] = end, min(firsts[i], start)
        pieces.append((i, start, end, requests[i].prompt))
    return pieces, firsts


def _segments(
    requests: list[Request], segments: list[list[list[int]]], what: str
) -> tuple[list[_Piece], list[int]]:
    """Return the pieces of a run with pauses: [first, last] are the times of tokens in a row.

    A request that paused with g tokens made goes on as one with a prompt of s + g.
    """
    if len(segments) != len(requests):
        raise Invalid(f"{what}: has segments of {len(segments)} for {len(requests)} requests")
    last: list[_Piece] = []
    before: list[_Piece] = []
    for i, (request, rows) in enumerate(zip(requests, segments, strict=True)):
        free, held = request.arrival, request.prompt
        for row in rows:
            if len(row) != 2 or not free < row[0] <= row[1]:
                raise Invalid(f"{what}: a segment of request {i} is not [first, last] after "
                              "its arrival and the segment before")  # fmt: skip
            before.append((i, row[0] - 1, row[1], held))
            free, held = row[1], held + row[1] - row[0] + 1
        if held != request.prompt + request.output:
            raise Invalid(f"{what}: request {i} makes {held - request.prompt:,} tokens")
        last.append(before.pop())
    return last + before, [rows[0][0] - 1 for rows in segments]


def _chunks(requests: list[Request], claim: dict[str, Any], what: str) -> list[dict[str, Any]]:
    """Return the pieces in which prompts were processed, round by round, without a token.

    They lie apart from each other and from the segments of their request, and process no more
    than its prompt and the tokens that it had made.
    """
    rows = sorted(claim.get("chunks", []), key=lambda row: (row["request"], row["start"]))
    free: dict[int, int] = {}
    made: dict[int, list[int]] = {}  # by a request before each of its segments
    for row in rows:
        i, start, tokens = row["request"], row["start"], row["tokens"]
        if not 0 <= i < len(requests) or not tokens or min(tokens) < 1 or start < free.get(i, 0):
            raise Invalid(f"{what}: pieces of a prompt of request {i} are not in order")
        free[i] = end = start + len(tokens)
        segments = claim["segments"][i]
        if i not in made:
            made[i] = [0, *accumulate(last - first + 1 for first, last in segments)]
        place = bisect_right(segments, start, key=lambda segment: segment[0] - 1)
        apart = place < len(segments) and (place == 0 or segments[place - 1][1] <= start)
        most = requests[i].prompt + made[i][place]
        if not apart or segments[place][0] <= end or sum(tokens) > most:
            raise Invalid(f"{what}: request {i} has no prompt to process at {start:,} .. {end:,}")
    return rows


def _most_held(pieces: list[_Piece]) -> int:
    """Return the most tokens that pieces of work hold at one time.

    A piece holds held - start + t, so together they hold ``offset + count * t``.  That only
    falls after an end, so it peaks at an end: ends are visited before begins of the same time.
    """
    begins = [(start, 1, held - start) for _, start, _, held in pieces]
    ends = [(end, -1, start - held) for _, start, end, held in pieces]
    peak = count = offset = 0
    for time, change, shift in sorted(begins + ends):
        peak = max(peak, offset + count * time)
        count, offset = count + change, offset + shift
    return peak


# ---- memory in whole blocks -------------------------------------------------------------


def _block_size(certificate: dict[str, Any], requests: list[Request]) -> int:
    """Return the tokens of a block: h tokens take ceil(h / B) of floor(M / B) blocks."""
    instance = certificate["instance"]
    memory: int = instance["memory"]
    block: int = instance.get("block_size", 1)
    if "block_size" not in instance:
        return 1
    if not 2 <= block <= LARGEST_FIELD or instance["schema"][-1] == "1":
        raise Invalid("instance: blocks have at least 2 tokens, and the schema kvopt.instance/2")
    beside = certificate.keys() & {"model", "deadlines", "slower"}
    if beside or instance.get("workers", 1) > 1:
        raise Invalid("instance: whole blocks go with total latency in rounds, of one worker, only")
    if any(-(-(r.prompt + r.output) // block) > memory // block for r in requests):
        raise Invalid("instance: a request needs more blocks than the memory has")
    if block > memory:
        raise Invalid("instance: memory has not one block")
    return block


def _most_blocks(pieces: list[_Piece], block: int, work: _Work) -> int:
    """Return the most blocks that pieces of work take at one time.

    They give blocks back only when they end, so the most are taken at ends.  Pieces whose
    ``held - start`` leaves the same remainder take their blocks at the same times.
    """
    events = [(start, 1, held - start) for _, start, _, held in pieces]
    events += [(end, -1, held - start) for _, start, end, held in pieces]
    peak = wholes = 0
    active: dict[int, int] = {}  # by remainder
    for time, change, offset in sorted(events):
        if change < 0:
            work.spend(10 + 4 * len(active))
            now = sum(n * -(-(rest + time) // block) for rest, n in active.items())
            peak = max(peak, wholes + now)
        whole, rest = divmod(offset, block)
        wholes += change * whole
        active[rest] = active.get(rest, 0) + change
        if not active[rest]:
            del active[rest]
    return peak


def _judged_in_blocks(
    block: int,
    memory: int,
    requests: list[Request],
    work: _Work,
    proof: dict[str, Any],
    pauses: bool,
) -> tuple[int, str]:
    """Return what a proof gives, and in words what was looked at.

    Blocks only restrict: every bound for the tokens of all blocks holds.  Prices may also be paid
    for whole blocks: see `_least_costs`, with ``B ceil((s + j) / B)`` for ``s + j`` and the tokens
    of all blocks for M.  What is said there of pauses needs only that holdings never shrink.
    """
    memory -= memory % block
    if proof["kind"] == "block-prices":
        return _price_bound(memory, requests, proof, work, pauses, block), "prices of whole blocks"
    value, how = _judged(memory, requests, work, proof, pauses)
    return value, f"{how}, in tokens,"


# ---- proofs of lower bounds -------------------------------------------------------------


def _judged(
    memory: int,
    requests: list[Request],
    work: _Work,
    proof: dict[str, Any],
    pauses: bool = False,
) -> tuple[int, str]:
    """Return the lower bound that a proof gives, and in words what was looked at.

    Configurations, searches, slots and staircases judge runs as wholes: they do not cover pauses.
    """
    if proof["kind"] == "split":
        return _by_parts(memory, requests, work, proof["parts"], pauses)
    if pauses and (proof["kind"] in _OF_RUNS or proof.get("staircases")):
        raise Invalid("lower: configurations, searches, slots and staircases do not cover pauses")
    if proof["kind"] == "slot-prices":
        return _slot_bound(memory, requests, proof, work), "prices of tokens and slots"
    if proof["kind"] == "search":
        return _by_search(memory, requests, proof, work)
    if proof["kind"] == "configurations":
        return _by_configurations(memory, requests, proof, work)
    if proof["kind"] == "volume":
        return _volume_bound(memory, requests, proof.get("staircases", []), work), "volume"
    return _price_bound(memory, requests, proof, work, pauses), "prices"


def _by_parts(
    memory: int,
    requests: list[Request],
    work: _Work,
    parts: list[dict[str, Any]],
    pauses: bool,
) -> tuple[int, str]:
    """Return the sum of what the proofs of parts of the requests give, each for its own.

    A part holds the requests that arrive from its ``from`` on, before that of the next one.  A
    feasible schedule of all requests, less those of other parts, is one of the part; and total
    latency is a sum over requests.  So the bounds of the parts add up.
    """
    borders = [part["from"] for part in parts]
    if not parts or any(a >= b for a, b in pairwise(borders)):
        raise Invalid("lower: must have a part, and their begins ascend")
    shares: list[list[Request]] = [[] for _ in parts]
    for request in requests:
        place = bisect_right(borders, request.arrival) - 1
        if place < 0:
            raise Invalid("lower: a request arrives before the first part")
        shares[place].append(request)
    total = 0
    kinds = dict.fromkeys(part["proof"]["kind"] for part in parts)
    for part, own in zip(parts, shares, strict=True):
        if own:  # the bound of no requests is 0
            total += _judged(memory, own, work, part["proof"], pauses)[0]
    return total, f"{len(parts):,} part{'s' * (len(parts) > 1)} ({', '.join(kinds)})"


def _price_bound(
    memory: int,
    requests: list[Request],
    proof: dict[str, Any],
    work: _Work,
    pauses: bool,
    block: int = 1,
) -> int:
    """Return what prices of tokens prove, see `_least_costs`."""
    denominator, first, prices = proof["denominator"], proof["first"], proof["numerators"]
    if denominator < 1 or first < 1 or min(prices, default=0) < 0:
        raise Invalid("lower: needs a denominator and times of at least 1, and no negative price")
    least = _least_costs(requests, denominator, first, prices, work, pauses, block)
    bound: int = -((_used(memory, requests) * memory * sum(prices) - least) // denominator)
    return bound


def _slot_bound(memory: int, requests: list[Request], proof: dict[str, Any], work: _Work) -> int:
    """Return what prices of tokens and of slots prove.

    Say that a request which holds h tokens needs ``(c + 1) h // (M + 1)`` of c slots.  Requests
    that hold at most M tokens together need at most ``(c + 1) M // (M + 1) <= c`` slots together.
    So to the price of its tokens, see `_least_costs`, the cost of a start may add a price for each
    slot at each time, and M sum_t p_t becomes that plus the prices of all c slots.  In a fleet
    each worker has its own.
    """
    denominator, first, prices = proof["denominator"], proof["first"], proof["numerators"]
    borders, slots = proof["borders"], proof["slots"]
    if denominator < 1 or first < 1 or min(prices, default=0) < 0:
        raise Invalid("lower: needs a denominator and times of at least 1, and no negative price")
    if len(borders) < 2 or any(a >= b for a, b in pairwise(borders)):
        raise Invalid("lower: slots need two borders of prices or more, which ascend")
    if borders[0] < 0 or any(each["count"] < 1 for each in slots):
        raise Invalid("lower: borders are not negative, and there is a slot of each number")
    if any(min(each["numerators"], default=-1) < 0 for each in slots):
        raise Invalid("lower: no price of a slot is negative")
    if any(len(each["numerators"]) != len(borders) for each in slots):
        raise Invalid("lower: slots need a price at each border")
    # Of each threshold: a line, the sum of it and those below, and both moved to the first arrival.
    lines = len(slots) + sum(each["count"] for each in slots)
    work.spend(lines * (40 + 20 * len(borders)), "lower: slots: ")
    room = lines * (600 + 8 * work.entry * len(borders))
    with work.room(room, "lower: slots: "):
        return _with_slots(memory, requests, proof, work)


def _with_slots(memory: int, requests: list[Request], proof: dict[str, Any], work: _Work) -> int:
    """Return what `_slot_bound` does, of prices that are of the right form."""
    denominator, first, prices = proof["denominator"], proof["first"], proof["numerators"]
    borders, slots = proof["borders"], proof["slots"]
    stairs: dict[int, _Line] = {}
    paid = memory * sum(prices)
    for each in slots:
        line = _Line.of(borders, each["numerators"])
        paid += each["count"] * line.paid(borders[-1])
        for number in range(1, each["count"] + 1):
            threshold = -(-number * (memory + 1) // (each["count"] + 1))
            stairs[threshold] = stairs[threshold].plus(line) if threshold in stairs else line
    # All prices in one table, which begins with the first of either and ends with the last.
    begin, end = min(first - 1, borders[0]), max(first - 1 + len(prices), borders[-1])
    work.spend(end - begin, "lower: too many rounds lie between prices: ")
    work.check_room(work.entry * (end - begin), "lower: ")
    table = [0] * (first - 1 - begin) + prices + [0] * (end - (first - 1 + len(prices)))
    least = _least_costs(requests, denominator, begin + 1, table, work, False, stairs=stairs)
    bound: int = -((_used(memory, requests) * paid - least) // denominator)
    return bound


class _Line(NamedTuple):
    """Prices that change evenly from border to border, and are 0 elsewhere.

    Between the borders b and b' with the prices q and q' the price at t is

        q + (t - b) ceil((q' - q) / (b' - b))    for b < t <= b',

    which is at least what lies on a straight line from q to q', so it is not negative.

    Parameters
    ----------
    borders
        At least two, ascending.
    values, slopes
        Of each stretch between borders, the price at its border and how it changes in a round.
    sums
        Sum of the prices up to each border.
    """

    borders: list[int]
    values: list[int]
    slopes: list[int]
    sums: list[int]

    @classmethod
    def of(cls, borders: list[int], values: list[int]) -> _Line:
        """Return the prices with these values at borders."""
        lengths = [b - a for a, b in pairwise(borders)]
        slopes = [-((a - b) // n) for (a, b), n in zip(pairwise(values), lengths, strict=True)]
        totals = (
            n * value + slope * (n * (n + 1) // 2)
            for n, value, slope in zip(lengths, values[:-1], slopes, strict=True)
        )
        return cls(borders, values[:-1], slopes, [*accumulate(totals, initial=0)])

    def plus(self, other: _Line) -> _Line:
        """Return the sum with prices of the same borders."""
        pairs = zip(self[1:], other[1:], strict=True)
        values, slopes, sums = ([*map(add, mine, yours)] for mine, yours in pairs)
        return _Line(self.borders, values, slopes, sums)

    def shifted(self, rounds: int) -> _Line:
        """Return the same prices so many rounds earlier."""
        return self._replace(borders=[border - rounds for border in self.borders])

    def paid(self, time: int) -> int:
        """Return the sum of the prices up to a time."""
        place = bisect_right(self.borders, time) - 1
        if place < 0 or place == len(self.values):
            return self.sums[max(place, 0)]
        n = time - self.borders[place]
        return self.sums[place] + n * self.values[place] + self.slopes[place] * (n * (n + 1) // 2)

    def sums_at(self, begin: int, end: int) -> list[int]:
        """Return the sums of the prices up to each of the times ``begin .. end - 1``."""
        prices: list[int] = []
        for low, high, price, slope in self._stretches(begin, end - 1):
            rising = range(price, price + slope * (high - low), slope) if slope else ()
            prices += rising or [price] * (high - low)
        return [*accumulate(prices, initial=self.paid(begin))]

    def below(self, begin: int, end: int, starts: int) -> tuple[int, int]:
        """Return a line below what is paid at ``begin + 1 + k .. end + k`` for ``0 <= k < starts``.

        It has a first value and a rise.  Between two borders it is exact.
        """
        place = bisect_right(self.borders, begin) - 1
        if place + 1 == len(self.borders) or end + starts - 1 <= self.borders[place + 1]:
            rise = self.slopes[place] if 0 <= place < len(self.slopes) else 0
            return self.paid(end) - self.paid(begin), rise * (end - begin)
        prices = (
            min(price, price + slope * (high - low - 1))
            for low, high, price, slope in self._stretches(begin, end + starts - 1)
        )
        return min(prices) * (end - begin), 0

    def crossed(self, begin: int, end: int) -> int:
        """Return how many borders lie after one time, up to another."""
        return bisect_right(self.borders, end) - bisect_right(self.borders, begin)

    def _stretches(self, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield stretches ``low + 1 .. high`` that make up ``begin + 1 .. end``.

        With each come its first price, and by how much that changes in a round.
        """
        place, low = bisect_right(self.borders, begin) - 1, begin
        while low < end:
            known = 0 <= place < len(self.values)
            high = min(end, self.borders[place + 1]) if place < len(self.values) else end
            if known:
                slope = self.slopes[place]
                yield low, high, self.values[place] + (low + 1 - self.borders[place]) * slope, slope
            else:
                yield low, high, 0, 0
            place, low = place + 1, high


def _least_costs(
    requests: list[Request],
    scale: int,
    first: int,
    prices: list[int],
    work: _Work,
    pauses: bool,
    block: int = 1,
    stairs: dict[int, _Line] | None = None,
) -> int:
    """Return the sum over requests of the least cost of a request, times the denominator.

    Let a token held at time t cost p_t >= 0.  The cost of a request started at k is

        (k + o - a) + sum_{j=1..o} p_{k+j} (s + j),

    its latency and the price of its tokens.  A schedule holds at most M tokens at each time, so
    its costs sum to at most its total latency + M sum_t p_t.  Hence no total latency is below
    the sum of the *least* costs - M sum_t p_t.  Of a fleet M is what all workers hold together.

    With ``stairs`` a request pays, at times within those of the prices, as long as it holds the
    tokens of a threshold or more, what the line there says.
    """
    # A request that can be done before the first price costs o, and nothing costs less.  The
    # others arrive at most o rounds before it, so the table begins with few prices of 0.
    total = scale * sum(request.output for request in requests)
    kinds = Counter(request for request in requests if request.arrival + request.output >= first)
    begin = min([first - 1, *(request.arrival for request in kinds)])
    if not kinds:
        return total
    gap, longest = first - 1 - begin, max(request.output for request in kinds)
    length = gap + len(prices) + min(longest, gap + len(prices))
    levels = max(length.bit_length(), _SMALL) - _SMALL + 1
    why = "lower: "
    if gap > len(prices):
        why = "lower: too many rounds lie between an arrival and the first price: "
    work.spend((10 + 9 * levels) * length + 20 * len(requests), why)
    steps = [(tokens, line.shifted(begin)) for tokens, line in sorted((stairs or {}).items())]
    with work.room((24 + 9 * work.entry) * length, why):
        costs: _Costs | _BlockCosts = (
            _Costs(scale, [0] * gap + prices, longest, work, steps)
            if block == 1
            else _BlockCosts(scale, [0] * gap + prices, longest, work, block)
        )
        paused = _PausedCosts(scale, [0] * gap + prices, work, block) if pauses else None
        for (arrival, prompt, output), times in work.each(kinds.items(), "lower: "):
            least = costs.least(arrival - begin, prompt, output)
            if paused is not None:
                least = paused.least(arrival - begin, prompt, output, least)
            total += times * least
    return total


class _Costs:
    """Least costs of requests under the prices q_1 .. q_T over D; q_t = 0 after T.

    Without the latency o that every start has, and times D, a start at k costs

        D (k - a) + sum_{j=1..o} q_{k+j} (s + j)
            = X_k - s P_k + (s + o) P_{k+o} - W_{k+o} - D a

    with P_k = q_1 + .. + q_k, W_k = P_0 + .. + P_{k-1} and X_k = D k + W_k.  After T nothing is
    paid and waiting only costs latency, so k runs over a .. T, T included.

    *Which starts need no look.*  Let q_t = b t + r_t at all times that the starts of a block pass
    through.  The line makes their costs linear in k, so least at an end of the block.  The rest
    adds sum_j r_{k+j} (s + j).  With v = sum_j (s + j) that is at least v min r.  It is also, for
    any number c and the sums E_t of r_u - c over u <= t,

        v c + (s + o) E_{k+o} - s E_k - sum_{j=0..o-1} E_{k+j} >= v c - (s + o) (max E - min E).

    The first is good where prices bend, the second where they are rough.  A block that may hold
    a start cheaper than the best so far is cut in two, or looked at start by start when it is
    small.  So whatever the prices are, the least cost is exact.

    *Steps* add a difference of sums for each line of thresholds that are reached.  In a block of
    starts it is a straight line in k, or at least the least price there in each round.
    """

    def __init__(
        self,
        scale: int,
        prices: list[int],
        longest: int,
        work: _Work,
        stairs: list[tuple[int, _Line]],
    ) -> None:
        self.scale, self.last, self.work, self.stairs = scale, len(prices), work, stairs
        self.reached = [*accumulate((line for _, line in stairs), _Line.plus)]
        prices = prices + [0] * min(longest, self.last)  # so that k + o is in the tables
        self.paid = list(accumulate(prices, initial=0))  # P
        self.held = list(accumulate(self.paid, initial=0))  # W
        self.begun = list(map(add, self.held, count(0, scale)))  # X
        # Slopes of lines are fractions: numbers of lines count in units of 1 / (D 2^shift).
        self.shift = len(prices).bit_length()
        fine = [price << self.shift for price in prices]
        self.lines = [
            [self._line(fine, begin, 1 << level) for begin in range(0, len(fine), 1 << level)]
            for level in range(_SMALL, max(self.shift, _SMALL) + 1)
        ]

    def _line(self, fine: list[int], begin: int, half: int) -> tuple[int, int, int, int]:
        """Return b, min r, c and max E - min E for the times ``begin + 1 .. begin + 2 half``."""
        middle, end = (min(begin + part * half, len(fine)) for part in (1, 2))
        slope = (self.paid[end] - 2 * self.paid[middle] + self.paid[begin] << self.shift) // half**2
        rest = list(map(sub, fine[begin:end], count(slope * (begin + 1), slope)))
        sums = list(accumulate(rest))
        mean = sums[-1] // len(rest)
        rough = list(map(sub, sums, count(mean, mean)))
        return slope, min(rest), mean, max(0, max(rough)) - min(0, min(rough))

    def least(self, arrival: int, prompt: int, output: int) -> int:
        """Return the least cost of a request over all its starts, its output left out."""
        if arrival >= self.last:
            return 0
        output = min(output, self.last)  # after it no start pays
        peak = prompt + output
        volume = prompt * output + output * (output + 1) // 2
        moment = output * (output + 1) * (3 * prompt + 2 * output + 1) // 6  # sum_j j (s + j)
        wait = self.scale << self.shift
        best = wait * (self.last - arrival)
        blocks = [(0, arrival, self.last + 1)]
        steps = self._steps(prompt, peak)
        while blocks and blocks[0][0] < best:
            _, begin, end = heappop(blocks)
            size = min(end - begin, 1 << _SMALL)
            crossed = steps[0][1].crossed(begin, end + output) if steps else 0
            self.work.spend(20 + 2 * size + len(steps) * (40 + 4 * size + 20 * crossed))
            if end - begin <= 1 << _SMALL:
                costs = self._costs(begin, end, arrival, prompt, output)
                for before, line in steps:
                    ends = line.sums_at(begin + output, end + output)
                    begins = line.sums_at(begin + before, end + before)
                    costs = map(add, costs, map(sub, ends, begins))
                best = min(best, min(costs) << self.shift)
                continue
            middle = (begin + end) // 2
            for k, after in ((begin, middle), (middle, end)):
                level = max((after - k + output - 2).bit_length() - _SMALL, 0)
                slope, low, mean, rough = self.lines[level][k >> level + _SMALL]
                bound = max(volume * low, volume * mean - peak * rough)
                bound += wait * (k - arrival) + slope * (volume * k + moment)
                rise = wait + slope * volume
                for before, line in steps:
                    least, change = line.below(k + before, k + output, after - k)
                    bound, rise = bound + (least << self.shift), rise + (change << self.shift)
                bound += min(0, rise * (after - 1 - k))
                if bound < best:
                    heappush(blocks, (bound, k, after))
        return best >> self.shift

    def _steps(self, prompt: int, peak: int) -> list[tuple[int, _Line]]:
        """Return the lines that a request pays, each after so many rounds.

        The thresholds that its first token reaches are one line.
        """
        first = bisect_right(self.stairs, prompt + 1, key=itemgetter(0))
        final = bisect_right(self.stairs, peak, key=itemgetter(0))
        self.work.spend(10 * (final - first))
        later = self.stairs[first:final]
        steps = [(0, self.reached[first - 1])] if first else []
        return steps + [(tokens - prompt - 1, line) for tokens, line in later]

    def _costs(self, begin: int, end: int, arrival: int, prompt: int, output: int) -> Iterable[int]:
        """Return the costs of the starts ``begin .. end - 1``, without those of steps."""
        now, then = slice(begin, end), slice(begin + output, end + output)
        columns = self.begun[now], self.paid[now], self.paid[then], self.held[then]
        peak, early = prompt + output, self.scale * arrival
        return [x - prompt * p + peak * q - w - early for x, p, q, w in zip(*columns, strict=True)]


class _BlockCosts:
    """Least costs of requests that pay for whole blocks: token j costs q_{k+j} B ceil((s + j) / B).

    With P_k = q_1 + .. + q_k and h_j for what token j pays, they sum to

        h_o P_{k+o} - h_1 P_k - B sum P_{k+j}  over those j < o for which B divides s + j.

    These j are B apart, so with S_x = P_x + S_{x-B} the last sum is a difference of two.
    """

    def __init__(
        self, scale: int, prices: list[int], longest: int, work: _Work, block: int
    ) -> None:
        self.scale, self.last, self.work, self.block = scale, len(prices), work, block
        prices = prices + [0] * min(longest, self.last)
        self.paid = list(accumulate(prices, initial=0))
        self.strided = list(self.paid)
        for x in range(block, len(self.paid)):
            self.strided[x] += self.strided[x - block]

    def least(self, arrival: int, prompt: int, output: int) -> int:
        """Return the least cost of a request over all its starts, its output left out."""
        if arrival >= self.last:
            return 0
        block, output = self.block, min(output, self.last)  # after it no start pays
        low, high = (-(-(prompt + j) // block) * block for j in (1, output))
        first = block - prompt % block  # the token that fills a block
        final = output - 1 - (output - 1 - first) % block  # the last of them, if any
        best = self.scale * (self.last - arrival)
        begin, size = arrival, 1 << _SMALL
        while begin <= self.last and self.scale * (begin - arrival) < best:
            end = min(begin + size, self.last + 1)
            self.work.spend(20 + 3 * (end - begin), "lower: ")
            waits = range(begin - arrival, end - arrival)
            pairs = self.paid[begin:end], self.paid[begin + output : end + output]
            costs: Iterable[int] = (
                self.scale * wait + high * then - low * now
                for wait, now, then in zip(waits, *pairs, strict=True)
            )
            if first < output:
                filled = self._filled(begin, end, first, final)
                costs = map(sub, costs, map(mul, filled, repeat(block)))
            best, begin, size = min(best, *costs, best), end, 2 * size
        return best

    def _filled(self, begin: int, end: int, first: int, final: int) -> Iterator[int]:
        """Return for each start k the sum of P_{k+j} over the tokens j that fill a block."""
        after = self.strided[begin + final : end + final]
        x = begin + first - self.block
        missing = min(max(0, -x), end - begin)
        before = [0] * missing + self.strided[x + missing : x + end - begin]
        return map(sub, after, before)


class _PausedCosts:
    """Least costs of requests that may pause: token j costs p_t (s + j), at ascending times t.

    Where whole blocks are paid, it costs ``p_t B ceil((s + j) / B)``, which is no less.

    Let U be the least cost without pauses.  A completion more than U / D after the arrival costs
    more than U.  After T, the last time with a price, and o tokens later, waiting only costs
    latency.  So completions c lie in a window that begins with the arrival.

    Let q_t be the least price from the arrival to t.  It never rises, so under q it costs least
    to make the o tokens before c without a pause, and no less is paid under p.  Where that is U
    or more for a completion, it needs no look.  If the prices themselves never rise up to the
    last completion that does need one, pauses do not help.  Else token by token,

        m_j(t) = min(m_j(t - 1), p_t (s + j) + m_{j-1}(t - 1))

    is the least price of the first j tokens, made by t.
    """

    def __init__(self, scale: int, prices: list[int], work: _Work, block: int = 1) -> None:
        self.scale, self.prices, self.work, self.block = scale, prices, work, block
        self.rises = [t for t, (now, after) in enumerate(pairwise(prices)) if now < after]

    def least(self, arrival: int, prompt: int, output: int, most: int) -> int:
        """Return the least cost, its output times D left out, where ``most`` is without pauses."""
        place = bisect_left(self.rises, arrival)
        last = min(most // self.scale, max(0, len(self.prices) - arrival)) + output
        if place == len(self.rises) or self.rises[place] + 1 >= arrival + last:
            return most
        self.work.spend(10 * last, "lower: ")
        with self.work.room((24 + 4 * self.work.entry) * last, "lower: "):
            prices = self.prices[arrival : arrival + last]
            prices += [0] * (last - len(prices))
            falling = list(accumulate(prices, min))
            worth = [
                c for c, cost in enumerate(self._in_a_row(falling, prompt, output)) if cost < most
            ]
            if not worth or self.rises[place] + 1 >= arrival + output + worth[-1]:
                return most
            return min(most, self._with_pauses(prices[: output + worth[-1]], prompt, output))

    def _in_a_row(self, prices: list[int], prompt: int, output: int) -> Iterator[int]:
        """Yield what tokens at the times k + 1 .. k + o cost, and waiting for k rounds."""
        paid = list(accumulate(prices, initial=0))
        held = list(accumulate(paid, initial=0))
        for k in range(len(prices) - output + 1):
            end = k + output
            tokens = (prompt + output) * paid[end] - prompt * paid[k] - (held[end] - held[k])
            yield tokens + k * self.scale

    def _with_pauses(self, prices: list[int], prompt: int, output: int) -> int:
        slack = len(prices) - output
        self.work.spend(5 * output * (slack + 1), "lower: pauses: ")
        made: Iterable[int] = [0] * (slack + 1)
        for j in range(1, output):
            tokens = map(mul, prices[j - 1 : j + slack], repeat(self._held(prompt + j)))
            made = list(accumulate(map(add, made, tokens), min))
        ends = map(mul, prices[output - 1 :], repeat(self._held(prompt + output)))
        best: int = min(map(add, map(add, made, ends), count(0, self.scale)))
        return best

    def _held(self, tokens: int) -> int:
        return -(-tokens // self.block) * self.block


def _volume_bound(
    memory: int, requests: list[Request], staircases: list[list[int]], work: _Work
) -> int:
    """Return what follows from resources used like water: memory, M tokens in each round.

    A request needs v = s o + o (o + 1) / 2 token-rounds.  The j-th completion of a schedule is
    not before the j-th of the fluid, nor before the j-th smallest a + o.  Of the states of a
    staircase with so many thresholds no more can stand together: another resource.  Each worker
    of a fleet has as much of both.
    """
    together = _used(memory, requests)
    volumes = [r.prompt * r.output + r.output * (r.output + 1) // 2 for r in requests]
    soonest = sorted(request.arrival + request.output for request in requests)
    ranks = list(map(max, soonest, _fluid(requests, volumes, together * memory)))
    states = sum(request.output for request in requests)
    for thresholds in staircases:
        if not thresholds or sorted(thresholds) != thresholds or thresholds[0] < 1:
            raise Invalid("lower: thresholds of a staircase ascend, from 1 on")
        steps = 100 * len(requests) + 5 * states
        steps += 4 * sum(bisect_right(thresholds, r.prompt + r.output) for r in requests)
        work.spend(steps, "lower: its staircases would take too long to check: ")
        needed = [_passed(memory, thresholds, request) for request in requests]
        ranks = list(map(max, ranks, _fluid(requests, needed, together * len(thresholds))))
    return sum(ranks) - sum(request.arrival for request in requests)


def _passed(memory: int, thresholds: list[int], request: Request) -> int:
    """Count the states of a staircase that a request passes.

    They are the (h, r) with i >= 1 thresholds up to h, and h + (i + 1) r + their sum > M.
    """
    count = i = total = 0
    for held in range(request.prompt + 1, request.prompt + request.output + 1):
        while i < len(thresholds) and thresholds[i] <= held:
            total += thresholds[i]
            i += 1
        left = request.prompt + request.output - held
        count += i > 0 and held + (i + 1) * left + total > memory
    return count


def _fluid(requests: list[Request], volumes: list[int], rate: int) -> list[int]:
    """Return completions of the fluid that serves the least remaining volume first, ascending.

    By every time it completes as many requests as any schedule can.  Time is counted in units:
    round t is the units (t - 1) rate + 1 .. t rate.
    """
    arriving = sorted((r.arrival * rate, v) for r, v in zip(requests, volumes, strict=True))
    ends = [time for time, _ in arriving[1:]]
    ends += [arriving[-1][0] + sum(volumes) + 1] if arriving else []  # by then all is served
    clock = 0
    waiting: list[int] = []
    fluid: list[int] = []
    for (time, volume), end in zip(arriving, ends, strict=True):
        clock = max(clock, time)
        heappush(waiting, volume)
        while waiting and (clock < end or waiting[0] == 0):
            left = heappop(waiting)
            served = min(left, end - clock)
            clock += served
            if served < left:
                heappush(waiting, left - served)
            else:
                fluid.append(-(-clock // rate))
    return fluid


# ---- proofs by configurations -----------------------------------------------------------
#
# A request with h tokens now and r rounds to go is in the *state* (h, r); h + r, its peak, never
# changes.  At time t a state costs F_t(h, r) >= 0, and R_t is at least what all states together
# cost that a schedule can show at t.  Times a denominator D, the cost of a start k is
#
#     D (k + o - a) + sum_{g=1..o} F_{k+g}(s + g, o - g).
#
# Let L = sum_i (least cost of i) - sum_t R_t, and *reduced cost* be cost - least.  Then
#
#     D (total latency) - L  =  sum_i (reduced cost of i) + sum_t (R_t - F_t of what is active),
#
# with no negative term on the right.  (Each worker of a fleet shows states of its own, so R_t is
# that of one worker times their number.)  So no total latency is below L / D.  A schedule below
# the *target* has at most the *budget* (target - 1) D - L on the right: it has no start of more
# reduced cost.  What comes next needs to hold only for schedules of the starts that are left.
# Each request keeps its cheapest start, whose reduced cost is 0.


def _by_configurations(
    memory: int, requests: list[Request], proof: dict[str, Any], work: _Work
) -> tuple[int, str]:
    """Return what stages of prices of states prove, and in words what was looked at.

    Times count from the first arrival, so that those before it, at which nothing can be active,
    are not laid out.
    """
    target, searched = proof["target"], proof["searched"]
    if searched and _used(memory, requests) > 1:
        raise Invalid("lower: a search is of one worker")
    offset = min((request.arrival for request in requests), default=0)
    requests = [r._replace(arrival=r.arrival - offset) for r in requests]
    stages = [_Stage(stage, memory, requests, offset, work) for stage in proof["stages"]]
    if not stages or (target is None and (len(stages) > 1 or searched)):
        raise Invalid("lower: must have a stage, and just one and no search without a target")
    if any(stage.times[-1] != stages[0].times[-1] for stage in stages):
        raise Invalid("lower: the stages must have the same last time")
    last, kept = stages[0].last, len(requests)
    if target is None:  # no start will be ruled out, so costs of one peak at a time are enough
        peaks = Counter(request.prompt + request.output for request in requests)
        kept = max(peaks.values(), default=0)
    cells = last * (kept + 9)
    with work.room(
        cells * (205 + 2 * work.entry),
        "lower: has too many requests and rounds for configurations: ",
    ):
        return _by_stages(requests, stages, target, searched)


def _by_stages(
    requests: list[Request], stages: list[_Stage], target: int | None, searched: bool
) -> tuple[int, str]:
    """Return what stages prove, one after the other, and in words what was looked at."""
    last, times = stages[0].last, 0
    starts: Sequence[Sequence[int]]
    # From the last priced time on a start pays nothing: the first of those stands for them all.
    starts = [range(request.arrival, max(request.arrival, last) + 1) for request in requests]
    for used, stage in enumerate(stages, 1):
        times += len(stage.times)
        how = f"prices of configurations at {times:,} time" + "s" * (times > 1)
        how += f" in {used:,} stages" * (used > 1)
        costs = stage.evaluate(starts, keep=target is not None)
        value = -(-stage.total // stage.scale)
        if target is None:
            return value, how
        budget = _budget(stage, target)
        if budget < 0:
            return target, how
        left = _affordable(starts, costs, budget)
        starts = list(map(list, left))
    if searched:
        assert target is not None
        count = _Search(stage, left, target, budget).run()
        return target, f"{how} and a search of {count:,} partial schedules, none below {target:,},"
    assert target is not None
    return min(target, value), how


def _by_search(
    memory: int, requests: list[Request], proof: dict[str, Any], work: _Work
) -> tuple[int, str]:
    """Return what a search under prices of tokens proves, and in words what was looked at.

    All of the above holds where F_t is the price of the tokens that a state holds, and R_t that
    of M tokens: what stands together holds no more.
    """
    if _used(memory, requests) > 1:
        raise Invalid("lower: a search is of one worker")
    offset = min((request.arrival for request in requests), default=0)
    requests = [r._replace(arrival=r.arrival - offset) for r in requests]
    stage = _TokenStage(proof, memory, requests, offset, work)
    cells = stage.last * (len(requests) + 9)
    why = "lower: has too many requests and rounds for a search: "
    work.spend(30 * cells, why)
    with work.room(cells * (205 + 2 * work.entry), why):
        starts = [range(r.arrival, max(r.arrival, stage.last) + 1) for r in requests]
        costs = stage.evaluate(starts)
        budget = _budget(stage, proof["target"])
        if budget < 0:
            return proof["target"], "prices"
        left = _affordable(starts, costs, budget)
        count = _Search(stage, left, proof["target"], budget).run()
    return proof["target"], (
        f"prices and a search of {count:,} partial schedules, none below {proof['target']:,},"
    )


def _budget(stage: _Stage | _TokenStage, target: int) -> int:
    """Return what a schedule below a target has at most on the right."""
    return int((target - 1) * stage.scale - stage.total)


def _affordable(
    starts: Sequence[Sequence[int]], costs: list[list[int]], budget: int
) -> list[dict[int, int]]:
    """Return the reduced costs of the starts of each request that a better schedule may have."""
    pairs = [zip(*pair, strict=True) for pair in zip(starts, costs, strict=True)]
    return [{k: cost for k, cost in pair if cost <= budget} for pair in pairs]


class _TokenStage:
    """Prices over a denominator of a token at the times ``first``, ``first`` + 1, ....

    Times are counted from an offset, the first arrival: ``last`` is the last one with a price,
    ``most`` holds R at 0, 1, ..., and ``before`` the sum of all earlier R.
    """

    def __init__(
        self,
        proof: dict[str, Any],
        memory: int,
        requests: list[Request],
        offset: int,
        work: _Work,
    ) -> None:
        self.memory, self.requests, self.work = memory, requests, work
        self.scale, first, prices = proof["denominator"], proof["first"], proof["numerators"]
        if self.scale < 1 or first < 1 or min(prices, default=0) < 0:
            raise Invalid("lower: needs a denominator and times of at least 1, no negative price")
        skipped = max(0, offset - first)
        self.before = memory * sum(prices[:skipped])
        gap = max(0, first - offset) if prices[skipped:] else 0
        why = "lower: too many rounds lie between an arrival and the first price: "
        work.spend(20 * (gap + len(prices)) + 1000, why)
        work.check_room(5 * work.entry * (gap + len(prices)), why)
        self.prices = [0] * gap + prices[skipped:] or [0]
        self.last, self.most = len(self.prices) - 1, [memory * price for price in self.prices]
        self.total = 0

    def price(self, time: int, peak: int, r: int) -> int:
        """Return the price of a state at a time up to the last."""
        return int(self.prices[time] * (peak - r))

    def evaluate(self, starts: Sequence[Sequence[int]]) -> list[list[int]]:
        """Set ``total``, L, and return the reduced cost of each start.

        With P_t and W_t the sums of p_u and of u p_u over u <= t, the tokens of a start at k cost

            sum_{j=1..o} p_{k+j} (s + j)  =  (s - k) (P_{k+o} - P_k) + W_{k+o} - W_k.
        """
        last, scale = self.last, self.scale
        paid = [*accumulate(self.prices)]
        timed = [*accumulate(t * price for t, price in enumerate(self.prices))]
        total, reduced = -self.before - sum(self.most), []
        for (arrival, prompt, output), own in zip(self.requests, starts, strict=True):
            costs = []
            for k in own:
                a, b = min(k, last), min(k + output, last)
                held = (prompt - k) * (paid[b] - paid[a]) + timed[b] - timed[a]
                costs.append(scale * (k + output - arrival) + held)
            least = min(costs)
            total += least
            reduced.append([cost - least for cost in costs])
        self.total = total
        return reduced


class _Stage:
    """Prices over a denominator of the states of each [peak, rounds], those with r < rounds.

    A row of ``numerators`` holds the prices at one of the ``times``: peak by peak, r upwards.
    Other states cost nothing, nor does any before the first time or after the last.  At times
    t between two neighbours a and b the price is ((b - t) F_a + (t - a) F_b) // (b - a).  Times
    are then counted from an offset, the first arrival: ``last`` is the last of them that matters.
    """

    def __init__(
        self,
        stage: dict[str, Any],
        memory: int,
        requests: list[Request],
        offset: int,
        work: _Work,
    ) -> None:
        self.memory, self.requests, self.work = memory, requests, work
        self.scale, self.rows = stage["denominator"], stage["numerators"]
        if self.scale < 1 or min(stage["times"], default=0) < 1:
            raise Invalid("lower: needs a denominator and times of at least 1")
        self.times = [time - offset for time in stage["times"]]
        if any(a >= b for a, b in pairwise(self.times)):
            raise Invalid("lower: times must ascend")
        if not all(len(pair) == 2 and pair[1] >= 0 for pair in stage["peaks"]):
            raise Invalid("lower: peaks must be pairs [peak, rounds]")
        ends = list(accumulate((rounds for _, rounds in stage["peaks"]), initial=0))
        self.places = {
            p: range(end - n, end) for (p, n), end in zip(stage["peaks"], ends[1:], strict=True)
        }
        if len(self.places) < len(stage["peaks"]):
            raise Invalid("lower: a peak is listed twice")
        if [len(row) for row in self.rows] != [ends[-1]] * len(self.times):
            raise Invalid("lower: needs a price of each state at each of the times")
        if any(min(row, default=0) < 0 for row in self.rows):
            raise Invalid("lower: no price may be negative")
        self.last, self.total, self.before = max(0, self.times[-1]), 0, 0
        self.most: list[int] = []

    def price(self, time: int, peak: int, r: int) -> int:
        """Return the price of a state at a time up to the last."""
        places, x = self.places.get(peak, range(0)), bisect_right(self.times, time) - 1
        if x < 0 or r >= len(places):
            return 0
        known, price = self.times[x], self.rows[x][places[r]]
        if time == known:
            return int(price)
        gap, later = self.times[x + 1] - known, self.rows[x + 1][places[r]]
        return int(((gap - time + known) * price + (time - known) * later) // gap)

    def evaluate(self, starts: Sequence[Sequence[int]], *, keep: bool) -> list[list[int]]:
        """Set R, which is ``most`` at 0, 1, ... and ``before`` in all earlier, and ``total``, L.

        Return the reduced cost of each start, or of the cheapest ones only.
        """
        costs: list[list[int]] = [[]] * len(starts)
        alike, rounds = defaultdict(list), Counter[int]()
        for i, (_, prompt, output) in enumerate(self.requests):
            alike[prompt + output].append(i)
            known = len(self.places.get(prompt + output, ()))
            rounds[prompt + output] = max(rounds[prompt + output], min(known, output))
        steps = 9 * self.last + sum(self.last + 15 * len(own) + 20 for own in starts)
        steps += rounds.total() * (6 * self.last + 17 * len(self.times)) + 30 * len(self.times)
        self.work.spend(steps, "lower: ")
        states = [
            state for peak in alike for state in self._along(peak, alike[peak], starts, costs, keep)
        ]
        states.sort(reverse=True)
        self._charge(states)
        heaviest = []
        for x, row in enumerate(self.rows):
            some = [(r, h, row[i], most[x]) for r, h, i, most in states if row[i] and most[x]]
            heaviest.append(_used(self.memory, self.requests) * _heaviest(self.memory, some))
        # Rounded down as well: what states cost is an integer, at most the interpolation.
        self.most = _filled(self.times, heaviest)
        self.before = _sum_before(self.times, heaviest)
        least = list(map(min, costs))
        self.total = sum(least) - sum(self.most) - self.before
        return [[cost - low for cost in row] for row, low in zip(costs, least, strict=True)]

    def _charge(self, states: list[tuple[int, int, int, list[int]]]) -> None:
        """Charge the tables of all times before the first of them is filled."""
        steps, why = 0, "lower: memory is too large for configurations: "
        for x, row in enumerate(self.rows):
            some = [(r, h, most[x]) for r, h, i, most in states if row[i] and most[x]]
            cells, more = table_of(self.memory, some)
            self.work.check_room(self.work.entry * cells, why)
            steps += more
        self.work.spend(steps, why)

    def _along(
        self,
        peak: int,
        alike: list[int],
        starts: Sequence[Sequence[int]],
        costs: list[list[int]],
        keep: bool,
    ) -> list[tuple[int, int, int, list[int]]]:
        """Set the costs of the requests of one peak, or keep the least; return the peak's states.

        A state is (r, h, place, copies).  What completes at c is in the state of r at the time
        c - r.  ``paid[c]`` is the sum of those prices below some r; ``ends[c]`` counts the
        requests of more than r rounds that may complete at c.  So at time t at most ends[t + r]
        are in the state of r.  The price at times[x] has weight strictly between its neighbours:
        the largest of those counts limits the copies of a state in R.
        """
        places, last, scale = self.places.get(peak, range(0)), self.last, self.scale
        outputs = {i: self.requests[i].output for i in alike}
        waiting = sorted(alike, key=lambda i: -outputs[i])
        rounds = min(len(places), outputs[waiting[0]])
        paid, ends = ([0] * (2 * last + rounds + 1) for _ in range(2))
        done = {}  # from last + rounds on nothing is paid, and those may count as one
        for i in alike:
            done[i] = [min(k, last) + min(outputs[i], last + rounds) for k in starts[i]]
            for c in done[i]:
                ends[c] += 1
        nexts = [*self.times[1:], self.times[-1] + 1]
        windows = [(max(0, a), b) for a, b in zip([0, *self.times[:-1]], nexts, strict=True)]
        states = []
        for r in range(rounds + 1):
            while waiting and (r == rounds or outputs[waiting[-1]] == r):
                i = waiting.pop()
                for c in done[i]:
                    ends[c] -= 1
                delay = outputs[i] - self.requests[i].arrival
                pairs = zip(starts[i], done[i], strict=True)
                costs[i] = [scale * (k + delay) + paid[c] for k, c in pairs]
                if not keep:
                    costs[i] = [min(costs[i])]
            if r < rounds:
                column = _filled(self.times, [row[places[r]] for row in self.rows])
                paid[r : r + last + 1] = map(add, paid[r : r + last + 1], column)
                copies = [max(ends[a + 1 + r : b + r]) if a + 1 < b else 0 for a, b in windows]
                states.append((r, peak - r, places[r], copies))
        return states


def _filled(times: list[int], values: list[int]) -> list[int]:
    """Return the values at 0, 1, ..: 0 before the times, interpolated and rounded in between."""
    line = [0] * times[0]
    for (a, low), (b, high) in pairwise(zip(times, values, strict=True)):
        if b > 0:
            gap, step, skip = b - a, high - low, max(0, -a)
            begin, end = low * gap + skip * step, high * gap
            points = range(begin, end, step) if step else [begin] * (gap - skip)
            line += [point // gap for point in points]
    return [*line, values[-1]] if times[-1] >= 0 else [0]


def _sum_before(times: list[int], values: list[int]) -> int:
    """Return the sum of such values at all times before 0."""
    total = values[-1] if times[-1] < 0 else 0
    for (a, low), (b, high) in pairwise(zip(times, values, strict=True)):
        if a < 0:
            gap = b - a
            total += _sum_of_floors(min(b, 0) - a, gap, high - low, low * gap)
    return total


def _sum_of_floors(count: int, divisor: int, step: int, begin: int) -> int:
    """Return the sum of (begin + step j) // divisor over j = 0 .. count - 1.

    Whole parts are summed at once.  Of the rest, points of a grid below a line are counted, with
    the axes exchanged: as in Euclid's algorithm there are few rounds.
    """
    total = 0
    while True:
        total += step // divisor * (count * (count - 1) // 2) + begin // divisor * count
        step, begin = step % divisor, begin % divisor
        height = step * count + begin
        if height < divisor:
            return total
        count, begin, divisor, step = height // divisor, height % divisor, step, divisor


def _heaviest(memory: int, states: list[tuple[int, int, int, int]]) -> int:
    """Return the most that states (r, h, weight, copies) weigh which can stand together.

    They come by r descending.  A member fits if memory holds when it completes, when those
    before it are still there: H + h + (c + 1) r <= M, where H is the sum of the h of these c.
    ``best[c][H]`` is the weight of some members that fit, at most c and with a sum of at most
    H, and is at least that of all that have c and H exactly.
    """
    if not states:
        return 0
    members = min(sum(state[3] for state in states), memory // min(state[1] for state in states))
    best = [[0] * (memory + 1) for _ in range(members + 1)]
    low = memory
    for r, h, weight, copies in states:
        low = min(low, h)
        counts: Sequence[int] = range(min(members, memory // (low + r)))
        # Counts upwards add a state to what may have it already, downwards they add one copy.
        if copies < memory // (h + r):
            counts = [*reversed(counts)] * copies
        for c in counts:
            begin, end = c * low, memory - h - (c + 1) * r + 1
            if begin < end:
                fewer, more = best[c], best[c + 1]
                pairs = zip(fewer[begin:end], more[begin + h : end + h], strict=True)
                more[begin + h : end + h] = [
                    new if (new := old + weight) > known else known for old, known in pairs
                ]
    return max(map(max, best))


def table_of(memory: int, states: list[tuple[int, int, int]]) -> tuple[int, int]:
    """Return the cells, and the steps, of the table of `_heaviest` for states (r, h, copies)."""
    if not states:
        return 0, 0
    members = min(sum(copies for _, _, copies in states), memory // min(h for _, h, _ in states))
    cells, low = (members + 1) * (memory + 1), memory
    steps = cells + 20
    for r, h, copies in states:
        low = min(low, h)
        counts = min(members, memory // (low + r))
        # Ranges are as long as first, first - less, first - 2 less, ..., while that is positive.
        first, less = memory - h - r + 1, low + r
        filled = max(0, min(counts, -(-first // less)))
        entries = 2 * filled * first - less * filled * (filled - 1) + 12 * counts
        steps += entries * (copies if copies < memory // (h + r) else 1)
    return cells, steps


_Partial = tuple[tuple[int, ...], tuple[tuple[int, int], ...], int, int, tuple[int, ...]]


class _Search:
    """Looks for a schedule below the target, round by round, and misses none.

    A partial schedule has decided all starts before round k.  It is a tuple of

    - how many have started of each shape (prompt, output).  If two of one shape have arrived by
      the earlier of their starts, they may swap starts: latencies sum to the same, memory stays.
      So in some schedule below the target, if there is one, those of a shape start in the order
      of arrival, and we look for that one;
    - (completion, peak) of each that is active;
    - a bound, reduced costs + (R_t - F_t) so far and the least reduced cost that each waiting
      request has ahead.  It only grows; above the budget no schedule below the target goes on
      from here;
    - the latency of all that have started;
    - the tokens held at the times k + 1, k + 2, ....

    Of two that have started the same requests one is left out if the other has no more latency
    and never holds more.  Whatever schedule goes on from the one, the same later starts go on
    from the other, in the same order and to a total that is no larger.  If that is below the
    target, no bound stops it and no start of it was ruled out, for these hold for all schedules.
    """

    def __init__(
        self,
        stage: _Stage | _TokenStage,
        reduced_costs: list[dict[int, int]],
        target: int,
        budget: int,
    ) -> None:
        self.stage, self.target, self.budget = stage, target, budget
        self.requests, self.work = stage.requests, stage.work
        latest = max((request.arrival for request in self.requests), default=0)
        rounds = max(stage.last, latest) + budget // stage.scale
        longest = max((request.output for request in self.requests), default=0)
        cells = (rounds + longest) * len(reduced_costs)
        why = "lower: the search has too many rounds: "
        self.work.spend(8 * cells, why)
        self.work.check_room(200 * cells, why)
        self.work.held += 200 * cells
        shapes = defaultdict(list)
        for i in sorted(range(len(reduced_costs)), key=lambda i: self.requests[i].arrival):
            shapes[self.requests[i][1:]].append(i)
        self.shapes = list(shapes.values())
        # Bytes of a partial schedule, about and at most.
        least = min((request.prompt + 1 for request in self.requests), default=1)
        together = min(len(reduced_costs), stage.memory // least)
        self.width = 400 + 8 * len(shapes) + 72 * together + 40 * longest
        self.ramps = [tuple(range(s + 1, s + o + 1)) for s, o in shapes]
        self.reduced_costs, self.least = reduced_costs, []
        for request, own in zip(self.requests, reduced_costs, strict=True):
            if (late := max(own)) >= stage.last:  # stands for all that are later, too
                delays = range(1, (budget - own[late]) // stage.scale + 1)
                own.update({late + d: own[late] + d * stage.scale for d in delays})
            backwards = (own.get(k, budget + 1) for k in range(max(own), request.arrival - 1, -1))
            self.least.append([*accumulate(backwards, min, initial=budget + 1)][::-1])

    def run(self) -> int:
        """Return how many partial schedules there were, none of them below the target."""
        count = 0
        # Before the first arrival nothing can be active, so all of those R are lost.
        lost = self.stage.before + self.stage.most[0]
        nothing: _Partial = ((0,) * len(self.shapes), (), lost, 0, ())
        layer = [nothing] if lost <= self.budget else []
        for k, most in enumerate(self.work.sizes(), 1):
            if len(layer) > most:
                raise Unreadable(
                    f"lower: the search has {len(layer):,} partial schedules at round {k - 1:,}, "
                    "the file says fewer: verify --budget K allows it K times half a minute"
                )
            if not layer:
                break
            count += len(layer)
            self.work.spend(20 * len(self.requests) + 200 + 10 * len(layer) * len(self.shapes))
            plans = [self._plan(members, k - 1) for members in self.shapes]
            found: dict[Any, _Partial] = {}
            prices: dict[tuple[int, int], int] = {}
            for begin in range(0, len(layer), 100):
                part = layer[begin : begin + 100]
                for shape, plan in enumerate(plans):
                    if any(plan):
                        others = len(layer) + len(found) + len(part)
                        part = self._begun(part, shape, k - 1, others, *plan)
                self._pass(part, k, prices, found)
            layer = self._undominated(found.values())
        return count

    def _ahead(self, i: int, k: int) -> int:
        """Return the least reduced cost of a request over its starts from k on."""
        least = self.least[i]
        return least[min(max(0, k - self.requests[i].arrival), len(least) - 1)]

    def _plan(self, members: list[int], k: int) -> tuple[list[int], dict[int, int]]:
        """Return what the bound gains if all members from the j-th on wait; if the j-th starts."""
        now, then = ([self._ahead(i, time) for i in members] for time in (k, k + 1))
        waits = [*accumulate(map(sub, reversed(then), reversed(now)), initial=0)][::-1]
        own = ((j, self.reduced_costs[i].get(k)) for j, i in enumerate(members))
        gains = {j: cost - now[j] for j, cost in own if cost is not None}
        return waits if any(waits) or gains else [], gains

    def _begun(
        self,
        layer: list[_Partial],
        shape: int,
        k: int,
        others: int,
        waits: list[int],
        gains: dict[int, int],
    ) -> list[_Partial]:
        """Start none, one, two, ... of a shape at round k, each if it is allowed and fits.

        There are so many ``others`` that take room meanwhile.
        """
        ramp, size, most = self.ramps[shape], len(self.ramps[shape]), self.stage.memory
        grown: list[_Partial] = []
        room, steps = self.work.left() // self.width - others, 40 + size + len(self.shapes) // 4
        for partial in layer:
            started, active, bound, latency, held = partial
            if waits[started[shape]] == 0 and started[shape] not in gains:
                grown.append(partial)
                continue
            for j in range(started[shape], len(waits)):
                if bound + waits[j] <= self.budget:
                    now = (*started[:shape], j, *started[shape + 1 :])
                    grown.append((now, active, bound + waits[j], latency, held))
                if j not in gains or (bound := bound + gains[j]) > self.budget:
                    break
                self.work.spend(steps + len(held) + len(active) // 4)
                if len(grown) > room:
                    self._refuse(others + len(grown))
                if size <= len(held) and held[size - 1] + ramp[-1] > most:
                    break
                padded = held + (0,) * (size - len(held))
                held = (*map(add, padded, ramp), *held[size:])
                if max(held) > most:
                    break
                active = (*active, (k + size, ramp[-1]))
                latency += k + size - self.requests[self.shapes[shape][j]].arrival
        return grown

    def _refuse(self, count: int) -> None:
        """Refuse to have so many partial schedules at one time."""
        why = "lower: the search has too many partial schedules: "
        self.work.check_room(count * self.width, why)

    def _pass(
        self,
        layer: list[_Partial],
        time: int,
        prices: dict[tuple[int, int], int],
        found: dict[Any, _Partial],
    ) -> None:
        """Let a time pass, with its R - F; of equal partial schedules the best one stays."""
        full = tuple(map(len, self.shapes))
        for started, active, bound, latency, held in layer:
            self.work.spend(40 + 4 * len(active) + (len(held) + len(full)) // 8)
            if started == full:
                if latency < self.target:
                    raise Invalid(f"lower: a schedule has a total latency of {latency:,}")
                continue
            if time <= self.stage.last:
                for end, peak in active:
                    if (end, peak) not in prices:
                        prices[end, peak] = self.stage.price(time, peak, end - time)
                bound += self.stage.most[time] - sum(map(prices.__getitem__, active))
            if bound <= self.budget:
                active = tuple(sorted(pair for pair in active if pair[0] > time))
                known = found.get((started, active))
                if known is None or bound < known[2]:
                    found[started, active] = (started, active, bound, latency, held[1:])

    def _undominated(self, layer: Collection[_Partial]) -> list[_Partial]:
        """Leave out what another is at least as good as, see above; of equals the first stays."""
        kept: dict[tuple[int, ...], list[_Partial]] = defaultdict(list)
        compared = len(layer).bit_length()  # times, about, that sorting looks at each of them
        self.work.spend(sum(20 + compared * (1 + len(partial[4]) // 5) for partial in layer))
        for partial in sorted(layer, key=lambda partial: partial[3:]):
            held, rivals = partial[4], kept[partial[0]]
            self.work.spend((4 + len(held) // 2) * len(rivals))
            if not any(len(r[4]) <= len(held) and all(map(le, r[4], held)) for r in rivals):
                rivals.append(partial)
        return [partial for rivals in kept.values() for partial in rivals]


# ---- seconds ----------------------------------------------------------------------------


class _Clock:
    """Rounds that last as long as their batch needs, in nanoseconds.

    With A active requests, S prompt tokens of those that start with it, and H tokens held at its
    end, a round lasts at least

        max over lines of (round_ns + token_ns (A + S))  +  prompt_ns S  +  kv_ns H.
    """

    def __init__(self, model: dict[str, Any]) -> None:
        self.kv: int = model["kv_ns"]
        self.prompt: int = model["prompt_ns"]
        self.lines: list[tuple[int, int]] = [
            (line["round_ns"], line["token_ns"]) for line in model["lines"]
        ]
        numbers = [self.kv, self.prompt, *(number for line in self.lines for number in line)]
        if not self.lines or not all(0 <= number <= LARGEST_FIELD for number in numbers):
            raise Invalid("model: needs a line, and numbers in 0 .. 2^53 - 1")
        if min(map(sum, self.lines)) == 0:
            raise Invalid("model: a line without any time")

    def line(self, tokens: int, chosen: Iterable[int] | None = None) -> int:
        """Return what the lines, or some of them, say of a round that processes some tokens."""
        among = self.lines if chosen is None else [self.lines[i] for i in chosen]
        return max(fixed + each * tokens for fixed, each in among)

    def mixed(self, chosen: list[int], mix: list[int]) -> _Clock:
        """Return a clock whose last line mixes some lines, and all of it ``sum(mix)`` as slow."""
        by, (fixed, each) = sum(mix), zip(*(self.lines[i] for i in chosen), strict=True)
        slow = copy(self)
        slow.kv, slow.prompt = by * self.kv, by * self.prompt
        slow.lines = [(by * line[0], by * line[1]) for line in self.lines]
        slow.lines.append((sum(map(mul, mix, fixed)), sum(map(mul, mix, each))))
        return slow

    def slower(self, times: int) -> _Clock:
        """Return a clock on which everything takes so many times as long."""
        slow = copy(self)
        slow.kv, slow.prompt = times * self.kv, times * self.prompt
        slow.lines = [(times * fixed, times * each) for fixed, each in self.lines]
        return slow

    def words(self) -> list[str]:
        """Return in words what is assumed of rounds."""
        shown = [f"{fixed:,} + {each:,} b" for fixed, each in self.lines[:_MOST_LINES]]
        if more := len(self.lines) - len(shown):
            shown.append(f"{more:,} more")
        lines = " and ".join(shown)
        return [
            f"a round of b tokens lasts {lines} ns or more, and {self.prompt:,} ns for each prompt "
            f"token, {self.kv:,} ns for each token held",
        ]


def _arrivals(instance: dict[str, Any]) -> list[int]:
    """Return arrivals in nanoseconds: those in seconds, else rounds of round_ms."""
    rows = instance["requests"]
    known = [_clock(row["arrival_seconds"]) for row in rows if "arrival_seconds" in row]
    if known and len(known) == len(rows):
        return [round(Fraction(seconds) * 10**9) for seconds in known]
    if known or ("round_ms" not in instance and any(row["arrival"] for row in rows)):
        raise Invalid("instance: says not of every request at which second it arrives")
    length = Fraction(_clock(instance.get("round_ms", 0))) * 10**6
    return [round(row["arrival"] * length) for row in rows]


class _Timed(NamedTuple):
    """Requests, and on a clock in seconds how long rounds last and when the requests arrive."""

    requests: list[Request]
    clock: _Clock | None = None
    arrivals: Sequence[int] = ()


def _timed_peak(
    memory: int,
    timed: _Timed,
    work: _Work,
    claim: dict[str, Any],
    what: str,
    seen: dict[int, dict[int, int]] | None = None,
) -> int:
    """Check a run on the clock and its value; return the most tokens that a worker holds.

    Of each worker ``seen`` is as for `_timed`.
    """
    on = _workers_of(memory, timed.requests, claim, what)
    parts = [(what, timed, claim)]
    if getattr(memory, "workers", 1) > 1:
        parts = [*_by_worker(timed, claim, on, what)]
    found = [
        _timed(memory, own, work, part, who, (seen or {}).get(worker))
        for worker, (who, own, part) in zip(sorted(set(on)) or [0], parts, strict=False)
    ]
    value = sum(part for _, part in found)
    if claim["value"] != value:
        raise Invalid(f"{what}: says {claim['value']:,}, the rounds give {value:,}")
    return max((peak for peak, _ in found), default=0)


def _by_worker(
    timed: _Timed, claim: dict[str, Any], on: list[int], what: str
) -> Iterator[tuple[str, _Timed, dict[str, Any]]]:
    """Yield the part of each worker in a run, with what to call it: each has rounds of its own.

    A wait names its worker, lost work is that of the worker on which its request completes.
    """
    times = _times_of(claim)
    if len(claim[times]) != len(on):
        raise Invalid(f"{what}: has {len(claim[times])} {times} for {len(on)} requests")
    members: dict[int, list[int]] = {worker: [] for worker in sorted(set(on))}
    place = []
    for i, worker in enumerate(on):
        place.append(len(members[worker]))
        members[worker].append(i)
    lost, waits, chunks = defaultdict(list), defaultdict(list), defaultdict(list)
    for row in claim.get("lost", []):
        if len(row) != 3 or not 0 <= row[0] < len(on):
            raise Invalid(f"{what}: lost work must be [request, start, end]")
        lost[on[row[0]]].append([place[row[0]], *row[1:]])
    for row in claim.get("chunks", []):
        if not 0 <= row["request"] < len(on):
            raise Invalid(f"{what}: pieces of a prompt of request {row['request']} of {len(on)}")
        chunks[on[row["request"]]].append({**row, "request": place[row["request"]]})
    for row in claim.get("waits", []):
        if len(row) != 3 or row[2] not in members:
            raise Invalid(f"{what}: a wait of a fleet must be [round, time, worker]")
        waits[row[2]].append(row[:2])
    for worker, own in members.items():
        part = {
            times: [claim[times][i] for i in own], "lost": lost[worker],
            "waits": waits[worker], "chunks": chunks[worker],
        }  # fmt: skip
        some = _Timed(
            [timed.requests[i] for i in own], timed.clock, [timed.arrivals[i] for i in own]
        )
        yield f"{what}, worker {worker}", some, part


def _timed(
    memory: int,
    timed: _Timed,
    work: _Work,
    claim: dict[str, Any],
    what: str,
    seen: dict[int, int] | None = None,
) -> tuple[int, int]:
    """Check a run of one worker, from start to start; return its most tokens and its value.

    When the rounds that are keys of ``seen`` end is filled in.

    Rounds have numbers; a request that starts at k is active in the rounds k + 1 .. k + o.  They
    follow one another at once, except that round r + 1 begins at the time t for each wait [r, t].
    A request that goes on after a pause has its prompt and its tokens processed again.
    """
    requests, clock, arrivals = timed
    assert clock is not None, "rounds of length 1 are not timed"
    count = _count_of(requests, claim) + len(claim.get("waits", []))
    count += sum(1 + len(row["tokens"]) for row in claim.get("chunks", []))
    work.spend(8 * len(clock.lines) * count)
    pieces, firsts = _pieces(requests, claim, what)
    chunks = _chunks(requests, claim, what)
    processed = {(row["request"], row["start"] + len(row["tokens"])): row for row in chunks}
    if any(len(row) != 2 or row[0] < 0 for row in claim.get("waits", [])):
        raise Invalid(f"{what}: a wait must be [round, time]")
    waits = dict(claim.get("waits", []))
    begins, ends = defaultdict(list), defaultdict(list)
    for number, (i, start, end, held) in enumerate(pieces):
        before = processed.get((i, start))
        begins[start].append((held - sum(before["tokens"]) if before else held, held - start))
        ends[end].append((number < len(requests), held - start))
    due: dict[int, int] = defaultdict(int)  # of those that start here, the latest arrival
    for arrival, first in zip(arrivals, firsts, strict=True):
        due[first] = max(due[first], arrival)
    parts: dict[int, list[tuple[int, int]]] = defaultdict(list)  # prompts in pieces: done and held
    for row in chunks:
        due[row["start"]] = max(due[row["start"]], arrivals[row["request"]])
        steps = zip(row["tokens"], accumulate(row["tokens"]), strict=True)
        for mark, step in enumerate(steps, row["start"]):
            parts[mark].append(step)
    now = active = offset = total = peak = 0  # round r ends with offset + active * r tokens
    marks = sorted({*begins, *ends, *waits, *parts, *(mark + 1 for mark in parts), *(seen or ())})
    for mark, following in pairwise([*marks, *marks[-1:]]):
        if seen and mark in seen:
            seen[mark] = now
        for counts, change in ends[mark]:
            total += now if counts else 0
            active, offset = active - 1, offset - change
        if waits.get(mark, now) < now or waits.get(mark, now) < due[mark]:
            raise Invalid(f"{what}: at round {mark:,} something begins too early")
        now, prompts = waits.get(mark, now), 0
        for prompt, change in begins[mark]:
            active, offset, prompts = active + 1, offset + change, prompts + prompt
        prompts += sum(done for done, _ in parts.get(mark, ()))
        beside = sum(held for _, held in parts.get(mark, ()))
        if (active or beside) and (rounds := following - mark):
            now += clock.line(active + prompts) + clock.prompt * prompts
            now += (rounds - 1) * clock.line(active)
            held = 2 * offset + active * (mark + 1 + following)  # twice the mean of the rounds
            now += clock.kv * (rounds * held // 2 + beside)
            peak = max(peak, offset + active * following + beside)
    if peak > memory:
        raise Invalid(f"{what}: {peak:,} tokens are held at one time, memory is {memory:,}")
    return peak, total - sum(arrivals)


def _by_shares(
    memory: int,
    requests: list[Request],
    arrivals: list[int],
    clock: _Clock,
    work: _Work,
    proof: dict[str, Any],
    chunks: bool = False,
) -> tuple[int, str]:
    """Return what follows from the part of the machine that each request takes.

    Let f(b) be what some lines say of a round of b tokens, and call a request's *work* in a
    round f(b) - f(0) + prompt_ns S + kv_ns h for its own b, S, h.  As f is convex and no more
    than M tokens are held, a round lasts at least the sum over its requests of work + f(0) h / M.
    Serve each of these parts within the round, one after another, works first and then f(0), which
    all share.  So requests are served at rates that sum to 1 at most.  Of request i let

        X  be all that it takes,  E  the least time from its start to its completion,
        B  the mean time at which it is served,  e  the least possible completion - B.

    For slopes y >= 0 with y X <= weight / 64,  completion >= B + e  for a share y X of it.  The
    sum of all y X B, which are integrals of y t over what is served, is least when the largest y
    is always served first: then each set of all requests with a y above some number is served as
    early as it can be.  Of the rest the share ``company`` / 64 is left to `_company`.

    *Pauses.*  In its j-th round of tokens a request processes and holds at least what it would
    without a pause, and its later rounds last at least as long; a return only adds work.  *Pieces
    of prompts.*  Where f is one line, or lines in a fixed ``mix``, the pieces take what the whole
    takes, and sooner.  Company is that of pieces: each token makes a round longer by f(1) - f(0) or
    more, with all lines, and a piece may begin ``early``, before the round of the first token.

    *Parts.*  The rounds after the first may be cut into ``parts``.  What a request takes in rounds
    of a part is not served before those of the parts before, alone, could have ended; and all parts
    of it have one slope.  Company then counts the work of tokens as well, see `_company`.
    """
    chosen, weights = proof["lines"], proof["weights"] or [64] * len(requests)
    company = proof["company"] or [0] * len(requests)
    if not chosen or not all(0 <= i < len(clock.lines) for i in chosen):
        raise Invalid("lower: needs lines of the model")
    scale, mix = 1, proof.get("mix", [])
    if mix:
        if not (len(mix) == len(set(chosen)) == len(chosen) and min(mix) >= 1):
            raise Invalid("lower: a mix has a number of at least 1 for each of different lines")
        scale, clock, chosen = sum(mix), clock.mixed(chosen, mix), [len(clock.lines)]
        arrivals = [scale * arrival for arrival in arrivals]
    if any(company) and _used(memory, requests) > 1:
        raise Invalid("lower: company is of one worker")
    if chunks and len(set(chosen)) > 1:
        raise Invalid("lower: several lines unmixed do not cover prompts in pieces")
    count = proof.get("parts", 0)
    if not 0 <= count <= 64 or (count and chunks):
        raise Invalid("lower: needs 0 .. 64 parts, and none where prompts come in pieces")
    if not len(weights) == len(company) == len(requests):
        raise Invalid("lower: needs a weight, and company, for each request, or none at all")
    if min([*weights, *company, 0]) < 0 or max(map(add, weights, company), default=0) > 64:
        raise Invalid("lower: weight and company of a request are in 0 .. 64, and so is their sum")
    chosen = sorted(set(chosen))
    each = 600 + 16 * (len(chosen) + len(clock.lines)) + 600 * count
    work.spend(each * len(requests), "lower: ")
    work.check_room((500 + 12 * work.entry) * (1 + count) * len(requests), "lower: ")
    parts = [_part(memory, request, clock, chosen) for request in requests]
    one = memory
    memory *= _used(memory, requests)  # one of this size is served as fast as all of them
    unit = max((takes for takes, *_ in parts), default=1) << 30
    total, jobs, works = 0, [], []
    for request, arrival, weight, (takes, delays, alone) in zip(
        requests, arrivals, weights, parts, strict=True
    ):
        slope = weight * unit // (64 * takes)
        total += 2 * memory * ((unit - slope * takes) * (arrival + alone) - unit * arrival)
        total += memory * slope * delays
        cut = _cut(one, request, clock, chosen, count, (takes, alone))
        jobs += [((arrival + begin) * memory, slope, part) for begin, part, _, _ in cut]
        works.append([(begin, added, free) for begin, _, added, free in cut])
    total += _least_served(jobs)
    if any(company):
        if chunks or not count:
            works = [[(0, *_prompt(s, clock, chunks))] for _, s, _ in requests]
        windows = [(a, a + alone) for a, (_, _, alone) in zip(arrivals, parts, strict=True)]
        rest = [64 - share for share in map(add, weights, company)]
        total += 2 * memory * (unit >> 6) * _company(windows, works, company, rest, work)
    return -(-total // (2 * memory * unit * scale)), "shares of the machine"


def _cut(
    memory: int, request: Request, clock: _Clock, chosen: list[int], count: int,
    whole: tuple[int, int],
) -> list[tuple[int, int, int, int]]:  # fmt: skip
    """Return begins, M times what is taken, works and free delays of the parts of a request.

    ``whole`` is what it takes in all, times M, and its time alone.  Its first part is its first
    round, and all of it if the ``count`` of others is 0.  The others share its other rounds.
    """
    _, prompt, output = request
    fixed, one = clock.line(0, chosen), clock.line(1, chosen)
    none, least = clock.line(0), clock.line(1)
    found, (taken, begin) = [], whole
    for part in reversed(range(count)):
        first, last = 2 + (output - 1) * part // count, 1 + (output - 1) * (part + 1) // count
        if (rounds := last - first + 1) == 0:
            continue
        held = rounds * prompt + (first + last) * rounds // 2
        takes = memory * ((one - fixed) * rounds + clock.kv * held) + fixed * held
        alone = least * rounds + clock.kv * held
        begin, taken = begin - alone, taken - takes
        works = (least - none) * rounds + clock.kv * held
        found.append((begin, takes, works, alone - least - clock.kv * (prompt + last)))
    return [(0, taken, *_prompt(prompt, clock, False)), *reversed(found)]


def _company(
    windows: list[tuple[int, int]],
    works: list[list[tuple[int, int, int]]],
    company: list[int],
    rest: list[int],
    budget: _Work,
) -> int:
    """Return what the works of prompts add to times alone, times 64.

    Let the *window* of request i go from its arrival to its arrival + E.  A round that begins
    before i completes lasts at least the works of its prompts, and if i is active as long as with
    i alone in addition.  So the latency of i is at least E and the works of all other prompts
    whose rounds begin in its window.  This is counted for a share ``company`` of the latency, and
    for a share ``rest`` that i completes E after the begin of its own first round.  So a prompt
    that begins at t pays the company of all windows around t for its work, and the rest for its
    delay: at least what is cheapest, which is at its arrival or where a window begins or ends.
    In pieces each token of it pays so, and its delay counts beyond ``early`` only.

    The same holds with the works of tokens.  In parts, as triples of the earliest begin, work and
    free delay: no part is delayed more than its request, so each is given the part of the rest that
    its work is of all works of the request.
    """
    shares = zip(windows, company, strict=True)
    changes = sorted(pair for (a, end), c in shares if c for pair in ((a, c), (end, -c)))
    times = [time for time, _ in changes]
    prices = [*accumulate((change for _, change in changes), initial=0)]
    lows = [min(prices[i + 1 : i + 65]) for i in range(0, len(times), 64)]
    total, why = 0, "lower: company takes too long to check: "
    rows = [*zip(windows, works, company, rest, strict=True)]
    for (arrival, _), parts, share, rate in budget.each(rows, why):
        work, paid = sum(added for _, added, _ in parts), 0
        for begin, added, early in parts if rate and work else ():  # without rest it waits for ever
            place = bisect_right(times, arrival + begin)
            best, free = work * prices[place], arrival + begin + early
            while place < len(times) and rate * (times[place] - free) < best:
                end = min((place | 63) + 1, len(times))
                budget.spend(12, why)
                if rate * max(times[place] - free, 0) + work * lows[place >> 6] < best:
                    budget.spend(6 * (end - place), why)
                    part = zip(times[place:end], prices[place + 1 : end + 1], strict=True)
                    best = min(best, *(rate * max(t - free, 0) + work * p for t, p in part))
                place = end
            paid += added * best
        total += (paid // work if work else 0) - share * work
    return total


def _prompt(prompt: int, clock: _Clock, chunks: bool) -> tuple[int, int]:
    """Return the work of a prompt in the company of others, and how early its pieces may begin."""
    none, least, whole = map(clock.line, (0, 1, prompt + 1))
    own = clock.prompt * prompt
    work = own + clock.kv * (prompt + 1)
    if chunks:
        return work + (least - none) * (prompt + 1), whole - least + own
    return work + whole - none, 0


def _part(memory: int, request: Request, clock: _Clock, chosen: list[int]) -> tuple[int, int, int]:
    """Return M X, 2 M X e and E of a request.

    With r rounds to go it holds h tokens, has some work, and alone it lasts at least ``length``;
    ``after`` is the sum of the lengths that follow.  The four columns are polynomials in r of a
    degree below 4, so their first four values give their sums over all rounds but the first.
    """
    _, prompt, output = request
    fixed, after = clock.line(0, chosen), 0

    def row(tokens: int, prompts: int, h: int, after: int) -> tuple[int, int, int]:
        own = clock.prompt * prompts + clock.kv * h
        work = clock.line(tokens, chosen) - fixed + own
        delays = memory * work * (2 * after + 2 * fixed + work) + fixed * h * (2 * after + fixed)
        return memory * work + fixed * h, delays, clock.line(tokens) + own

    rows = []
    for r in range(4):
        rows.append(row(1, 0, prompt + output - r, after))
        after += rows[-1][2]
    takes, delays, alone = (_summed(list(column), output - 1) for column in zip(*rows, strict=True))
    first = row(prompt + 1, prompt, prompt + 1, alone)
    return takes + first[0], delays + first[1], alone + first[2]


def _summed(values: list[int], count: int) -> int:
    """Return p(0) + .. + p(count - 1) of the polynomial p that has these first values."""
    total = 0
    for k in range(1, len(values) + 1):
        total += values[0] * math.comb(count, k)
        values = [after - before for before, after in pairwise(values)]
    return total


def _least_served(jobs: list[tuple[int, int, int]]) -> int:
    """Serve jobs (arrival, slope, takes), largest slope first; return the sum of 2 slope t dt."""
    arriving = sorted(jobs, key=lambda job: -job[0])
    waiting: list[tuple[int, int]] = []
    clock = total = 0
    while arriving or waiting:
        if not waiting:
            clock = max(clock, arriving[-1][0])
        while arriving and arriving[-1][0] <= clock:
            _, slope, takes = arriving.pop()
            heappush(waiting, (-slope, takes))
        slope, left = heappop(waiting)
        until = min(clock + left, arriving[-1][0]) if arriving else clock + left
        total -= slope * (until * until - clock * clock)
        if until < clock + left:
            heappush(waiting, (slope, clock + left - until))
        clock = until
    return total


# ---- deadlines --------------------------------------------------------------------------


def _in_time(
    certificate: dict[str, Any], requests: list[Request], work: _Work
) -> tuple[list[str], list[str]]:
    """Check how many requests attain their deadlines; say what was checked and what it proves.

    Request i attains if it completes, or has its first token, by ``d_i``: so long after its
    arrival.  What an eviction loses does not count.
    """
    claim, instance = certificate["deadlines"], certificate["instance"]
    memory, rounds = _memory_of(instance), "model" not in certificate
    arrivals = [r.arrival for r in requests] if rounds else _arrivals(instance)
    clock = None if rounds else _Clock(certificate["model"])
    first = claim["aim"] == "first-token"
    due = list(map(add, arrivals, _allowed(instance, claim["after"], rounds)))
    proved, misses = _most_in_time(certificate, requests, arrivals, due, clock, work)
    if claim["ceiling"] < proved:
        raise Invalid(f"deadlines: says at most {claim['ceiling']:,}, the proof gives {proved:,}")
    runs = certificate.get("policies", [])
    if len(claim["attained"]) != len(runs):
        raise Invalid("deadlines: needs a number, or null, for each policy")
    best = claim["best"]
    counted = list(zip(runs, claim["attained"], strict=True))
    counted += [(best, best["attained"])] if best else []
    for run, attained in counted:
        what = "best in time" if run is best else _shown(run["policy"])
        if run["value"] is None or attained is None:
            if attained is not None or run["value"] is not None:
                raise Invalid(f"deadlines: {what} must have a number if and only if it completed")
            continue
        if run is best:
            if used := _uncovered(run, certificate.get("scope", "restarts")):
                raise Invalid(f"deadlines: the best has {used}, which the scope does not cover")
            if rounds:
                _peak_of(memory, requests, work, run, what)
        times = _token_times(memory, requests, arrivals, clock, work, run, first)
        if attained != (found := sum(map(le, times, due))):
            raise Invalid(f"deadlines: {what} says {attained:,} attain, {found:,} do")
    if best and best["attained"] > claim["ceiling"]:
        raise Invalid("deadlines: more attain than the ceiling, an error of the checker itself")
    ceiling, aim = claim["ceiling"], "have their first token" if first else "complete"
    checked = [f"  deadlines: the ceiling {ceiling:,}: its proof by prices gives {proved:,}"]
    after = claim["after"]
    within = "by a deadline of their own"
    if isinstance(after, int):
        length = f"{after:,} rounds" if rounds else f"{after // 10**9:,}.{after % 10**9:09} s"
        within = f"within {length} of their arrival"
    said = f"  at most {ceiling:,} of {len(requests):,} requests can {aim} {within}"
    said += f"; {misses:,} cannot even alone" if misses else ""
    lines = [said, *([f"  a schedule does for {best['attained']:,}"] if best else [])]
    for run, attained in zip(runs, claim["attained"], strict=True):
        if attained is not None:
            used = _uncovered(run, certificate.get("scope", "restarts"))
            beyond = f" with {used}, which the ceiling does not cover" if used else ""
            lines.append(f"  {_shown(run['policy'])} does for {attained:,}{beyond}")
    return checked, lines


def _allowed(instance: dict[str, Any], after: int | str, rounds: bool) -> list[int]:
    """Return how long each request may take; its own deadline counts rounds."""
    rows = instance["requests"]
    if isinstance(after, int):
        if not 0 <= after <= LARGEST_FIELD:
            raise Invalid("deadlines: needs a length of time")
        return [after] * len(rows)
    if not all("deadline" in row for row in rows):
        raise Invalid("deadlines: a request has none of its own")
    own = [row["deadline"] for row in rows]
    if rounds:
        return own
    if "round_ms" not in instance:
        raise Invalid("deadlines: rounds have no length")
    length = Fraction(instance["round_ms"]) * 1_000_000
    return [math.floor(number * length) for number in own]


def _token_times(
    memory: int,
    requests: list[Request],
    arrivals: list[int],
    clock: _Clock | None,
    work: _Work,
    claim: dict[str, Any],
    first: bool,
) -> list[int]:
    """Return when each request of a run completes, or has its first token."""
    free = requests if clock is None else [request._replace(arrival=0) for request in requests]
    if "segments" in claim:
        pieces, begins = _segments(free, claim["segments"], "deadlines")
        ends = [end for _, _, end, _ in pieces[: len(requests)]]
        rounds = [begin + 1 for begin in begins] if first else ends
    else:
        outputs = [1 if first else request.output for request in requests]
        rounds = list(map(add, claim["starts"], outputs))
    if clock is None:
        return rounds
    on = _workers_of(memory, requests, claim, "deadlines")
    seen: dict[int, dict[int, int]] = defaultdict(dict)
    for worker, number in zip(on, rounds, strict=False):  # what has too few starts is refused
        seen[worker][number] = 0
    timed = _Timed(free, clock, arrivals)
    _timed_peak(memory, timed, work, claim, "deadlines", seen)
    return [seen[worker][number] for worker, number in zip(on, rounds, strict=True)]


def _most_in_time(
    certificate: dict[str, Any],
    requests: list[Request],
    arrivals: list[int],
    due: list[int],
    clock: _Clock | None,
    work: _Work,
) -> tuple[int, int]:
    """Return how many requests can attain at most, and how many cannot even alone.

    *Rounds.*  Let a token held at time t cost p_t >= 0, and let g_i be the least that a run of
    request i costs if it attains.  On m workers a schedule holds at most m M tokens, so those that
    attain pay at most m M sum_t p_t together.  Each counts 1 <= max(0, 1 - g_i) + g_i.  So at most
    sum_i max(0, 1 - g_i) + m M sum_t p_t attain.  With pauses it costs at least what the
    cheapest times cost, as many as it is active, the largest holdings at the cheapest of them.

    *Seconds.*  Prices are of time of a machine.  Each worker serves requests at rates that sum to
    at most 1, each at most at 1, so m of them sell m times the prices; request i takes X_i, see
    `_by_shares`: at least its X_i cheapest nanoseconds.  For a first token X_i is that of the
    first round, which is a request that produces one token.
    """
    claim = certificate["deadlines"]
    proof, scope = claim["proof"], certificate.get("scope", "restarts")
    borders, prices, one = proof["times"], proof["numerators"], proof["denominator"]
    if one < 1 or min(prices, default=0) < 0 or len(prices) != max(len(borders) - 1, 0):
        raise Invalid("deadlines: needs a denominator, and between borders no negative price")
    if any(a >= b for a, b in pairwise(borders)):
        raise Invalid("deadlines: the borders of prices must ascend")
    memory, workers = certificate["instance"]["memory"], certificate["instance"].get("workers", 1)
    first = claim["aim"] == "first-token"
    short = [request._replace(output=1) if first else request for request in requests]
    chosen = sorted(set(proof.get("lines", [])))
    if clock is None and chosen:
        raise Invalid("deadlines: rounds have no lines")
    if clock is not None:
        if not chosen or not all(0 <= line < len(clock.lines) for line in chosen):
            raise Invalid("deadlines: needs lines of the model")
        if "chunks" in scope and len(chosen) > 1:
            raise Invalid("deadlines: several lines do not cover prompts in pieces")
    table = _TimePrices(borders, prices)
    total, misses = workers * memory * sum(map(mul, prices, table.lengths)), 0
    for request, brief, arrival, end in zip(requests, short, arrivals, due, strict=True):
        if clock is None:
            alone, amount, top = brief.output, brief.output, brief.prompt + brief.output
        else:
            (amount, _, alone), top = _part(memory, brief, clock, chosen), 1
        if arrival + alone > end:
            misses += 1
            continue
        if clock is None and "pauses" not in scope:  # a run goes on after its first token
            end += request.output - brief.output
        left, right = table.cells(arrival, end)
        work.spend(90 * (right - left), "deadlines: ")
        least = min(prices[left:right]) if table.holds(arrival, end) else 0
        size = request.prompt * request.output + request.output * (request.output + 1) // 2
        if clock is None and "pauses" not in scope:
            if least * size >= one:
                continue
            cost = table.of_run(request, arrival, end - request.output)
        elif clock is not None and least * amount >= one:
            continue
        else:
            rate = 1 if clock is None else memory
            cost = table.of_cheapest(arrival, end, amount, top, int(clock is None), rate)
        total += max(0, one - cost)
    return min(total // one, len(requests) - misses), misses


class _TimePrices:
    """Prices that are constant between borders, and 0 before the first and after the last."""

    def __init__(self, borders: list[int], prices: list[int]) -> None:
        self.borders, self.prices = borders, prices
        self.lengths = [b - a for a, b in pairwise(borders)]
        self.paid = [*accumulate(map(mul, prices, self.lengths), initial=0)]
        sums = (_sum_of_times(a, b) for a, b in pairwise(borders))
        self.moments = [*accumulate(map(mul, prices, sums), initial=0)]

    def cells(self, begin: int, end: int) -> tuple[int, int]:
        """Return the range of the prices that the times begin + 1 .. end touch."""
        left = max(bisect_right(self.borders, begin) - 1, 0)
        return left, max(left, min(bisect_left(self.borders, end), len(self.prices)))

    def holds(self, begin: int, end: int) -> bool:
        """Whether all of the times have a price."""
        return bool(self.prices) and self.borders[0] <= begin < end <= self.borders[-1]

    def sums(self, time: int) -> tuple[int, int]:
        """Return the sums of p_t and of t p_t up to a time."""
        cell = bisect_right(self.borders, time) - 1
        if cell < 0:
            return 0, 0
        if cell >= len(self.prices):
            return self.paid[-1], self.moments[-1]
        begin, price = self.borders[cell], self.prices[cell]
        paid = self.paid[cell] + price * (time - begin)
        return paid, self.moments[cell] + price * _sum_of_times(begin, time)

    def after(self, time: int) -> int:
        """Return the price of the time that follows."""
        cell = bisect_right(self.borders, time) - 1
        return self.prices[cell] if 0 <= cell < len(self.prices) else 0

    def of_start(self, request: Request, start: int) -> int:
        """Return sum_{j=1..o} p_{k+j} (s + j) = sum p_t (s - k) + sum p_t t."""
        paid, moment = self.sums(start)
        more, later = self.sums(start + request.output)
        return (request.prompt - start) * (more - paid) + later - moment

    def of_run(self, request: Request, arrival: int, latest: int) -> int:
        """Return the least cost over the starts from the arrival to the latest.

        A step from k to k + 1 moves the run past each border b in k + 1 .. k + o, at which the
        price jumps by D_b, and adds sum_b D_b (s + b - k).  So as long as neither begin nor end
        passes a border, the second difference is -sum_b D_b, the price at the begin less the one
        after the end: costs are least at an end of such a range, or where the step turns positive.
        """
        output, borders = request.output, self.borders
        inner = borders[bisect_right(borders, arrival) : bisect_left(borders, latest)]
        low = bisect_right(borders, arrival + output)
        ends = borders[low : bisect_left(borders, latest + output)]
        events = sorted({arrival, latest, *inner, *(end - output for end in ends)})
        costs = [self.of_start(request, start) for start in events]
        best = min(costs)
        for (begin, end), cost in zip(pairwise(events), costs, strict=False):
            bend = self.after(begin) - self.after(begin + output)
            if bend > 0 and end > begin + 1:
                step = self.of_start(request, begin + 1) - cost
                if step < 0:
                    turn = min(begin - step // bend, end)
                    for start in range(max(turn - 1, begin), min(turn + 1, end) + 1):
                        best = min(best, self.of_start(request, start))
        return best

    def of_cheapest(
        self, begin: int, end: int, amount: int, top: int, slope: int, rate: int
    ) -> int:
        """Return the cost of the cheapest amount of time, ``rate`` of it in a unit.

        At the cheapest of it ``top`` is held, then less by ``slope`` each time.
        """
        left, right = self.cells(begin, end)
        sizes = [
            (self.prices[c], rate * (min(end, self.borders[c + 1]) - max(begin, self.borders[c])))
            for c in range(left, right)
            if self.borders[c] < end and self.borders[c + 1] > begin
        ]
        free, cost = rate * (end - begin) - sum(size for _, size in sizes), 0
        for price, most in sorted([(0, free), *sizes]):
            size = min(most, amount)
            cost += price * (size * top - slope * (size * (size - 1) // 2))
            top, amount = top - slope * size, amount - size
            if not amount:
                break
        return cost


def _sum_of_times(begin: int, end: int) -> int:
    """Return begin + 1 + .. + end."""
    return (end * (end + 1) - begin * (begin + 1)) // 2


# ---- slower machines --------------------------------------------------------------------


def _slower(
    memory: int,
    timed: _Timed,
    work: _Work,
    claim: dict[str, Any],
    lower: dict[str, Any] | None,
    scope: str,
) -> tuple[int, int, str]:
    """Check that no schedule on a machine P / Q times slower has a total latency of ``value``.

    Return P / Q in thousandths, rounded up, the value, and in words what was looked at.

    *Seconds.*  All coefficients times P, arrivals times Q: times then count in 1 / Q nanoseconds.
    *Rounds* of length phi = P / Q or more, which begin at any time.  Let round r end at e_r, and
    g(r) = floor(e_r / phi), so that g(r + 1) >= g(r) + 1.  A request that completes with round c
    is moved to complete at g(c), without a gap; with pauses each of its rounds r is moved to g(r).
    At a time t let c be the first round with g(c) >= t: a request that is moved to t has no fewer
    rounds to go then than with round c, so it holds no more, and what is held fits.  It starts at
    floor(a / phi) or later, since its first round began at a or later.  So what is proved of an
    instance with these arrivals, of the sum of its completions, holds phi times of the slow
    machine.  Times count from the first arrival.

    A machine that is slower still has rounds that last longer: what is said holds of it too.
    """
    if len(claim["machine"]) != 2 or not 1 <= claim["machine"][1] <= claim["machine"][0]:
        raise Invalid("slower: a machine must be [P, Q], P / Q times slower, with P >= Q >= 1")
    (by, of), value = claim["machine"], claim["value"]
    proof = claim.get("proof", lower and lower["proof"])
    if proof is None:
        raise Invalid("slower: needs a proof, as there is no lower bound")
    try:
        is_above, how = _beyond(memory, timed, work, (by, of), value, proof, scope)
    except Invalid as error:
        raise Invalid(f"slower: {str(error).removeprefix('lower: ')}") from None
    parts = -(-1000 * by // of)
    if not is_above:
        raise Invalid(f"slower: on a machine {_times(parts)} times slower the proof does not give "
                      f"more than {value:,}")  # fmt: skip
    return parts, value, how


def _beyond(
    memory: int,
    timed: _Timed,
    work: _Work,
    machine: tuple[int, int],
    value: int,
    proof: dict[str, Any],
    scope: str,
) -> tuple[bool, str]:
    """Return whether a proof gives more than a value on a machine, and what was looked at."""
    (by, of), (requests, clock, arrivals) = machine, timed
    if clock is not None:
        there = [of * arrival for arrival in arrivals]
        slow = clock.slower(by)
        proved, how = _by_shares(memory, requests, there, slow, work, proof, "chunks" in scope)
        return proved > of * value, how
    first = min((request.arrival for request in requests), default=0)
    late = [request.arrival - first for request in requests]
    early = [of * time // by for time in late]
    moved = [request._replace(arrival=t) for request, t in zip(requests, early, strict=True)]
    proved, how = _judged(memory, moved, work, proof, "pauses" in scope)
    return by * (proved + sum(early)) > of * (value + sum(late)), how


def _no_slower(name: str, value: int, machines: list[tuple[int, int]]) -> list[str]:
    """Say on which machines nothing is as good as a schedule of this value."""
    parts = [parts for parts, most in machines if most >= value]
    if not parts:
        return []
    return [
        f"  as good as {name} on a machine more than {_times(min(parts))} times slower is "
        "impossible"
    ]


# ---- the report -------------------------------------------------------------------------


def _report(certificate: dict[str, Any], work: _Work | None = None) -> list[str]:
    """Check everything; say what was checked and what it proves."""
    work = work or _Work()
    instance, claimed_hash = certificate["instance"], certificate["hash"]
    memory, requests = _memory_of(instance), _requests(instance)
    if claimed_hash != _hash(instance):
        raise Invalid("hash: is not that of the instance")
    lines = [
        f"instance {_shown(instance.get('name', ''))}: {len(requests):,} requests, memory "
        f"{memory:,}{f' on each of {memory.workers:,} workers' * (memory.workers > 1)}, "
        f"{claimed_hash}",
    ]
    if (block := _block_size(certificate, requests)) > 1:
        lines.append(f"memory in {memory // block:,} whole blocks of {block:,} tokens")
    scope = certificate.get("scope", "restarts")
    pauses, chunks = "pauses" in scope, "chunks" in scope
    if "model" in certificate:
        clock, arrivals = _Clock(certificate["model"]), _arrivals(instance)
        free = [request._replace(arrival=0) for request in requests]  # by its number of rounds
        timed = _Timed(free, clock, arrivals)
        peak_of = functools.partial(_timed_peak, memory, timed, work)
        judged = functools.partial(_by_shares, memory, free, arrivals, clock, work, chunks=chunks)
        conclusions = _in_seconds
        lines += [*clock.words(), "checked in integers of nanoseconds, from these alone:"]
    else:
        peak_of = functools.partial(_peak_of, memory, requests, work, block=block)
        judged = functools.partial(_judged, memory, requests, work, pauses=pauses)
        if block > 1:
            judged = functools.partial(
                _judged_in_blocks, block, memory, requests, work, pauses=pauses
            )
        timed = _Timed(requests)
        conclusions = _conclusions
        lines.append("checked in integers, from the instance alone:")
    upper = lower = None
    if (claim := certificate["upper"]) is not None:
        upper = claim["value"]
        if used := _uncovered(claim, scope):
            raise Invalid(f"upper: has {used}, which its scope does not cover")
        peak = peak_of(claim, "upper")
        lines.append(
            f"  upper {upper:,}: its {_times_of(claim)} give it and hold {peak:,} tokens at most"
        )
    if (claim := certificate["lower"]) is not None:
        lower, (proved, how) = claim["value"], judged(claim["proof"])
        if lower > proved:
            raise Invalid(f"lower: says {lower:,}, the proof gives {proved:,}")
        if upper is not None and lower > upper:
            raise Invalid("lower is above upper: an error of the checker itself")
        lines.append(f"  lower {lower:,}: its proof by {how} gives {proved:,}")
    machines = []
    for claim in certificate.get("slower", []):
        parts, value, how = _slower(memory, timed, work, claim, certificate["lower"], scope)
        lines.append(
            f"  slower {_times(parts)}: its proof by {how} gives more than {value:,} on a machine "
            "so many times slower"
        )
        machines.append((parts, value))
    ratios = []
    for claim in certificate.get("policies", []):
        name, value = _shown(claim["policy"]), claim["value"]
        if value is None:
            lines.append(f"  {name}: {claim['outcome']}, nothing is claimed")
            continue
        peak = peak_of(claim, name)
        lost = f" with {len(claim['lost']):,} evictions" if claim.get("lost") else ""
        times = _times_of(claim)
        lines.append(
            f"  {name} {value:,}: its {times}{lost} give it and hold {peak:,} tokens at most"
        )
        if used := _uncovered(claim, scope):
            ratios.append(f"  of {name} nothing: it has {used}, which the bounds do not cover")
        else:
            ratios.append(f"  {name} is {_ratio(value, upper, lower)}")
            ratios += _no_slower(name, value, machines)
    best = [] if upper is None else _no_slower("this schedule", upper, machines)
    in_time: list[str] = []
    if "deadlines" in certificate:
        checked, in_time = _in_time(certificate, requests, work)
        lines += checked
    lines += ["proved:", *conclusions(len(requests), upper, lower), *best, *ratios, *in_time]
    if lower is not None or machines or in_time:
        lines.append(COVERED_BY[scope])
    if ratios:
        lines.append("not checked: that a policy would decide as recorded under its name")
    return [*lines, "VALID"]


def _uncovered(claim: dict[str, Any], scope: str) -> str:
    """Return what a run makes use of that a scope leaves out, an empty text where nothing."""
    used = []
    if "pauses" not in scope and any(len(rows) > 1 for rows in claim.get("segments", [])):
        used.append("pauses")
    if "chunks" not in scope and claim.get("chunks"):
        used.append("prompts in pieces")
    return " and ".join(used)


def _conclusions(count: int, upper: int | None, lower: int | None) -> list[str]:
    found = []
    if lower is not None:
        found.append(f"  no schedule of these {count:,} requests has total latency below {lower:,}")
    if upper is not None:
        found.append(f"  a schedule of total latency {upper:,} is {_ratio(upper, None, lower)}")
    return found


def _in_seconds(count: int, upper: int | None, lower: int | None) -> list[str]:
    """Say it of mean latencies in seconds, rounded outward to microseconds."""
    found, scale = [], max(count, 1) * 1000
    if lower is not None:
        mean = f"{lower // scale / 1_000_000:,.6f}"
        found.append(
            f"  no schedule of these {count:,} requests has a mean latency below {mean} s "
            "under this batch-time model"
        )
    if upper is not None:
        mean, ratio = f"{-(-upper // scale) / 1_000_000:,.6f}", _ratio(upper, None, lower)
        found.append(f"  a schedule of mean latency {mean} s is {ratio}")
    return found


def _ratio(value: int, upper: int | None, lower: int | None) -> str:
    """Say what the bounds tell of value / optimum, rounded outward."""
    if value == lower:
        return "optimal"
    most = f"at most {_times(-(-1000 * value // lower))}" if lower and lower > 0 else ""
    least = f"at least {_times(1000 * value // upper)}" if upper and upper > 0 else ""
    return (" and ".join(filter(None, (most, least))) or "any number of") + " times the optimum"


def _times(thousandths: int) -> str:
    return f"{thousandths // 1000:,}.{thousandths % 1000:03}"


def _arguments(given: Sequence[str]) -> tuple[str, float | None] | None:
    """Return the file and the budget of a command line, None if it is not one."""
    rest, times = list(given), None
    if "--budget" in rest[:-1]:
        place = rest.index("--budget")
        _, budget = rest.pop(place), rest.pop(place)
        try:
            times = float(budget)
        except ValueError:
            return None
    fits = len(rest) == 1 and not rest[0].startswith("-")
    return (rest[0], times) if fits and (times is None or 0 < times < math.inf) else None


def main() -> NoReturn:
    """Verify the file named on the command line."""
    arguments = _arguments(sys.argv[1:])
    if arguments is None:
        usage = "usage: python -m kvopt.verify FILE [--budget K], K a positive number"
        print(usage, file=sys.stderr)
        sys.exit(2)
    try:
        verdict = verify(*arguments, progress=functools.partial(print, file=sys.stderr))
    except KeyboardInterrupt:
        print("interrupted, nothing is known of the file", file=sys.stderr)
        sys.exit(130)
    print(*verdict.lines, sep="\n")
    sys.exit(verdict.exit_status)


class _Callable(ModuleType):
    """Lets ``kvopt.verify`` be the function as well as the module that holds it."""

    def __call__(self, *arguments: Any, **named: Any) -> Verdict:
        return verify(*arguments, **named)


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that leaves ends it, as elsewhere
    main()
sys.modules[__name__].__class__ = _Callable
