"""Check ceilings on the number of requests that attain their service levels."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from operator import itemgetter
from typing import Any, NamedTuple

from kvopt.verify.certified_problem import LARGEST_FIELD, Problem, relaxed
from kvopt.verify.check_prices import attaining_by_prices, cells_of, cheapest_cost, check_prices
from kvopt.verify.check_runs import Times, checked_run, uncovered
from kvopt.verify.check_seconds import lines_of, part_of
from kvopt.verify.check_shared_rounds import Attaining
from kvopt.verify.step_budget import Invalid, Work, paired, quoted, refuse

_UNITS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
"""Nanoseconds of the units of limits."""


class Due(NamedTuple):
    """Limits of a request: from arrival to its first and last token, and between the two."""

    first: float
    rest: float
    total: float

    def is_met(self, arrival: int, times: tuple[int, int]) -> bool:
        """Whether a request with first and last tokens at these times attains."""
        first, end = times
        in_time = first - arrival <= self.first and end - arrival <= self.total
        return in_time and end - first <= self.rest


def check_in_time(
    certificate: dict[str, Any], problem: Problem, reached: Sequence[Times | None], work: Work
) -> tuple[str, list[str]]:
    """Check the number of requests in time; return checked and proved claims.

    Request i attains if its first token is there ``ttft`` after its arrival, its last one ``e2e``
    after it, and the others take ``tpot`` each on average.  The runs ``reached`` these times.
    """
    claim, scope, work.part = certificate["slo"], certificate["scope"], "slo: "
    ceiling, best = claim["ceiling"], claim["best"]
    due = due_of(certificate, problem)
    wider, _, words = relaxed(problem, claim.get("relaxations", ()))
    if wider.block > 1 or wider.paths or wider.max_active is not None:
        raise Invalid("slo: prices need tokens, shares of prefixes, and no limit")
    proved, misses = most_in_time(wider, claim["proof"], due, work)
    if ceiling < proved:
        raise Invalid(f"slo: says at most {ceiling:,}, the proof gives {proved:,}")
    runs = certificate.get("policies", [])
    if len(claim["attained"]) != len(runs):
        raise Invalid("slo: needs a number, or null, for each policy")
    counted: list[tuple[str, Times | None, int | None]]
    counted = [*paired(map(itemgetter("policy"), runs), reached, claim["attained"])]
    if best is not None:
        used = uncovered(best, scope)
        refuse(used, f"slo: the best has {used}, which the scope does not cover")
        _, times = checked_run(problem, best, "slo", work)
        counted.append(("best in time", times, best["attained"]))
    arrivals = [request.arrival for request in problem.requests]
    for name, ends, attained in counted:
        met = None
        if ends is not None:
            met = sum(limits.is_met(*times) for limits, *times in paired(due, arrivals, ends))
        if attained != met:
            raise Invalid(f"slo: {quoted(name)} says {attained} attain, {met} do")
    if best and best["attained"] > ceiling:
        raise Invalid("slo: more attain than the ceiling, an error of the checker itself")
    limits = ",".join(f"{name}={limit}" for name, limit in claim["limits"].items())
    head = f"  at most {ceiling:,} of {len(due):,} requests can attain {limits}"
    head += f"; {misses:,} cannot even alone" if misses else ""
    if "ttft" in claim["limits"]:
        head += "; a first token that an eviction loses does not count"
    lines = [head, *([f"  a schedule does for {best['attained']:,}"] if best else [])]
    for run, attained in paired(runs, claim["attained"]):
        if attained is not None:
            used = uncovered(run, scope)
            beyond = f" with {used}, which the ceiling does not cover" if used else ""
            lines.append(f"  {quoted(run['policy'])} does for {attained:,}{beyond}")
    how = "prices" + f", with {words}," * bool(words)
    return f"  slo: the ceiling {ceiling:,}: its proof by {how} gives {proved:,}", lines


def due_of(certificate: dict[str, Any], problem: Problem) -> list[Due]:
    """Return the limits of each request on the clock; those of its own count rounds."""
    instance, limits = certificate["instance"], certificate["slo"]["limits"]
    rows, round_ms = instance["requests"], instance.get("round_ms")
    round_ns = None if round_ms is None else Fraction(round_ms) * 1_000_000
    refuse(not limits, "slo: needs a limit")

    def on_clock(limit: int | str) -> Fraction:
        match = re.fullmatch(r"([0-9]{1,16})(s|ms|us|ns)", str(limit))
        rounds = limit if isinstance(limit, int) else 0
        length = int(match[1]) * _UNITS[match[2]] if match else rounds
        refuse(not 1 <= length <= LARGEST_FIELD, "slo: needs lengths of time")
        if (match is None) == (problem.clock is None):
            return Fraction(length)
        if round_ns is None:
            raise Invalid("slo: rounds have no length")
        return length * round_ns if match is None else length / round_ns

    due = []
    for row, request in paired(rows, problem.requests):
        # A deadline is the old name of the limit of the whole time.
        fields = {**row, "e2e": row.get("e2e", row.get("deadline"))}
        taken = {
            name: fields.get(name) if limit == "own" else limit for name, limit in limits.items()
        }
        parts = {name: on_clock(limit) for name, limit in taken.items() if limit is not None}
        refuse(not parts, "slo: a request has no limit of its own")
        others = request.output - 1
        rest = math.floor(parts["tpot"] * others) if "tpot" in parts else math.inf
        rest = rest if others else 0  # the only token is the first one
        first, total = (
            math.floor(parts[name]) if name in parts else math.inf for name in ("ttft", "e2e")
        )
        due.append(Due(first, rest, total))
    return due


def most_in_time(
    problem: Problem, proof: dict[str, Any], due: list[Due], work: Work
) -> tuple[int, int]:
    """Return an upper bound on the requests that attain, and how many cannot even alone.

    A request that attains has its first token when that is due, and early enough for the time that
    the others take alone; and its last one when that is due, and its limit from the first on.

    *Rounds.*  Let a token held at time t cost p_t >= 0, and let g_i be the least that a run of
    request i costs if it attains.  On m workers a schedule holds at most m M tokens, so those that
    attain pay at most m M sum_t p_t together.  Each counts 1 <= max(0, 1 - g_i) + g_i.  So at most
    sum_i max(0, 1 - g_i) + m M sum_t p_t attain.  With pauses it costs at least its
    cheapest times, as many as it is active, one of them before its first token is due, with the
    largest holdings at the cheapest of them.

    *Seconds.*  Prices are of time of a machine.  Each worker serves requests at rates that sum to
    at most 1, each at most at 1, so m of them sell m times the prices; request i takes X_i, see
    `by_shares`, and Y_i of it in the rounds up to its first token, which is that of a request that
    produces one token.  It pays at least for the X_i cheapest nanoseconds, of which Y_i are before
    its first token is due.  Without a limit of the first token that is not asked.

    *Reach.*  Let i be the first to arrive of those requests that attain and are active in a round.
    All their prompts were processed on its machine after it arrived.  Beside these its time has the
    fixed parts f(0) of its own rounds, and its works after the first one.  What is left of the time
    until it is due is its reach, so if that is at most R, their works Y sum to R at most, and those
    of all with such a reach may pay f(0) Y / R in a round, in place of f(0) h / M.

    *Shared rounds.*  m workers sell m times the integral of prices of machine time.  By
    `by_shared_rounds` that is at least what all requests pay for their rounds and works, and one
    that attains has a round and its prompt before its first token is due, all rounds in its window.
    """
    is_shared, clock = proof["kind"] == "shared-rounds", problem.clock
    refuse(is_shared and clock is None, "slo: shared rounds are of a clock in seconds")
    chosen, reach = list[int](), 0
    if is_shared and clock is not None:
        chosen = [*range(len(clock.lines))]
        work.spend(40 * sum(map(len, proof["row_prices"])))
    else:
        check_prices(proof, "slo", in_rounds=clock is None)
    if not is_shared and clock is not None:
        chosen = lines_of(problem, proof["resources"][0]["lines"], "slo")
        reach = proof["resources"][0].get("reach", 0)
        refuse(reach < 0, "slo: a reach is not negative")
    work.spend(2 * len(due))
    can = [*_attainable(problem, due, chosen, reach)]
    requests, fresh = [problem.requests[row.place] for row in can], tuple(row.fresh for row in can)
    part = replace(problem, requests=requests, fresh=fresh, firsts=(), weights=())
    if is_shared:
        value = Attaining(part, proof, [(row.early, row.end) for row in can], work).counted()
    elif problem.pauses or clock is not None:
        value = _by_cheapest_times(part, proof, can, work)
    else:
        value = attaining_by_prices(part, proof, [row.early - 1 for row in can], work)
    return min(value, len(can)), len(due) - len(can)


class _Attainable(NamedTuple):
    """A request that attains alone: its place, and the prompt tokens that it surely processes.

    It takes an amount, of which no more than ``later`` is after its first token is due.  That token
    is due at ``early``, its last one at ``end``.
    """

    place: int
    fresh: int
    amount: int
    later: int
    early: float
    end: float


def _attainable(
    problem: Problem, due: list[Due], chosen: list[int], reach: int
) -> Iterator[_Attainable]:
    """Yield the requests that attain alone, with their rounds, or M times their machine time."""
    clock, memory = problem.clock, problem.memory
    done = problem.fresh or [request.prompt for request in problem.requests]
    for i, (request, limits, fresh) in enumerate(paired(problem.requests, due, done)):
        begun, soonest, amount, alone = 1, 1, request.output, request.output
        if clock is not None:
            brief = request._replace(output=1)
            fixed = (0, 0) if reach else None
            begun, _, soonest = part_of(memory, brief, clock, chosen, fresh, (), fixed)
            amount, _, alone = part_of(memory, request, clock, chosen, fresh, (), fixed)
            if reach:
                none, until = clock.line(0, chosen), min(limits.total, limits.first + limits.rest)
                left = until - none * request.output - (amount - begun) // memory
                share = none * (begun // memory) // reach if left <= reach else 0
                begun, amount = begun + memory * share, amount + memory * share * request.output
        rest = alone - soonest
        early = min(limits.first, limits.total - rest)
        if early >= soonest and limits.rest >= rest:
            end = request.arrival + min(limits.total, limits.first + limits.rest)
            later = amount - begun if limits.first < math.inf else amount
            yield _Attainable(i, fresh, amount, later, request.arrival + early, end)


def _by_cheapest_times(
    problem: Problem, proof: dict[str, Any], can: list[_Attainable], work: Work
) -> int:
    """Return how many attain if they are active at the cheapest times of their windows."""
    refuse(len(proof["resources"]) > 1, "slo: only prices of tokens cover pauses")
    unit, is_even = proof["denominator"], problem.clock is None
    cells = cells_of(proof["resources"][0])
    begins, ends = [begin for begin, _, _ in cells], [end for _, end, _ in cells]
    total = problem.used * problem.memory * sum((b - a) * price for a, b, price in cells[:-1])
    for request, row in paired(problem.requests, can):
        left, right = bisect_right(ends, request.arrival), bisect_left(begins, row.end)
        work.spend(90 * (right - left))
        shape = (request.prompt + request.output, 1, 1) if is_even else (1, 0, problem.memory)
        window = request.arrival, row.early, row.end
        cost = cheapest_cost(window, cells[left:right], row.amount, row.later, *shape)
        total += max(0, unit - cost)
    return int(total // unit)
