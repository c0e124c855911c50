"""Check a certificate of kvopt in exact integers, with the standard library alone.

    python -m kvopt.verify FILE [--budget K]      exit status 0 valid, 1 invalid, 2 unreadable

This file needs nothing else of kvopt: it can be copied, and read, on its own.

The problem: a cache of M tokens; request i arrives at round a, has a prompt of s tokens and
produces o more, one a round.  Started at k >= a it holds s + (t - k) tokens at the times
t = k+1 .. k+o; its latency is k + o - a.  No more than M tokens may be held at any time.  The
optimum is the least total latency of a schedule.

A certificate claims that the optimum is at most ``upper``, with a schedule; that it is at least
``lower``, with a proof; and what policies reached, with their runs.  Its ``scope`` says what
schedules may do, and ``narrower`` holds both sides of optima of narrower scopes.  It is unreadable
when it does not have the shape below, and invalid when it has but says something that is not so.
A file may state how long its check takes, and is granted that up to about ten minutes.  One that
takes more steps is unreadable too, with the budget that it needs where that is known;
``--budget K`` allows K times half a minute.

Of a fleet there are ``workers`` such caches; a schedule names the worker of each request, and on
each worker no more than M tokens may be held.

The ``clock`` is that of rounds, or one on which a round lasts as long as its batch needs, see
`Clock`.
"""

from __future__ import annotations

import argparse
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
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import heappop, heappush
from itertools import accumulate, chain, count, pairwise, repeat
from operator import add, itemgetter, le, mul, sub
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

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
"""Bytes of tables that come with so many steps, about, at most."""
MOST_STATED = 20
"""Times as many steps that are granted to a file that states them: about ten minutes."""
UNLISTED = 3
"""Times as many for a search of which a file does not state how large its rounds are."""
MOST_PARTS = 10_000_000
"""Brackets and commas in a file, so that a short text cannot become huge objects."""
MOST_DIGITS = 300
"""Digits of an integer; no honest one comes near, and none makes arithmetic slow."""
LARGEST_FIELD = 2**53 - 1
"""Of an instance: what every JSON reader keeps exactly."""
MOST_TIMES = 1_000_000
"""Times the default budget; a refusal does not name more than this."""

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
    "deadline?": int, "weight?": int, "after?": {"request": str, "gap?": int},
}  # fmt: skip
_INSTANCE = {
    "schema": ("kvopt.instance/1", "kvopt.instance/2"), "name?": str, "notes?": (str, dict),
    "memory": int, "workers?": int, "round_ms?": (int, float), "requests": [_REQUEST],
    "block_size?": int, "max_active?": int,
}  # fmt: skip
_MODEL = {
    "name?": str, "notes?": str, "lines": [{"round_ns": int, "token_ns": int}],
    "kv_ns": int, "prompt_ns": int,
}  # fmt: skip
_STAGE = {"denominator": int, "peaks": [[int]], "times": [int], "numerators": [[int]]}
_PRICES = {"kind": "prices", "denominator": int, "first": int, "numerators": [int]}
_PARTS = (
    _PRICES,
    {"kind": "volume", "staircases?": [[int]]},
    {"kind": "configurations", "target": (None, int), "searched": bool, "stages": [_STAGE],
     "kept?": [int]},
    {**_PRICES, "kind": "search", "target": int, "kept?": [int]},
    {**_PRICES, "kind": "slot-prices", "borders": [int],
     "slots": [{"count": int, "numerators": [int]}]},
)  # fmt: skip
_PROOFS = (
    *_PARTS,
    {"kind": "split", "parts": [{"from": int, "proof": _PARTS}]},
    {**_PRICES, "kind": "block-prices"},
    {"kind": "shares", "lines": [int], "weights?": [int], "company?": [int], "mix?": [int],
     "parts?": int},
)  # fmt: skip
_SPANS = {"value": int, "workers?": [int], "waits?": [[int]]}
_RUNS = (
    {**_SPANS, "starts": [int], "lost?": [[int]]},
    {**_SPANS, "segments": [[[int]]], "chunks?": [{"request": int, "start": int, "tokens": [int]}]},
)
_SIDES = {
    "scope": tuple(COVERED_BY),
    "upper": (None, *_RUNS),
    "lower": (None, {"value": int, "proof": _PROOFS}),
}
_CERTIFICATE = {
    "schema": "kvopt.certificate/3",
    "hash": str,
    "clock": ("rounds", _MODEL),
    **_SIDES,
    "narrower?": [_SIDES],
    "slower?": [{"machine": [int], "value": int, "proof?": _PROOFS}],
    "policies?": [
        (
            *({"policy": str, "outcome": "completed", **run} for run in _RUNS),
            {"policy": str, "outcome": ("livelock", "unfinished"), "value": None},
        )
    ],
    "deadlines?": {
        "aim": ("completion", "first-token"), "after": (int, "own"), "ceiling": int,
        "proof": {"times": [int], "numerators": [int], "denominator": int, "lines?": [int]},
        "attained": [(None, int)], "best": (None, *({**run, "attained": int} for run in _RUNS)),
    },
    "budget?": int,
    "provenance?": dict,
    "instance": _INSTANCE,
}  # fmt: skip

_OLDER = [f"kvopt.{kind}certificate/{n}" for kind in ("", "seconds-") for n in (1, 2)]


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
    """Arrival on the clock, prompt tokens, output tokens."""

    arrival: int
    prompt: int
    output: int


@dataclass(frozen=True)
class Problem:
    """What is scheduled: requests, by workers with a cache each, on a clock.

    Parameters
    ----------
    memory, requests, workers
        Tokens of each cache, what arrives, and how many caches there are.
    block
        Memory is given out in blocks of so many tokens.
    clock
        How long rounds last, None where they count themselves.
    pauses, chunks
        Whether requests may pause, and prompts be processed in pieces.
    weights
        How many times the latency of each request counts; empty where each counts once.
    after
        For requests that follow another one: that, and the rounds between.  Latency counts from
        the release: from the arrival or the end of those rounds, whichever is later.
    most
        Requests that may be active together on a worker, None for any number.
    """

    memory: int
    requests: list[Request]
    workers: int = 1
    block: int = 1
    clock: Clock | None = None
    pauses: bool = False
    chunks: bool = False
    weights: tuple[int, ...] = ()
    after: tuple[tuple[int, int, int], ...] = ()
    most: int | None = None

    @property
    def is_restricted(self) -> bool:
        """Whether it is more than the problem of the papers."""
        return bool(self.weights or self.after or self.most)

    @property
    def used(self) -> int:
        """How many workers can be of use: no more than there are requests."""
        return min(self.workers, max(1, len(self.requests)))

    def within(self, scope: str) -> Problem:
        """Return the same with schedules of a scope."""
        return replace(self, pauses="pauses" in scope, chunks="chunks" in scope)

    def arriving(self, arrivals: Iterable[int]) -> Problem:
        """Return the same with other arrivals."""
        pairs = zip(self.requests, arrivals, strict=True)
        return replace(self, requests=[r._replace(arrival=a) for r, a in pairs])


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
        How many times the default number of steps the check may take; None for what the file
        states, up to about ten minutes.
    progress
        Called with a line every quarter of a minute or so.

    Raises
    ------
    ValueError
        If the budget is not a positive number.
    """
    work = Work(budget, progress)
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


class Work:
    """Counts what a check takes, so that no file keeps the checker busy for hours.

    What is linear in the size of a file is bounded with that.  All else is charged before it is
    done, part by part.  Tables are charged so that BYTES come with STEPS at most; integers of many
    digits are slow, and large: a step counts ``weight`` times then.  ``part`` is what is looked at.
    """

    def __init__(
        self, times: float | None = None, progress: Callable[[str], None] | None = None
    ) -> None:
        if times is not None and not 0 < times < math.inf:  # which NaN is not
            raise ValueError("budget: must be a positive number")
        self.is_told, self.progress, self.times = times is not None, progress, times or 1.0
        self.used, self.weight, self.mark, self.part = 0, 1, _MARK, ""

    def grant(self, stated: int | None) -> None:
        """Allow what a file states that its check needs, unless the reader decided on that."""
        if stated is not None and stated < 2:
            raise Invalid("budget: must be at least 2")
        if stated is not None and not self.is_told:
            if stated > MOST_STATED:
                raise Unreadable(f"the file says that it needs {_needed(stated)}")
            self.times = stated

    def spend(self, steps: int) -> None:
        """Take steps, each about the time of an entry of a table."""
        steps *= self.weight
        self.used += steps
        if self.used > self.times * STEPS:
            needed = -(-self.used // STEPS)
            if steps > STEPS:  # known before it is begun, so most of it all
                raise Unreadable(f"{self.part}needs about {_needed(needed)}")
            raise Unreadable(
                f"{self.part}the budget of {int(self.times * STEPS):,} steps is used up: "
                f"{_option(max(2 * math.ceil(self.times), needed))}"
            )
        if self.progress is not None and self.used >= self.mark:
            self.mark = self.used + _MARK
            share = int(100 * self.used / (self.times * STEPS))
            self.progress(f"checking, {share}% of at most about {_minutes(self.times)}")


def _needed(times: int) -> str:
    if times > MOST_TIMES:
        return f"more than {MOST_TIMES:,} times the default budget of steps"
    return f"{times:,} times the default budget of steps: {_option(times)}"


def _option(times: int) -> str:
    size = f"{times * BYTES / 10**9:,.1f} GB"
    return f"verify --budget {times} allows it about {_minutes(times)} and {size}"


def _minutes(times: float) -> str:
    return "half a minute" if times <= 1 else f"{math.ceil(times / 2):,} min"


# ---- reading ----------------------------------------------------------------------------


def _read(path: str | os.PathLike[str], work: Work) -> dict[str, Any]:
    """Return the object of a file that has the shape of a certificate."""
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            raw = stream.read(LARGEST_FILE + 1) if size <= LARGEST_FILE else b""
        if max(size, len(raw)) > LARGEST_FILE:
            raise Unreadable(f"has more than {LARGEST_FILE:,} bytes")
        text = raw.decode("utf-8-sig")
        if sum(map(text.count, "[{,")) > MOST_PARTS:
            raise Unreadable(f"has more than {MOST_PARTS:,} parts")
        value = json.loads(text, object_pairs_hook=_no_doubles,
                           parse_int=functools.partial(_short_integer, work),
                           parse_float=_finite, parse_constant=_finite)  # fmt: skip
    except RecursionError:
        raise Unreadable("is nested too deeply") from None
    except (OSError, ValueError) as error:  # a file that is not there, not text or not JSON
        raise Unreadable(f"cannot be read: {_shown(str(error))}") from None
    schema = value.get("schema") if type(value) is dict else None
    if schema != _CERTIFICATE["schema"]:
        older = "; one of before is not read any more: certify again" * (schema in _OLDER)
        raise Unreadable(f"certificate: must have the schema {_CERTIFICATE['schema']}{older}")
    if misfit := _misfit(value, _CERTIFICATE, "certificate"):
        raise Unreadable(misfit)
    found: dict[str, Any] = value
    return found


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise Unreadable("an object has a key twice")
    return found


def _short_integer(work: Work, text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise Unreadable(f"holds an integer of more than {MOST_DIGITS} digits")
    work.weight = max(work.weight, 1 + len(text) // 50)
    return int(text)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise Unreadable(f"holds {_shown(text)}, which is not a finite number")
    return number


def _misfit(value: Any, shape: Any, where: str) -> str | None:
    """Say where a value has not the shape it should have; None when it has."""
    if isinstance(shape, tuple):
        misfits = [_misfit(value, choice, where) for choice in shape]
        deepest = max(filter(None, misfits), key=lambda text: len(text.partition(": ")[0]))
        return None if None in misfits else deepest
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


def _problem(certificate: dict[str, Any]) -> Problem:
    """Return the problem of a certificate whose instance keeps its own rules."""
    instance = certificate["instance"]
    memory, rows, is_older = instance["memory"], instance["requests"], instance["schema"][-1] == "1"
    workers, block = instance.get("workers", 1), instance.get("block_size", 1)
    requests = [Request(row["arrival"], row["prompt"], row["output"]) for row in rows]
    if not 1 <= memory <= LARGEST_FIELD:
        raise Invalid("instance: memory must be in 1 .. 2^53 - 1")
    if "workers" in instance and (workers < 2 or is_older):
        raise Invalid("instance: workers must be 2 or more, and need the schema kvopt.instance/2")
    if "block_size" in instance and (not 2 <= block <= LARGEST_FIELD or is_older):
        raise Invalid("instance: blocks have at least 2 tokens, and the schema kvopt.instance/2")
    is_timed = certificate["clock"] != "rounds"
    if block > 1 and (is_timed or certificate.keys() & {"deadlines", "slower"} or workers > 1):
        raise Invalid("instance: whole blocks go with total latency in rounds, of one worker, only")
    if block > memory:
        raise Invalid("instance: memory has not one block")
    for i, (arrival, prompt, output) in enumerate(requests):
        if not (0 <= arrival <= LARGEST_FIELD and prompt >= 0 and output >= 1):
            raise Invalid(f"instance: request {i} has a number that is too small or too large")
        if -(-(prompt + output) // block) > memory // block:
            raise Invalid(f"instance: request {i} needs more than the memory, so none is feasible")
    if is_older and any("priority" in row or "deadline" in row for row in rows):
        raise Invalid("instance: priorities and deadlines need the schema kvopt.instance/2")
    if not all(1 <= row.get("deadline", 1) <= LARGEST_FIELD for row in rows):
        raise Invalid("instance: a deadline is too small or too large")
    ids = {row.get("id", f"r{i}") for i, row in enumerate(rows)}
    if len(ids) < len(rows) or "" in ids:
        raise Invalid("instance: an id is empty or used twice")
    if certificate["hash"] != _hash(instance):
        raise Invalid("hash: is not that of the instance")
    problem = _restricted(Problem(memory, requests, workers, block), instance)
    if problem.is_restricted:
        if is_older:
            raise Invalid("instance: weights, order and limits need the schema kvopt.instance/2")
        if is_timed or block > 1 or certificate.keys() & {"deadlines", "slower", "narrower"}:
            raise Invalid("instance: weights, order and limits go with latency in rounds only")
    if not is_timed:
        return problem
    clock = Clock.of(certificate["clock"])
    return replace(problem.arriving(_arrivals(instance)), clock=clock)


def _restricted(problem: Problem, instance: dict[str, Any]) -> Problem:
    """Return a problem with its weights, its order and its limit of active requests."""
    rows, most = instance["requests"], instance.get("max_active")
    if most is not None and not 1 <= most <= LARGEST_FIELD:
        raise Invalid("instance: max_active must be in 1 .. 2^53 - 1")
    weights = tuple(row.get("weight", 1) for row in rows)
    if not all(1 <= weight <= LARGEST_FIELD for weight in weights):
        raise Invalid("instance: a weight is too small or too large")
    places = {row.get("id", f"r{i}"): i for i, row in enumerate(rows)}
    before = {i: places.get(row["after"]["request"], -1) for i, row in enumerate(rows)
              if "after" in row}  # fmt: skip
    gaps = {i: rows[i]["after"].get("gap", 0) for i in before}
    if -1 in before.values() or not all(0 <= gap <= LARGEST_FIELD for gap in gaps.values()):
        raise Invalid("instance: a request follows none of the requests, or too late")
    if before and problem.workers > 1:
        raise Invalid("instance: an order of requests is of one worker only")
    done = {i for i in range(len(rows)) if i not in before}
    left, following = list(done), defaultdict(list)
    for i, j in before.items():
        following[j].append(i)
    while left:
        for i in following[left.pop()]:
            done.add(i)
            left.append(i)
    if len(done) < len(rows):
        raise Invalid("instance: a request follows itself")
    after = tuple((i, j, gaps[i]) for i, j in before.items())
    weights = weights if max(weights, default=1) > 1 else ()
    return replace(problem, weights=weights, after=after, most=most)


def _hash(instance: dict[str, Any]) -> str:
    """Return the hash of what the problem is: name, notes and ids are labels."""
    rows: list[Any] = []
    places = {row.get("id", f"r{i}"): i for i, row in enumerate(instance["requests"])}
    for row in instance["requests"]:
        known = row.get("predicted")
        rows.append([row["arrival"], row["prompt"], row["output"]])
        if known or "arrival_seconds" in row:
            rows[-1].append(known and [known["lower"], known["upper"]])
        if "arrival_seconds" in row:
            rows[-1].append(_duration(row["arrival_seconds"]))
        newer = {name: row[name] for name in ("priority", "deadline") if name in row}
        if row.get("weight", 1) > 1:
            newer["weight"] = row["weight"]
        if "after" in row:
            newer["after"] = [places.get(row["after"]["request"]), row["after"].get("gap", 0)]
        if newer:
            rows[-1].append(newer)
    names = ("schema", "memory", "workers", "block_size", "max_active")
    content = {name: instance[name] for name in names if name in instance}
    content["requests"] = rows
    if "round_ms" in instance:
        content["round_ms"] = _duration(instance["round_ms"])
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _duration(number: float) -> float:
    if not 0 <= number <= sys.float_info.max:
        raise Invalid("instance: a time in seconds or milliseconds is negative or endless")
    return float(number) + 0.0  # which turns -0.0 into 0.0


class Clock(NamedTuple):
    """Rounds that last as long as their batch needs, in nanoseconds.

    With A active requests, S prompt tokens of those that start with it, and H tokens held at its
    end, a round lasts at least

        max over lines of (round_ns + token_ns (A + S))  +  prompt_ns S  +  kv_ns H.
    """

    lines: list[tuple[int, int]]
    prompt: int
    kv: int

    @classmethod
    def of(cls, model: dict[str, Any]) -> Clock:
        """Return the clock of a batch-time model."""
        lines = [(line["round_ns"], line["token_ns"]) for line in model["lines"]]
        numbers = [model["kv_ns"], model["prompt_ns"], *chain.from_iterable(lines)]
        if not lines or not all(0 <= number <= LARGEST_FIELD for number in numbers):
            raise Invalid("model: needs a line, and numbers in 0 .. 2^53 - 1")
        if min(map(sum, lines)) == 0:
            raise Invalid("model: a line without any time")
        return cls(lines, model["prompt_ns"], model["kv_ns"])

    def line(self, tokens: int, chosen: Iterable[int] | None = None) -> int:
        """Return what the lines, or some of them, say of a round that processes some tokens."""
        among = self.lines if chosen is None else [self.lines[i] for i in chosen]
        return max(fixed + each * tokens for fixed, each in among)

    def mixed(self, chosen: list[int], mix: list[int]) -> Clock:
        """Return a clock whose last line mixes some lines, and all of it ``sum(mix)`` as slow."""
        slow, own = self.slower(sum(mix)), [self.lines[i] for i in chosen]
        fixed, each = zip(*own, strict=True)
        slow.lines.append((sum(map(mul, mix, fixed)), sum(map(mul, mix, each))))
        return slow

    def slower(self, times: int) -> Clock:
        """Return a clock on which everything takes so many times as long."""
        lines = [(times * fixed, times * each) for fixed, each in self.lines]
        return Clock(lines, times * self.prompt, times * self.kv)

    def words(self) -> str:
        """Return in words what is assumed of rounds."""
        shown = [f"{fixed:,} + {each:,} b" for fixed, each in self.lines[:_MOST_LINES]]
        if more := len(self.lines) - len(shown):
            shown.append(f"{more:,} more")
        return (
            f"a round of b tokens lasts {' and '.join(shown)} ns or more, and {self.prompt:,} ns "
            f"for each prompt token, {self.kv:,} ns for each token held"
        )


def _arrivals(instance: dict[str, Any]) -> list[int]:
    """Return arrivals in nanoseconds: those in seconds, else rounds of round_ms."""
    rows = instance["requests"]
    known = [_duration(row["arrival_seconds"]) for row in rows if "arrival_seconds" in row]
    if known and len(known) == len(rows):
        return [round(Fraction(seconds) * 10**9) for seconds in known]
    if known or ("round_ms" not in instance and any(row["arrival"] for row in rows)):
        raise Invalid("instance: says not of every request at which second it arrives")
    length = Fraction(_duration(instance.get("round_ms", 0))) * 10**6
    return [round(row["arrival"] * length) for row in rows]


# ---- schedules and runs -----------------------------------------------------------------

_Piece = tuple[int, int, int, int]
"""Request, start, end, and tokens held before: work at the times start + 1 .. end."""
_Part = tuple[list[_Piece], list[dict[str, Any]], dict[int, int], set[int]]
"""What one worker does: pieces of work and of prompts, waits, and the rounds asked for."""


def _checked_run(
    problem: Problem, claim: dict[str, Any], what: str, work: Work, *, first: bool = False
) -> tuple[int, list[int]]:
    """Check a run and its value; return the most tokens that a worker holds, and some times.

    They are those at which requests complete, or have their first tokens.  What an eviction loses
    does not count.
    """
    requests, clock = problem.requests, problem.clock
    pieces, begins = _pieces(requests, claim, what)
    chunks, waits = _chunks(requests, claim, what), claim.get("waits", [])
    if clock is None and (waits or chunks):
        raise Invalid(f"{what}: rounds know neither waits nor pieces of prompts")
    on: list[int] = claim.get("workers", [0] * len(requests) if problem.workers == 1 else [])
    if len(on) != len(requests) or not all(0 <= worker < problem.workers for worker in on):
        raise Invalid(f"{what}: needs one of {problem.workers:,} workers for each request")
    size = 2 + (problem.workers > 1)  # a wait of a fleet names its worker
    if any(len(row) != size or row[0] < 0 or not {*row[2:]} <= {*on} for row in waits):
        raise Invalid(f"{what}: a wait must be [round, time{', worker' * (size > 2)}]")
    work.part = f"{what}: "
    if clock is not None:
        count = len(pieces) + len(waits) + sum(1 + len(row["tokens"]) for row in chunks)
        work.spend(8 * len(clock.lines) * count)
    ends = [end for _, _, end, _ in pieces[: len(requests)]]
    asked = [begin + 1 for begin in begins] if first else ends
    parts: dict[int, _Part] = defaultdict(lambda: ([], [], {}, set()))
    for piece in pieces:
        parts[on[piece[0]]][0].append(piece)
    for row in chunks:
        parts[on[row["request"]]][1].append(row)
    for row in waits:
        parts[sum(row[2:])][2][row[0]] = row[1]
    for worker, mark in zip(on, asked, strict=True):
        parts[worker][3].add(mark)
    swept = {worker: _swept(problem, part, what, work) for worker, part in parts.items()}
    times = [swept[worker][1][end] for worker, end in zip(on, ends, strict=True)]
    released = [request.arrival for request in requests]
    for i, before, gap in problem.after:
        released[i] = max(released[i], times[before] + gap)
    if problem.after and any(start < released[i] for i, start, _, _ in pieces):
        raise Invalid(f"{what}: a request begins before the one that it follows lets it")
    weights = problem.weights or (1,) * len(requests)
    value = sum(map(mul, weights, map(sub, times, released)))
    if claim["value"] != value:
        raise Invalid(f"{what}: says {claim['value']:,}, the {_times_of(claim)} give {value:,}")
    times = [swept[worker][1][mark] for worker, mark in zip(on, asked, strict=True)]
    return max((peak for peak, _ in swept.values()), default=0), times


def _times_of(claim: dict[str, Any]) -> str:
    return "segments" if "segments" in claim else "starts"


def _pieces(
    requests: list[Request], claim: dict[str, Any], what: str
) -> tuple[list[_Piece], list[int]]:
    """Return all work, and the starts of the runs that count.

    The first pieces are those with which the requests complete, in their order.  In segments
    [first, last] are the times of tokens in a row, as they are from a start on: a request that
    paused with g tokens made goes on as one with a prompt of s + g.
    """
    times = _times_of(claim)
    if len(claim[times]) != len(requests):
        raise Invalid(f"{what}: has {len(claim[times])} {times} for {len(requests)} requests")
    segments = claim.get("segments")
    if segments is None:
        pairs = zip(claim["starts"], requests, strict=True)
        segments = [[[start + 1, start + request.output]] for start, request in pairs]
    last: list[_Piece] = []
    more: list[_Piece] = []
    for i, (request, rows) in enumerate(zip(requests, segments, strict=True)):
        free, held = 0, request.prompt
        for row in rows:
            if len(row) != 2 or not free < row[0] <= row[1]:
                raise Invalid(f"{what}: work of request {i} is not [first, last] in order, or "
                              "begins before it arrives")  # fmt: skip
            more.append((i, row[0] - 1, row[1], held))
            free, held = row[1], held + row[1] - row[0] + 1
        if held != request.prompt + request.output:
            raise Invalid(f"{what}: request {i} makes {held - request.prompt:,} tokens")
        last.append(more.pop())
    begins = [rows[0][0] - 1 for rows in segments]
    # Evicted work [i, start, end] held memory at start+1 .. end.  What a request lost lies apart,
    # and before the start that counts.
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


def _swept(problem: Problem, part: _Part, what: str, work: Work) -> tuple[int, dict[int, int]]:
    """Go through the rounds of a worker; return its most tokens, and when rounds end.

    Rounds have numbers; a request that starts at k is active in the rounds k + 1 .. k + o.  On a
    clock in seconds they follow one another at once, except that round r + 1 begins at the time t
    for each wait [r, t], and what goes on after a pause has its prompt and its tokens processed
    again.  A piece holds held - start + t at time t, so from one event to the next all hold
    ``offset + active * t``, which only grows.  In whole blocks, pieces whose ``held - start``
    leaves the same remainder take a new one at the same times.
    """
    requests, clock, block = problem.requests, problem.clock, problem.block
    pieces, rows, waits, asked = part
    processed = {
        (row["request"], row["start"] + len(row["tokens"])): sum(row["tokens"]) for row in rows
    }
    begins, ends, chunks = defaultdict(list), defaultdict(list), defaultdict(list)
    due: dict[int, int] = defaultdict(int)  # of those that start here, the latest arrival
    for i, start, end, held in pieces:
        begins[start].append((held - processed.get((i, start), 0), held - start))
        ends[end].append(held - start)
        due[start] = max(due[start], requests[i].arrival)
    for row in rows:  # as what is processed in a round, and held by then
        due[row["start"]] = max(due[row["start"]], requests[row["request"]].arrival)
        for mark, step in enumerate(
            zip(row["tokens"], accumulate(row["tokens"]), strict=True), row["start"]
        ):
            chunks[mark].append(step)
    now = active = offset = peak = 0
    taken: dict[int, int] = defaultdict(int)  # pieces by remainder
    known, after = {}, (mark + 1 for mark in chunks)
    marks = sorted({*begins, *ends, *waits, *chunks, *after, *asked})
    for mark, following in pairwise([*marks, *marks[-1:]]):
        known[mark] = now = mark if clock is None else now
        prompts = 0
        for shift in ends[mark]:
            active, offset = active - 1, offset - shift
            taken[shift % block] -= 1
        if (begin := waits.get(mark, now)) < now or begin < due[mark]:
            raise Invalid(
                f"{what}: at round {mark:,} something begins too early, before it arrives "
                "or what it waits for"
            )
        now = begin
        for prompt, shift in begins[mark]:
            active, offset, prompts = active + 1, offset + shift, prompts + prompt
            taken[shift % block] += 1
        prompts += sum(done for done, _ in chunks.get(mark, ()))
        beside = sum(held for _, held in chunks.get(mark, ()))
        peak = max(peak, offset + active * following + beside)
        if problem.most is not None and active > problem.most:
            raise Invalid(f"{what}: {active:,} requests are active at one time, at most "
                          f"{problem.most:,} may be")  # fmt: skip
        if block > 1:  # the tokens, and what rounding up adds
            taken = defaultdict(int, {rest: n for rest, n in taken.items() if n})
            work.spend(10 + 4 * len(taken))
            spare = sum(n * (-(rest + following) % block) for rest, n in taken.items())
            if (blocks := (offset + active * following + spare) // block) > problem.memory // block:
                raise Invalid(f"{what}: {blocks:,} blocks are held at one time, there are "
                              f"{problem.memory // block:,}")  # fmt: skip
        if clock is not None and (active or beside) and (rounds := following - mark):
            now += clock.line(active + prompts) + clock.prompt * prompts
            now += (rounds - 1) * clock.line(active)
            held = 2 * offset + active * (mark + 1 + following)  # twice the mean of the rounds
            now += clock.kv * (rounds * held // 2 + beside)
    if peak > problem.memory:
        raise Invalid(f"{what}: {peak:,} tokens are held at one time, memory is {problem.memory:,}")
    return peak, known


# ---- proofs of lower bounds -------------------------------------------------------------


def _judged(problem: Problem, proof: dict[str, Any], work: Work) -> tuple[int, str]:
    """Return the lower bound that a proof gives, and in words what was looked at.

    Configurations, searches, slots and staircases judge runs as wholes: they do not cover pauses.
    Blocks only restrict: every bound for the tokens of all blocks holds.
    """
    if problem.is_restricted:
        # A limit and an order only restrict, and no latency is below the output.  From a release
        # latency may be less than from the arrival: with an order outputs alone are counted.
        outputs, plain = (
            [r.output for r in problem.requests],
            replace(problem, weights=(), after=(), most=None),
        )
        more = sum(map(mul, problem.weights, outputs)) - sum(outputs) if problem.weights else 0
        value, how = _judged(plain, proof, work)
        return (sum(outputs) + more, "outputs") if problem.after else (value + more, how)
    kind = proof["kind"]
    if (kind == "shares") != (problem.clock is not None):
        raise Invalid("lower: shares of the machine are of a clock in seconds, all else of rounds")
    if problem.pauses and (kind in _OF_RUNS or proof.get("staircases")):
        raise Invalid("lower: configurations, searches, slots and staircases do not cover pauses")
    if problem.block > 1:
        problem = replace(problem, memory=problem.memory - problem.memory % problem.block)
        if kind != "block-prices":
            value, how = _judged(replace(problem, block=1), proof, work)
            return value, f"{how}, in tokens,"
    if kind == "split":
        judged = [_judged(part, own, work)[0] for part, own in _parts(problem, proof)]
        parts = proof["parts"]
        kinds = dict.fromkeys(part["proof"]["kind"] for part in parts)
        return sum(judged), f"{len(parts):,} part{'s' * (len(parts) > 1)} ({', '.join(kinds)})"
    work.part = f"lower: {kind}: "
    if "first" in proof:
        _check_prices(proof)
    if kind == "shares":
        return _by_shares(problem, proof, work), "shares of the machine"
    if kind in ("search", "configurations"):
        return _by_configurations(problem, proof, work)
    if kind == "volume":
        return _volume_bound(problem, proof.get("staircases", []), work), "volume"
    names = {"slot-prices": "prices of tokens and slots", "block-prices": "prices of whole blocks"}
    how = "prices" if kind == "block-prices" and problem.block == 1 else names.get(kind, kind)
    return _price_bound(problem, proof, work), how


def _parts(problem: Problem, proof: dict[str, Any]) -> Iterator[tuple[Problem, dict[str, Any]]]:
    """Yield parts of the requests, each with its proof; what these give adds up.

    A part holds the requests that arrive from its ``from`` on, before that of the next one.  A
    feasible schedule of all requests, less those of other parts, is one of the part; and total
    latency is a sum over requests.  Of no requests the bound is 0.
    """
    borders = [part["from"] for part in proof["parts"]]
    if not borders or any(a >= b for a, b in pairwise(borders)):
        raise Invalid("lower: must have a part, and their begins ascend")
    shares: list[list[Request]] = [[] for _ in borders]
    for request in problem.requests:
        place = bisect_right(borders, request.arrival) - 1
        if place < 0:
            raise Invalid("lower: a request arrives before the first part")
        shares[place].append(request)
    for part, own in zip(proof["parts"], shares, strict=True):
        if own:
            yield replace(problem, requests=own), part["proof"]


def _check_prices(proof: dict[str, Any]) -> None:
    """Refuse prices of tokens, and of slots, that are not of the right form."""
    if proof["denominator"] < 1 or proof["first"] < 1 or min(proof["numerators"], default=0) < 0:
        raise Invalid("lower: needs a denominator and times of at least 1, and no negative price")
    borders, slots = proof.get("borders", []), proof.get("slots", ())
    if "borders" in proof and (
        len(borders) < 2 or borders[0] < 0 or any(a >= b for a, b in pairwise(borders))
    ):
        raise Invalid("lower: slots need two borders of prices or more, which ascend from 0 on")
    for each in slots:
        prices = each["numerators"]
        if each["count"] < 1 or len(prices) != len(borders) or min(prices) < 0:
            raise Invalid("lower: there is a slot, and at each border its price, not negative")


def _reach(proof: dict[str, Any]) -> tuple[int, int]:
    """Return the time before the first price, and that of the last, those of slots included."""
    begin, borders = proof["first"] - 1, proof.get("borders", [])
    return min([begin, *borders]), max([begin + len(proof["numerators"]), *borders])


def _price_bound(problem: Problem, proof: dict[str, Any], work: Work) -> int:
    """Return what prices of tokens prove, or of whole blocks, or of tokens and of slots.

    Let a token held at time t cost p_t >= 0.  The cost of a request started at k is

        (k + o - a) + sum_{j=1..o} p_{k+j} (s + j),

    its latency and the price of its tokens.  A schedule holds at most M tokens at each time, so
    its costs sum to at most its total latency + M sum_t p_t.  Hence no total latency is below
    the sum of the *least* costs - M sum_t p_t.  Of a fleet M is what all workers hold together.
    For whole blocks it is the same with ``B ceil((s + j) / B)`` for ``s + j``.

    *Slots.*  Say that a request which holds h tokens needs ``(c + 1) h // (M + 1)`` of c slots.
    Requests that hold at most M tokens together need at most ``(c + 1) M // (M + 1) <= c`` slots
    together.  So the cost of a start may add a price for each slot at each time, and M sum_t p_t
    becomes that plus the prices of all c slots.  In a fleet each worker has its own.
    """
    scale: int = proof["denominator"]
    requests, (begin, end) = problem.requests, _reach(proof)
    work.spend(60 * len(proof.get("slots", ())) * (end - begin))
    slots = [(each["count"], _slot_prices(proof, each)) for each in proof.get("slots", ())]
    paid = problem.memory * sum(proof["numerators"]) + sum(many * sum(row) for many, row in slots)
    total: int = scale * sum(request.output for request in requests) - problem.used * paid
    # A request that can be done before the first price costs o, and nothing costs less.  The
    # others arrive at most o rounds before it, so the table begins with few prices of 0.
    kinds = Counter(request for request in requests if request.arrival + request.output > begin)
    if kinds:
        first = min([begin, *(request.arrival for request in kinds)])
        longest = max(request.output for request in kinds)
        length = end - first + min(longest, end - first)
        work.spend((50 + 15 * (length >> _SMALL).bit_length()) * length)
        prices = [0] * (proof["first"] - 1 - first) + proof["numerators"]
        prices += [0] * (end - first - len(prices))
        work.spend((500 + 60 * length) * sum(1 + many for many, _ in slots))
        stairs: dict[int, list[int]] = {}
        for many, row in slots:
            line = [0] * (proof["borders"][0] - first) + row
            for number in range(1, many + 1):
                threshold = -(-number * (problem.memory + 1) // (many + 1))
                known = stairs.get(threshold, repeat(0))
                stairs[threshold] = list(map(add, known, line))
        costs = _Costs(scale, prices, longest, work, problem.block, sorted(stairs.items()))
        paused = _PausedCosts(scale, prices, work, problem.block) if problem.pauses else None
        for (arrival, prompt, output), times in kinds.items():
            least = costs.least(arrival - first, prompt, output)
            if paused is not None:
                least = paused.least(arrival - first, prompt, output, least)
            total += times * least
    return -(-total // scale)


def _slot_prices(proof: dict[str, Any], slot: dict[str, Any]) -> list[int]:
    """Return the prices of a slot at the times after the first border, up to the last.

    Between the borders b and b' with the prices q and q' the price at t is

        q + (t - b) ceil((q' - q) / (b' - b))    for b < t <= b',

    which is at least what lies on a straight line from q to q', so it is not negative.
    """
    prices = []
    pairs = zip(pairwise(proof["borders"]), pairwise(slot["numerators"]), strict=True)
    for (begin, end), (low, high) in pairs:
        slope = -((low - high) // (end - begin))
        prices += [low + n * slope for n in range(1, end - begin + 1)]
    return prices


class _Costs:
    """Least costs of requests under the prices q_1 .. q_T over D; q_t = 0 after T.

    With P_k = q_1 + .. + q_k and what token j holds, h_j = B ceil((s + j) / B) where blocks of B
    tokens are paid for, a start at k costs, without the latency o that every start has, times D,

        D (k - a) + h_o P_{k+o} - h_1 P_k - B sum P_{k+j}  over those j < o for which B divides s+j.

    These j are B apart, so with S_x = P_x + S_{x-B} the last sum is a difference of two.  After T
    nothing is paid and waiting only costs latency, so k runs over a .. T, T included.

    *Which starts need no look.*  Of tokens, no more than of blocks, let q_t = b t + r_t at all
    times that the starts of a block pass through.  The line makes their costs linear in k, so
    least at an end of the block.  The rest adds sum_j r_{k+j} (s + j).  With v = sum_j (s + j)
    that is at least v min r.  It is also, for any number c and the sums E_t of r_u - c over u <= t,

        v c + (s + o) E_{k+o} - s E_k - sum_{j=0..o-1} E_{k+j} >= v c - (s + o) (max E - min E).

    The first is good where prices bend, the second where they are rough.  A block that may hold
    a start cheaper than the best so far is cut in two, or looked at start by start when it is
    small.  So whatever the prices are, the least cost is exact.

    *Steps* add a difference of sums for each table of thresholds that are reached.  Sums only grow,
    so of a block of starts it is at least that of what all of them pay.
    """

    def __init__(
        self,
        scale: int,
        prices: list[int],
        longest: int,
        work: Work,
        block: int = 1,
        stairs: Sequence[tuple[int, list[int]]] = (),
    ) -> None:
        self.scale, self.last, self.work, self.block = scale, len(prices), work, block
        prices = prices + [0] * min(longest, self.last)  # so that k + o is in the tables
        self.stairs = []
        for tokens, line in stairs:
            row = line + [0] * (len(prices) - len(line))
            self.stairs.append((tokens, [*accumulate(row, initial=0)]))
        rows = (row for _, row in self.stairs)
        self.reached = [*accumulate(rows, lambda one, other: list(map(add, one, other)))]
        self.paid = list(accumulate(prices, initial=0))  # P
        self.strided = list(self.paid)  # S
        for x in range(block, len(self.paid)):
            self.strided[x] += self.strided[x - block]
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
            self.work.spend(20 + 2 * size + len(steps) * (20 + 4 * size))
            if end - begin <= 1 << _SMALL:
                costs = self.of_starts(begin, end, arrival, prompt, output)
                for before, sums in steps:
                    ends, begins = (sums[begin + x : end + x] for x in (output, before))
                    costs = map(add, costs, map(sub, ends, begins))
                best = min(best, min(costs) << self.shift)
                continue
            middle = (begin + end) // 2
            for k, after in ((begin, middle), (middle, end)):
                level = max((after - k + output - 2).bit_length() - _SMALL, 0)
                slope, low, mean, rough = self.lines[level][k >> level + _SMALL]
                bound = max(volume * low, volume * mean - peak * rough)
                bound += wait * (k - arrival) + slope * (volume * k + moment)
                bound += min(0, (wait + slope * volume) * (after - 1 - k))
                for before, sums in steps:
                    bound += max(0, sums[k + output] - sums[after - 1 + before]) << self.shift
                if bound < best:
                    heappush(blocks, (bound, k, after))
        return best >> self.shift

    def _steps(self, prompt: int, peak: int) -> list[tuple[int, list[int]]]:
        """Return the sums of prices that a request pays, each after so many rounds.

        The thresholds that its first token reaches are one table.
        """
        first = bisect_right(self.stairs, prompt + 1, key=itemgetter(0))
        final = bisect_right(self.stairs, peak, key=itemgetter(0))
        later = self.stairs[first:final]
        steps = [(0, self.reached[first - 1])] if first else []
        return steps + [(tokens - prompt - 1, sums) for tokens, sums in later]

    def of_starts(
        self, begin: int, end: int, arrival: int, prompt: int, output: int
    ) -> Iterable[int]:
        """Return the costs of the starts ``begin .. end - 1``, without those of steps."""
        block = self.block
        low, high = (-(-(prompt + j) // block) * block for j in (1, output))
        waits = range(self.scale * (begin - arrival), self.scale * (end - arrival), self.scale)
        pairs = self.paid[begin:end], self.paid[begin + output : end + output]
        costs = [
            wait + high * then - low * now for wait, now, then in zip(waits, *pairs, strict=True)
        ]
        first = block - prompt % block  # the token that fills a block
        if first >= output:
            return costs
        final = output - 1 - (output - 1 - first) % block  # the last of them
        x = begin + first - block
        missing = min(max(0, -x), end - begin)
        before = [0] * missing + self.strided[x + missing : x + end - begin]
        filled = map(sub, self.strided[begin + final : end + final], before)
        return map(sub, costs, map(mul, filled, repeat(block)))


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

    def __init__(self, scale: int, prices: list[int], work: Work, block: int) -> None:
        self.scale, self.prices, self.work, self.block = scale, prices, work, block
        self.rises = [t for t, (now, after) in enumerate(pairwise(prices), 1) if now < after]

    def least(self, arrival: int, prompt: int, output: int, most: int) -> int:
        """Return the least cost, its output times D left out, where ``most`` is without pauses."""
        place = bisect_right(self.rises, arrival)
        rise = self.rises[place] - arrival if place < len(self.rises) else math.inf
        last = min(most // self.scale, max(0, len(self.prices) - arrival)) + output
        if rise >= last:
            return most
        self.work.spend(10 * last)
        prices = self.prices[arrival : arrival + last]
        prices += [0] * (last - len(prices))
        costs = enumerate(self._in_a_row([*accumulate(prices, min)], prompt, output))
        end = max((output + c for c, cost in costs if cost < most), default=0)
        return most if rise >= end else min(most, self._with_pauses(prices[:end], prompt, output))

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
        self.work.spend(5 * output * (slack + 1))
        held = [-(-(prompt + j) // self.block) * self.block for j in range(1, output + 1)]
        made = [0] * (slack + 1)
        for j, tokens in enumerate(held):
            prices_of = map(mul, prices[j : j + slack + 1], repeat(tokens))
            made = list(map(add, accumulate(made, min), prices_of))
        best: int = min(map(add, made, count(0, self.scale)))
        return best


def _volume_bound(problem: Problem, staircases: list[list[int]], work: Work) -> int:
    """Return what follows from resources used like water: memory, M tokens in each round.

    A request needs v = s o + o (o + 1) / 2 token-rounds.  The j-th completion of a schedule is
    not before the j-th of the fluid, nor before the j-th smallest a + o.  Of the states of a
    staircase with so many thresholds no more can stand together: another resource.  Each worker
    of a fleet has as much of both.
    """
    memory, requests = problem.memory, problem.requests
    each = 100 * len(requests) + 5 * sum(request.output for request in requests)
    work.spend(len(staircases) * each + 4 * len(requests) * sum(map(len, staircases)))
    volumes = [r.prompt * r.output + r.output * (r.output + 1) // 2 for r in requests]
    soonest = sorted(request.arrival + request.output for request in requests)
    ranks = list(map(max, soonest, _fluid(requests, volumes, problem.used * memory)))
    for thresholds in staircases:
        if not thresholds or sorted(thresholds) != thresholds or thresholds[0] < 1:
            raise Invalid("lower: thresholds of a staircase ascend, from 1 on")
        needed = [_passed(memory, thresholds, request) for request in requests]
        ranks = list(map(max, ranks, _fluid(requests, needed, problem.used * len(thresholds))))
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
    jobs = [(r.arrival * rate, 0, v) for r, v in zip(requests, volumes, strict=True)]
    return [-(-end // rate) for _, _, end, is_done in _served(jobs) if is_done]


def _served(jobs: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int, bool]]:
    """Serve jobs (arrival, rank, amount): always one of the least rank, then the least left.

    Yield stretches (rank, begin, end), and whether a job was done at the end.
    """
    arriving, clock = sorted(jobs, reverse=True), 0
    waiting: list[tuple[int, int]] = []
    while arriving or waiting:
        if not waiting:
            clock = max(clock, arriving[-1][0])
        while arriving and arriving[-1][0] <= clock:
            heappush(waiting, arriving.pop()[1:])
        rank, left = heappop(waiting)
        end = min(clock + left, arriving[-1][0]) if arriving else clock + left
        if end < clock + left:
            heappush(waiting, (rank, clock + left - end))
        yield rank, clock, end, end == clock + left
        clock = end


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


def _by_configurations(problem: Problem, proof: dict[str, Any], work: Work) -> tuple[int, str]:
    """Return what stages of prices prove, one after the other, and in words what was looked at.

    Without a target no start is ruled out, so costs of one peak at a time are enough.
    """
    target: int | None
    target, is_tokens = proof["target"], proof["kind"] == "search"
    searched = is_tokens or proof["searched"]
    if searched and problem.used > 1:
        raise Invalid("lower: a search is of one worker")
    stages: Sequence[_Stage | _TokenStage]
    if is_tokens:
        early = min((request.arrival for request in problem.requests), default=0)
        work.spend((200 * len(problem.requests) + 2000) * max(0, _reach(proof)[1] - early))
    stages = [_TokenStage(problem, proof, work)] if is_tokens else _stages(problem, proof, work)
    requests, last, times, how = stages[0].requests, stages[0].last, 0, "prices"
    starts: Sequence[Sequence[int]]
    # From the last priced time on a start pays nothing: the first of those stands for them all.
    starts = [range(request.arrival, max(request.arrival, last) + 1) for request in requests]
    for used, stage in enumerate(stages, 1):
        if isinstance(stage, _Stage):
            times += len(stage.times)
            how = f"prices of configurations at {times:,} time" + "s" * (times > 1)
            how += f" in {used:,} stages" * (used > 1)
        costs = stage.evaluate(starts)
        value = -(-stage.total // stage.scale)
        if target is None:
            return value, how
        budget = (target - 1) * stage.scale - stage.total
        if budget < 0:
            return target, how
        pairs = [zip(*pair, strict=True) for pair in zip(starts, costs, strict=True)]
        left = [{k: cost for k, cost in pair if cost <= budget} for pair in pairs]
        starts = list(map(list, left))
    assert target is not None, "a search has one"
    if not searched:
        return min(target, value), how
    known = _Search(stage, left, target, budget, work).run(proof.get("kept", ()))
    return target, f"{how} and a search of {known:,} partial schedules, none below {target:,},"


def _stages(problem: Problem, proof: dict[str, Any], work: Work) -> list[_Stage]:
    """Return the stages of prices of states of a proof."""
    target = proof["target"]
    stages = [_Stage(problem, stage, target is not None, work) for stage in proof["stages"]]
    if not stages or (target is None and (len(stages) > 1 or proof["searched"])):
        raise Invalid("lower: must have a stage, and just one and no search without a target")
    if any(stage.times[-1] != stages[0].times[-1] for stage in stages):
        raise Invalid("lower: the stages must have the same last time")
    return stages


def _from_first(problem: Problem) -> tuple[int, list[Request]]:
    """Return the first arrival, and the requests as from then on.

    Times before it, at which nothing can be active, are not laid out.
    """
    offset = min((request.arrival for request in problem.requests), default=0)
    return offset, [r._replace(arrival=r.arrival - offset) for r in problem.requests]


class _TokenStage:
    """Prices over a denominator of a token: F is that of the tokens that a state holds.

    R is that of M tokens, as what stands together holds no more.  ``last`` is the last time with a
    price, ``most`` holds R at 0, 1, ..., and ``before`` the sum of all earlier R.
    """

    def __init__(self, problem: Problem, proof: dict[str, Any], work: Work) -> None:
        self.memory, self.work = problem.memory, work
        offset, self.requests = _from_first(problem)
        self.scale, first, prices = proof["denominator"], proof["first"], proof["numerators"]
        skipped = max(0, offset - first)
        self.before = self.memory * sum(prices[:skipped])
        gap = max(0, first - offset) if prices[skipped:] else 0
        self.prices = [0] * gap + prices[skipped:] or [0]
        self.last, self.most = len(self.prices) - 1, [self.memory * price for price in self.prices]
        self.total = 0

    def price(self, time: int, peak: int, r: int) -> int:
        """Return the price of a state at a time up to the last."""
        return int(self.prices[time] * (peak - r))

    def evaluate(self, starts: Sequence[Sequence[int]]) -> list[list[int]]:
        """Set ``total``, L, and return the reduced cost of each start; all starts are given."""
        longest = max((request.output for request in self.requests), default=0)
        table = _Costs(self.scale, self.prices[1:], longest, self.work)
        self.total, reduced = -self.before - sum(self.most), []
        for (arrival, prompt, output), own in zip(self.requests, starts, strict=True):
            costs = [0]
            if arrival < self.last:
                brief = min(output, self.last)  # after the last price no start pays
                costs = [*table.of_starts(arrival, own[-1] + 1, arrival, prompt, brief)]
            least = min(costs)
            self.total += least + self.scale * output
            reduced.append([cost - least for cost in costs])
        return reduced


class _Stage:
    """Prices over a denominator of the states of each [peak, rounds], those with r < rounds.

    A row of ``numerators`` holds the prices at one of the ``times``: peak by peak, r upwards.
    Other states cost nothing, nor does any before the first time or after the last.  At times
    t between two neighbours a and b the price is ((b - t) F_a + (t - a) F_b) // (b - a).  Times
    are then counted from an offset, the first arrival: ``last`` is the last of them that matters.
    """

    def __init__(self, problem: Problem, stage: dict[str, Any], keep: bool, work: Work) -> None:
        self.memory, self.used, self.work = problem.memory, problem.used, work
        offset, self.requests = _from_first(problem)
        self.scale, self.rows, self.keep = stage["denominator"], stage["numerators"], keep
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
        self.alike: dict[int, list[int]] = defaultdict(list)  # positions of requests by peak
        for i, request in enumerate(self.requests):
            self.alike[request.prompt + request.output].append(i)
        # The price at a time has weight strictly between its neighbours.
        nexts = [*self.times[1:], self.times[-1] + 1]
        self.windows = [(max(0, a), b) for a, b in zip([0, *self.times[:-1]], nexts, strict=True)]

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

    def evaluate(self, starts: Sequence[Sequence[int]]) -> list[list[int]]:
        """Set R, which is ``most`` at 0, 1, ... and ``before`` in all earlier, and ``total``, L.

        Return the reduced cost of each start, or of the cheapest ones only.
        """
        costs: list[list[int]] = [[]] * len(starts)
        kept = len(starts) if self.keep else max(map(len, self.alike.values()), default=0)
        self.work.spend(200 * self.last * (kept + 9) + 15 * self.last * len(starts))
        states = [state for peak in self.alike for state in self._along(peak, starts, costs)]
        states.sort(reverse=True)
        heaviest = []
        for x, row in enumerate(self.rows):
            some = [(r, h, row[i], most[x]) for r, h, i, most in states if row[i] and most[x]]
            heaviest.append(self.used * _heaviest(self.memory, some, self.work))
        # Rounded down as well: what states cost is an integer, at most the interpolation.
        self.most = _filled(self.times, heaviest)
        self.before = _sum_before(self.times, heaviest)
        least = list(map(min, costs))
        self.total = sum(least) - sum(self.most) - self.before
        return [[cost - low for cost in row] for row, low in zip(costs, least, strict=True)]

    def _along(
        self, peak: int, starts: Sequence[Sequence[int]], costs: list[list[int]]
    ) -> list[tuple[int, int, int, list[int]]]:
        """Set the costs of the requests of one peak, or keep the least; return the peak's states.

        A state is (r, h, place, copies).  What completes at c is in the state of r at the time
        c - r.  ``paid[c]`` is the sum of those prices below some r; ``ends[c]`` counts the
        requests of more than r rounds that may complete at c.  So at time t at most ends[t + r]
        are in the state of r: the largest of those counts in a window limits its copies in R.
        """
        places, last, scale = self.places.get(peak, range(0)), self.last, self.scale
        outputs = {i: self.requests[i].output for i in self.alike[peak]}
        waiting = sorted(outputs, key=lambda i: -outputs[i])
        rounds = min(len(places), outputs[waiting[0]])
        self.work.spend(15 * len(outputs) + rounds * (6 * last + 30 * len(self.times)))
        paid, ends = ([0] * (2 * last + rounds + 1) for _ in range(2))
        done = {}  # from last + rounds on nothing is paid, and those may count as one
        for i in outputs:
            done[i] = [min(k, last) + min(outputs[i], last + rounds) for k in starts[i]]
            for c in done[i]:
                ends[c] += 1
        states = []
        for r in range(rounds + 1):
            while waiting and (r == rounds or outputs[waiting[-1]] == r):
                i = waiting.pop()
                for c in done[i]:
                    ends[c] -= 1
                delay = outputs[i] - self.requests[i].arrival
                pairs = zip(starts[i], done[i], strict=True)
                costs[i] = [scale * (k + delay) + paid[c] for k, c in pairs]
                if not self.keep:
                    costs[i] = [min(costs[i])]
            if r < rounds:
                column = _filled(self.times, [row[places[r]] for row in self.rows])
                paid[r : r + last + 1] = map(add, paid[r : r + last + 1], column)
                copies = [max(ends[a + 1 + r : b + r]) if a + 1 < b else 0 for a, b in self.windows]
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


def _heaviest(memory: int, states: list[tuple[int, int, int, int]], work: Work) -> int:
    """Return the most that states (r, h, weight, copies) weigh which can stand together.

    They come by r descending.  A member fits if memory holds when it completes, when those
    before it are still there: H + h + (c + 1) r <= M, where H is the sum of the h of these c.
    ``best[c][H]`` is the weight of some members that fit, at most c and with a sum of at most
    H, and is at least that of all that have c and H exactly.
    """
    if not states:
        return 0
    members = min(sum(state[3] for state in states), memory // min(state[1] for state in states))
    work.spend(20 + 29 * (members + 1) * (memory + 1))
    best = [[0] * (memory + 1) for _ in range(members + 1)]
    low = memory
    for r, h, weight, copies in states:
        low = min(low, h)
        counts: Sequence[int] = range(min(members, memory // (low + r)))
        sizes = range(memory - h - r + 1, 0, -low - r)[: len(counts)]
        passes = copies if copies < memory // (h + r) else 0
        work.spend((12 * len(counts) + 2 * sum(sizes)) * max(passes, 1))
        # Counts upwards add a state to what may have it already, downwards they add one copy.
        if passes:
            counts = [*reversed(counts)] * passes
        for c in counts:
            begin, end = c * low, memory - h - (c + 1) * r + 1
            if begin < end:
                fewer, more = best[c], best[c + 1]
                pairs = zip(fewer[begin:end], more[begin + h : end + h], strict=True)
                more[begin + h : end + h] = [
                    new if (new := old + weight) > known else known for old, known in pairs
                ]
    return max(map(max, best))


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
        work: Work,
    ) -> None:
        self.stage, self.target, self.budget, self.work = stage, target, budget, work
        self.requests = stage.requests
        latest = max((request.arrival for request in self.requests), default=0)
        rounds = max(stage.last, latest) + budget // stage.scale
        longest = max((request.output for request in self.requests), default=0)
        cells = (rounds + longest) * len(reduced_costs)
        work.spend(150 * cells)
        shapes = defaultdict(list)
        for i in sorted(range(len(reduced_costs)), key=lambda i: self.requests[i].arrival):
            shapes[self.requests[i][1:]].append(i)
        self.shapes = list(shapes.values())
        # Bytes of a partial schedule, about and at most.
        least = min((request.prompt + 1 for request in self.requests), default=1)
        together = min(len(reduced_costs), stage.memory // least)
        width = 400 + 8 * len(shapes) + 72 * together + 40 * longest
        self.most, self.steps = work.times * BYTES // width, 20 + longest // 4 + together
        self.ramps = [tuple(range(s + 1, s + o + 1)) for s, o in shapes]
        self.reduced_costs, self.least = reduced_costs, []
        for request, own in zip(self.requests, reduced_costs, strict=True):
            if (late := max(own)) >= stage.last:  # stands for all that are later, too
                delays = range(1, (budget - own[late]) // stage.scale + 1)
                own.update({late + d: own[late] + d * stage.scale for d in delays})
            backwards = (own.get(k, budget + 1) for k in range(max(own), request.arrival - 1, -1))
            self.least.append([*accumulate(backwards, min, initial=budget + 1)][::-1])

    def run(self, kept: Sequence[int]) -> int:
        """Return how many partial schedules there were, none of them below the target.

        Where the file says how many it ``kept`` of each round, there must not be many more.
        """
        known = 0
        said: Iterable[float] = repeat(math.inf)
        if kept and not self.work.is_told:
            said = chain([1], (2 * size + 100 for size in kept), repeat(100))
        elif not self.work.is_told:
            self.work.times = min(self.work.times, UNLISTED)
        # Before the first arrival nothing can be active, so all of those R are lost.
        lost = self.stage.before + self.stage.most[0]
        nothing: _Partial = ((0,) * len(self.shapes), (), lost, 0, ())
        layer = [nothing] if lost <= self.budget else []
        for k, most in enumerate(said, 1):
            if len(layer) > most:
                raise Unreadable(
                    f"lower: the search has {len(layer):,} partial schedules at round {k - 1:,}, "
                    "the file says fewer: verify --budget K allows it K times half a minute"
                )
            if not layer:
                break
            known += len(layer)
            plans = [self._plan(members, k - 1) for members in self.shapes]
            found: dict[Any, _Partial] = {}
            prices: dict[tuple[int, int], int] = {}
            for begin in range(0, len(layer), 100):
                part = layer[begin : begin + 100]
                for shape, plan in enumerate(plans):
                    if any(plan):
                        part = self._begun(part, shape, k - 1, len(layer) + len(found), *plan)
                self._pass(part, k, prices, found)
            layer = self._undominated(found.values())
        return known

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
        for partial in layer:
            started, active, bound, latency, held = partial
            if waits[started[shape]] == 0 and started[shape] not in gains:
                grown.append(partial)
                continue
            if others + len(layer) + len(grown) > self.most:
                raise Unreadable(
                    "lower: the search has too many partial schedules: more memory is needed, "
                    f"{_option(2 * math.ceil(self.work.times))}"
                )
            for j in range(started[shape], len(waits)):
                if bound + waits[j] <= self.budget:
                    now = (*started[:shape], j, *started[shape + 1 :])
                    grown.append((now, active, bound + waits[j], latency, held))
                if j not in gains or (bound := bound + gains[j]) > self.budget:
                    break
                self.work.spend(self.steps + size)
                if size <= len(held) and held[size - 1] + ramp[-1] > most:
                    break
                padded = held + (0,) * (size - len(held))
                held = (*map(add, padded, ramp), *held[size:])
                if max(held) > most:
                    break
                active = (*active, (k + size, ramp[-1]))
                latency += k + size - self.requests[self.shapes[shape][j]].arrival
        return grown

    def _pass(
        self,
        layer: list[_Partial],
        time: int,
        prices: dict[tuple[int, int], int],
        found: dict[Any, _Partial],
    ) -> None:
        """Let a time pass, with its R - F; of equal partial schedules the best one stays."""
        full = tuple(map(len, self.shapes))
        self.work.spend((5 * len(full) + 2 * self.steps) * len(layer))
        for started, active, bound, latency, held in layer:
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
        for partial in sorted(layer, key=lambda partial: partial[3:]):
            held, rivals = partial[4], kept[partial[0]]
            steps = 20 + compared * (1 + len(held) // 5) + (4 + len(held) // 2) * len(rivals)
            self.work.spend(steps)
            if not any(len(r[4]) <= len(held) and all(map(le, r[4], held)) for r in rivals):
                rivals.append(partial)
        return [partial for rivals in kept.values() for partial in rivals]


# ---- seconds ----------------------------------------------------------------------------


def _by_shares(problem: Problem, proof: dict[str, Any], work: Work) -> int:
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
    requests, clock = problem.requests, problem.clock
    assert clock is not None, "shares are of a clock in seconds"
    chosen, weights = proof["lines"], proof.get("weights") or [64] * len(requests)
    company = proof.get("company") or [0] * len(requests)
    scale, mix, count = 1, proof.get("mix", []), proof.get("parts", 0)
    if not chosen or not all(0 <= i < len(clock.lines) for i in chosen):
        raise Invalid("lower: needs lines of the model")
    if mix:
        if not (len(mix) == len(set(chosen)) == len(chosen) and min(mix) >= 1):
            raise Invalid("lower: a mix has a number of at least 1 for each of different lines")
        scale, clock, chosen = sum(mix), clock.mixed(chosen, mix), [len(clock.lines)]
    if any(company) and problem.used > 1:
        raise Invalid("lower: company is of one worker")
    chosen = sorted(set(chosen))
    if problem.chunks and len(chosen) > 1:
        raise Invalid("lower: several lines unmixed do not cover prompts in pieces")
    if not 0 <= count <= 64 or (count and problem.chunks):
        raise Invalid("lower: needs 0 .. 64 parts, and none where prompts come in pieces")
    if not len(weights) == len(company) == len(requests):
        raise Invalid("lower: needs a weight, and company, for each request, or none at all")
    if min([*weights, *company, 0]) < 0 or max(map(add, weights, company), default=0) > 64:
        raise Invalid("lower: weight and company of a request are in 0 .. 64, and so is their sum")
    work.spend((600 * (1 + count) + 16 * (len(chosen) + len(clock.lines))) * len(requests))
    parts = [_part(problem.memory, request, clock, chosen) for request in requests]
    # Memory of this size is served as fast as that of all workers.
    memory, unit = problem.memory * problem.used, max((p[0] for p in parts), default=1) << 30
    total, jobs, works, windows = 0, [], [], []
    for request, weight, (takes, delays, alone) in zip(requests, weights, parts, strict=True):
        arrival, slope = scale * request.arrival, weight * unit // (64 * takes)
        total += 2 * memory * ((unit - slope * takes) * (arrival + alone) - unit * arrival)
        total += memory * slope * delays
        cut = _cut(problem.memory, request, clock, chosen, count, (takes, alone))
        jobs += [((arrival + begin) * memory, -slope, part) for begin, part, _, _ in cut]
        works.append([(begin, added, free) for begin, _, added, free in cut])
        windows.append((arrival, arrival + alone))
    # The least sum of 2 slope t dt: the largest slope is served first.
    total -= sum(rank * (end * end - begin * begin) for rank, begin, end, _ in _served(jobs))
    if any(company):
        if problem.chunks or not count:
            works = [[(0, *_prompt(r.prompt, clock, problem.chunks))] for r in requests]
        rest = [64 - share for share in map(add, weights, company)]
        total += 2 * memory * (unit >> 6) * _company(windows, works, company, rest, work)
    return -(-total // (2 * memory * unit * scale))


def _cut(
    memory: int, request: Request, clock: Clock, chosen: list[int], count: int,
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
    budget: Work,
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
    total = 0
    for (arrival, _), parts, share, rate in zip(windows, works, company, rest, strict=True):
        work, paid = sum(added for _, added, _ in parts), 0
        for begin, added, early in parts if rate and work else ():  # without rest it waits for ever
            place = bisect_right(times, arrival + begin)
            best, free = work * prices[place], arrival + begin + early
            while place < len(times) and rate * (times[place] - free) < best:
                end = min((place | 63) + 1, len(times))
                least = rate * max(times[place] - free, 0) + work * lows[place >> 6]
                is_near = least < best
                budget.spend(12 + 6 * is_near * (end - place))
                if is_near:
                    part = zip(times[place:end], prices[place + 1 : end + 1], strict=True)
                    best = min(best, *(rate * max(t - free, 0) + work * p for t, p in part))
                place = end
            paid += added * best
        total += (paid // work if work else 0) - share * work
    return total


def _prompt(prompt: int, clock: Clock, chunks: bool) -> tuple[int, int]:
    """Return the work of a prompt in the company of others, and how early its pieces may begin."""
    none, least, whole = map(clock.line, (0, 1, prompt + 1))
    own = clock.prompt * prompt
    work = own + clock.kv * (prompt + 1)
    if chunks:
        return work + (least - none) * (prompt + 1), whole - least + own
    return work + whole - none, 0


def _part(memory: int, request: Request, clock: Clock, chosen: list[int]) -> tuple[int, int, int]:
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


# ---- deadlines --------------------------------------------------------------------------


def _in_time(
    certificate: dict[str, Any], problem: Problem, reached: Sequence[list[int] | None], work: Work
) -> tuple[str, list[str]]:
    """Check how many requests attain their deadlines; say what was checked and what it proves.

    Request i attains if it completes, or has its first token, by ``d_i``: so long after its
    arrival.  The runs ``reached`` these times.
    """
    claim, scope, work.part = certificate["deadlines"], certificate["scope"], "deadlines: "
    first, ceiling, best = claim["aim"] == "first-token", claim["ceiling"], claim["best"]
    due = _due(certificate, problem)
    proved, misses = _most_in_time(problem, claim["proof"], due, work, first=first)
    if ceiling < proved:
        raise Invalid(f"deadlines: says at most {ceiling:,}, the proof gives {proved:,}")
    runs = certificate.get("policies", [])
    if len(claim["attained"]) != len(runs):
        raise Invalid("deadlines: needs a number, or null, for each policy")
    counted: list[tuple[str, list[int] | None, int | None]]
    counted = [*zip(map(itemgetter("policy"), runs), reached, claim["attained"], strict=True)]
    if best is not None:
        if used := _uncovered(best, scope):
            raise Invalid(f"deadlines: the best has {used}, which the scope does not cover")
        _, times = _checked_run(problem, best, "deadlines", work, first=first)
        counted.append(("best in time", times, best["attained"]))
    for name, ends, attained in counted:
        found = None if ends is None else sum(map(le, ends, due))
        if attained != found:
            raise Invalid(f"deadlines: {_shown(name)} says {attained} attain, {found} do")
    if best and best["attained"] > ceiling:
        raise Invalid("deadlines: more attain than the ceiling, an error of the checker itself")
    within, after = "by a deadline of their own", claim["after"]
    if isinstance(after, int):
        seconds = f"{after // 10**9:,}.{after % 10**9:09} s"
        length = f"{after:,} rounds" if problem.clock is None else seconds
        within = f"within {length} of their arrival"
    aim = "have their first token" if first else "complete"
    said = f"  at most {ceiling:,} of {len(due):,} requests can {aim} {within}"
    said += f"; {misses:,} cannot even alone" if misses else ""
    lines = [said, *([f"  a schedule does for {best['attained']:,}"] if best else [])]
    for run, attained in zip(runs, claim["attained"], strict=True):
        if attained is not None:
            used = _uncovered(run, scope)
            beyond = f" with {used}, which the ceiling does not cover" if used else ""
            lines.append(f"  {_shown(run['policy'])} does for {attained:,}{beyond}")
    return f"  deadlines: the ceiling {ceiling:,}: its proof by prices gives {proved:,}", lines


def _due(certificate: dict[str, Any], problem: Problem) -> list[int]:
    """Return by when each request is due; its own deadline counts rounds."""
    instance, after = certificate["instance"], certificate["deadlines"]["after"]
    rows, length = instance["requests"], Fraction(1)
    if isinstance(after, int):
        if not 0 <= after <= LARGEST_FIELD:
            raise Invalid("deadlines: needs a length of time")
        return [request.arrival + after for request in problem.requests]
    if not all("deadline" in row for row in rows):
        raise Invalid("deadlines: a request has none of its own")
    if problem.clock is not None:
        if "round_ms" not in instance:
            raise Invalid("deadlines: rounds have no length")
        length = Fraction(instance["round_ms"]) * 1_000_000
    own = (math.floor(row["deadline"] * length) for row in rows)
    return [request.arrival + most for request, most in zip(problem.requests, own, strict=True)]


def _most_in_time(
    problem: Problem, proof: dict[str, Any], due: list[int], work: Work, *, first: bool
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
    borders, prices, one = proof["times"], proof["numerators"], proof["denominator"]
    if one < 1 or min(prices, default=0) < 0 or len(prices) != max(len(borders) - 1, 0):
        raise Invalid("deadlines: needs a denominator, and between borders no negative price")
    if any(a >= b for a, b in pairwise(borders)):
        raise Invalid("deadlines: the borders of prices must ascend")
    memory, clock, chosen = problem.memory, problem.clock, sorted(set(proof.get("lines", [])))
    if clock is None and chosen:
        raise Invalid("deadlines: rounds have no lines")
    if clock is not None and not (chosen and all(0 <= i < len(clock.lines) for i in chosen)):
        raise Invalid("deadlines: needs lines of the model")
    if clock is not None and problem.chunks and len(chosen) > 1:
        raise Invalid("deadlines: several lines do not cover prompts in pieces")
    table = _TimePrices(borders, prices)
    total, misses = problem.workers * memory * table.paid[-1], 0
    for request, end in zip(problem.requests, due, strict=True):
        arrival, prompt, output = request
        brief = request._replace(output=1) if first else request
        if clock is None:
            alone, amount, top = brief.output, brief.output, prompt + brief.output
        else:
            (amount, _, alone), top = _part(memory, brief, clock, chosen), 1
        if arrival + alone > end:
            misses += 1
            continue
        left, right = table.cells(arrival, end + first * output)
        work.spend(90 * (right - left))
        if clock is None and not problem.pauses:  # a run goes on after its first token
            cost = table.of_run(request, arrival, end - brief.output)
        else:
            rate = 1 if clock is None else memory
            cost = table.of_cheapest(arrival, end, amount, top, int(clock is None), rate)
        total += max(0, one - cost)
    return min(total // one, len(due) - misses), misses


class _TimePrices:
    """Prices that are constant between borders, and 0 before the first and after the last."""

    def __init__(self, borders: list[int], prices: list[int]) -> None:
        # So that each time, none of which is negative, is in a cell.
        borders = borders or [0]
        early = [0] * (borders[0] > 0)
        self.borders, self.prices = [*early, *borders], [*early, *prices, 0]
        cells = [*zip(self.prices, pairwise(self.borders), strict=False)]
        self.paid = [*accumulate((p * (b - a) for p, (a, b) in cells), initial=0)]
        self.moments = [*accumulate((p * _sum_of_times(*cell) for p, cell in cells), initial=0)]

    def cells(self, begin: int, end: int) -> tuple[int, int]:
        """Return the range of the prices that the times begin + 1 .. end touch."""
        return bisect_right(self.borders, begin) - 1, bisect_left(self.borders, end)

    def sums(self, time: int) -> tuple[int, int]:
        """Return the sums of p_t and of t p_t up to a time."""
        cell = bisect_right(self.borders, time) - 1
        begin, price = self.borders[cell], self.prices[cell]
        paid = self.paid[cell] + price * (time - begin)
        return paid, self.moments[cell] + price * _sum_of_times(begin, time)

    def after(self, time: int) -> int:
        """Return the price of the time that follows."""
        return self.prices[bisect_right(self.borders, time) - 1]

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
        edges, cost = pairwise([begin, *self.borders[left + 1 : right], end]), 0
        for price, (first, last) in sorted(zip(self.prices[left:right], edges, strict=True)):
            most = rate * (last - first)
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
    problem: Problem, claim: dict[str, Any], lower: dict[str, Any] | None, work: Work
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
    there = _slow(problem, by, of)
    try:
        proved, how = _judged(there, proof, work)
    except Invalid as error:
        raise Invalid(f"slower: {str(error).removeprefix('lower: ')}") from None
    least, most, parts = proved, of * value, -(-1000 * by // of)
    if problem.clock is None:  # of the sums of completions
        late, early = ([r.arrival for r in own.requests] for own in (problem, there))
        first = min(late, default=0)
        least, most = by * (proved + sum(early)), of * (value + sum(late) - first * len(late))
    if least <= most:
        raise Invalid(f"slower: on a machine {_times(parts)} times slower the proof does not give "
                      f"more than {value:,}")  # fmt: skip
    return parts, value, how


def _slow(problem: Problem, by: int, of: int) -> Problem:
    """Return what is to be bounded of a machine by / of times slower, see `_slower`."""
    arrivals = [request.arrival for request in problem.requests]
    if problem.clock is not None:
        there = problem.arriving(of * arrival for arrival in arrivals)
        return replace(there, clock=problem.clock.slower(by))
    first = min(arrivals, default=0)
    return problem.arriving(of * (arrival - first) // by for arrival in arrivals)


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


def _report(certificate: dict[str, Any], work: Work | None = None) -> list[str]:
    """Check everything; say what was checked and what it proves."""
    work, problem = work or Work(), _problem(certificate)
    memory, many, clock = problem.memory, len(problem.requests), problem.clock
    instance, runs = certificate["instance"], certificate.get("policies", [])
    each = f" on each of {problem.workers:,} workers" * (problem.workers > 1)
    lines = [
        f"instance {_shown(instance.get('name', ''))}: {many:,} requests, memory {memory:,}{each}, "
        f"{certificate['hash']}"
    ]
    if problem.weights:
        lines.append("each latency counts as many times as the weight of its request says")
    if problem.after:
        lines.append(f"{len(problem.after):,} of the requests follow others, and latency counts "
                     "from their release")  # fmt: skip
    if problem.most is not None:
        lines.append(f"at most {problem.most:,} requests may be active together{each}")
    if (block := problem.block) > 1:
        lines.append(f"memory in {memory // block:,} whole blocks of {block:,} tokens")
    if clock is None:
        lines.append("checked in integers, from the instance alone:")
    else:
        lines += [clock.words(), "checked in integers of nanoseconds, from these alone:"]
    first = certificate.get("deadlines", {}).get("aim") == "first-token"
    sides = []
    for side in (*certificate.get("narrower", []), certificate):
        scope, upper, lower = side["scope"], side["upper"], side["lower"]
        if upper is not None:
            if used := _uncovered(upper, scope):
                raise Invalid(f"upper: has {used}, which its scope does not cover")
            peak, _ = _checked_run(problem, upper, "upper", work)
            lines.append(
                f"  upper {upper['value']:,}: its {_times_of(upper)} give it and hold {peak:,} "
                "tokens at most"
            )
        if lower is not None:
            proved, how = _judged(problem.within(scope), lower["proof"], work)
            if lower["value"] > proved:
                raise Invalid(f"lower: says {lower['value']:,}, the proof gives {proved:,}")
            if upper is not None and lower["value"] > upper["value"]:
                raise Invalid("lower is above upper: an error of the checker itself")
            lines.append(f"  lower {lower['value']:,}: its proof by {how} gives {proved:,}")
        sides.append((scope, upper and upper["value"], lower and lower["value"]))
    problem, scope = problem.within(certificate["scope"]), certificate["scope"]
    machines: list[tuple[int, int]] = []
    for claim in certificate.get("slower", []):
        parts, value, how = _slower(problem, claim, certificate["lower"], work)
        lines.append(
            f"  slower {_times(parts)}: its proof by {how} gives more than {value:,} on a machine "
            "so many times slower"
        )
        machines.append((parts, value))
    rows: dict[str, list[str]] = defaultdict(list)  # by the narrowest scope that covers a run
    beyond, reached = [], []
    for claim in runs:
        name, value, times = _shown(claim["policy"]), claim["value"], None
        if value is None:
            lines.append(f"  {name}: {claim['outcome']}, nothing is claimed")
        else:
            peak, times = _checked_run(problem, claim, name, work, first=first)
            lost = f" with {len(claim['lost']):,} evictions" if claim.get("lost") else ""
            lines.append(
                f"  {name} {value:,}: its {_times_of(claim)}{lost} give it and hold {peak:,} "
                "tokens at most"
            )
            among = [side for side in sides if not _uncovered(claim, side[0])]
            if among:
                own, *ends = among[0]
                rows[own].append(f"  {name} is {_ratio(value, *ends)}")
                rows[own] += _no_slower(name, value, machines) if among[-1] == sides[-1] else []
            else:
                used = _uncovered(claim, scope)
                beyond.append(f"  of {name} nothing: it has {used}, which the bounds do not cover")
        reached.append(times)
    in_time: list[str] = []
    if "deadlines" in certificate:
        checked, in_time = _in_time(certificate, problem, reached, work)
        lines.append(checked)
    lines.append("proved:")
    for own, upper, lower in sides:
        lines += _conclusions(many, upper, lower, clock, is_weighted=bool(problem.weights))
        if own == scope:
            lines += [] if upper is None else _no_slower("this schedule", upper, machines)
            rows[own] += [*beyond, *in_time]
        lines += rows[own]
        if lower is not None or (own == scope and (machines or in_time)):
            lines.append(COVERED_BY[own])
    if beyond or any(run["value"] is not None for run in runs):
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


def _conclusions(
    many: int, upper: int | None, lower: int | None, clock: object, *, is_weighted: bool
) -> list[str]:
    """Say what both sides prove; in seconds of mean latencies, rounded outward to microseconds."""
    latency = "total weighted latency" if is_weighted else "total latency"
    under, scale = "", max(many, 1) * 1000
    shown = [f"{value or 0:,}" for value in (upper, lower)]
    if clock is not None:
        latency, under = "mean latency", " s under this batch-time model"
        micros = -(-(upper or 0) // scale), (lower or 0) // scale
        shown = [f"{value / 1_000_000:,.6f}" for value in micros]
    found = []
    if lower is not None:
        a = "a " if clock else ""
        found.append(
            f"  no schedule of these {many:,} requests has {a}{latency} below {shown[1]}{under}"
        )
    if upper is not None:
        unit = " s" if clock else ""
        found.append(f"  a schedule of {latency} {shown[0]}{unit} is {_ratio(upper, None, lower)}")
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


def main() -> NoReturn:
    """Verify the file named on the command line."""
    parser = argparse.ArgumentParser("python -m kvopt.verify", description="Check a certificate.")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--budget", type=float, metavar="K", help="allow K times half a minute")
    given = parser.parse_args()
    try:
        verdict = verify(given.file, given.budget, functools.partial(print, file=sys.stderr))
    except ValueError as error:
        parser.error(str(error))
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
