"""Ceilings on how many requests attain a service level, and floors, against all schedules."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

import pytest
from brute_force import Due, Server, Triple, most_in_time
from certificates import prices_between
from definitions import cheapest_run, cheapest_times
from effort import many
from known import known
from msgspec import to_builtins
from strategies import batch_time, instance_of, timed_instance

from kvopt import BatchTime, Instance, Line, Request, Schedule, Scope, Slo, certify, generate, run
from kvopt.bounds.slo_ceiling import least_times, slo_ceiling, spans_of
from kvopt.heuristics.attaining.in_rounds import AttainingSets, attaining_in_rounds
from kvopt.heuristics.attaining.in_seconds import attaining_in_seconds
from kvopt.incumbent.in_time import attained_in
from kvopt.incumbent.proofs import PriceProof, SharedRoundsProof
from kvopt.problem.arrays import Floats
from kvopt.problem.clocks import Seconds
from kvopt.problem.slo import Levels
from kvopt.verify import check_slo as checked
from kvopt.verify.certified_problem import Clock, Problem
from kvopt.verify.certified_problem import Request as Plain
from kvopt.verify.check_prices import Costs, cells_of, cheapest_cost
from kvopt.verify.check_slo import most_in_time as checked_most
from kvopt.verify.step_budget import Invalid, Work

pytestmark = pytest.mark.usefixtures("processor_clock")

SCOPES = ("runs", "pauses", "chunks", "pauses+chunks")


class Case(NamedTuple):
    """A tiny problem on one of the clocks."""

    server: Server | None
    memory: int
    requests: list[Triple]
    due: list[Due]
    scope: str
    workers: int = 1

    @classmethod
    def drawn(cls, source: random.Random, most_requests: int = 3, workers: int = 1) -> Case:
        in_seconds, memory = source.random() < 0.5, source.randint(2, 7)
        lines = [(source.randint(1, 4), source.randint(0, 3)) for _ in range(source.randint(1, 2))]
        server = Server(lines, source.randint(0, 2), source.randint(0, 2))
        requests, slow = [], 3 if in_seconds else 1
        for _ in range(source.randint(1, most_requests)):
            output = source.randint(1, min(3, memory))
            prompt = source.randint(0, min(3, memory - output))
            requests.append((source.choice([0, source.randint(0, 6 * slow)]), prompt, output))
        limits = source.choice([*LIMITS])
        due = [drawn_due(source, limits, slow * slow, output) for _, _, output in requests]
        scope = source.choice(SCOPES)
        return cls(server if in_seconds else None, memory, requests, due, scope, workers)

    @property
    def model(self) -> BatchTime | None:
        return None if self.server is None else batch_time(self.server)

    @property
    def instance(self) -> Instance:
        made = timed_instance if self.server else instance_of
        return replace(made(self.memory, self.requests), workers=self.workers)

    def of_a_backlog(self) -> Case:
        """Return it with all requests there from the beginning."""
        requests = [(0, s, o) for _, s, o in self.requests]
        return self._replace(
            requests=requests, due=[due._replace(end=min(due.end, 12)) for due in self.due]
        )

    @property
    def most(self) -> int:
        return most_in_time(
            self.memory, self.requests, self.due, server=self.server, scope=self.scope,
            workers=self.workers,
        )  # fmt: skip

    @property
    def levels(self) -> Levels:
        return Levels(*([*column] for column in zip(*self.due, strict=True)))

    def bracket(self) -> tuple[int, int]:
        """Return how many attain in the best schedule found, and a ceiling."""
        instance, model = self.instance, self.model
        found = slo_ceiling(instance, self.levels, model, scope=Scope.parse(self.scope))
        return known(placed(instance, self.levels, found.costs, model)).count, found.value


LIMITS = ("e2e", "ttft", "ttft tpot", "tpot", "tpot e2e", "ttft tpot e2e")


def drawn_due(source: random.Random, limits: str, slow: int, output: int) -> Due:
    """Draw limits of a request."""
    first, pace = source.randint(1, 4 * slow), source.randint(1, 2 * slow)
    total = source.randint(1, 8 * slow)
    return Due(
        first if "ttft" in limits else inf,
        pace * (output - 1) if "tpot" in limits else inf,
        total if "e2e" in limits else inf,
    )


def placed(
    instance: Instance, levels: Levels, costs: Floats, model: BatchTime | None = None
) -> AttainingSets | None:
    """Search for a schedule."""
    spans = spans_of(levels, *least_times(instance, model), runs=model is None)
    if model is None:
        return attaining_in_rounds(instance, spans, costs)
    return attaining_in_seconds(instance, model, spans, costs)


def within(instance: Instance, **limits: int | str) -> Levels:
    """Return the limits of each request in rounds."""
    return Slo(**limits).levels(instance, rounds=True)


def judged(case: Case, proof: dict[str, Any]) -> tuple[int, int]:
    """Return what the checker makes of prices."""
    requests = [Plain(*triple) for triple in case.requests]
    clock = None if case.model is None else Clock.of(case.model.to_json())
    problem = Problem(case.memory, requests, case.workers, clock=clock).within(case.scope)
    return checked_most(problem, proof, [checked.Due(*due) for due in case.due], Work())


def drawn_prices(case: Case, source: random.Random) -> dict[str, Any]:
    """Return prices that are about what a ceiling needs, as a file has them."""
    last = max((int(due.end) for due in case.due if due.end < inf), default=12)
    borders = sorted({0, source.randint(0, last), last})
    prices = [source.choice((60, 60 + source.randint(-9, 9))) for _ in borders[1:]]
    size = source.randint(2, 12) * (3 * case.memory if case.server else 1)
    lines: Sequence[int] | None = None
    if case.server:
        lines = [0] if "chunks" in case.scope else range(len(case.server.lines))
    drawn = prices_between(borders, prices, 60 * size, lines)
    if lines:
        drawn["resources"][0]["reach"] = source.choice((0, source.randint(1, 12), last))
    return drawn


def drawn_shared(case: Case, source: random.Random) -> dict[str, Any]:
    """Return prices of shared rounds that are about what a ceiling needs, as a file has them."""
    lines, cell, one = known(case.model).lines, source.randint(1, 9), 64 * 840
    some = range(len(lines))
    rows = [
        [source.choice(some)] if "chunks" in case.scope else sorted(source.sample(some, k))
        for k in source.choices(range(1, len(lines) + 1), k=source.randint(1, 2))
    ]
    rows.sort(key=lambda row: -max(lines[line].round_ns for line in row))
    last = max(a for a, _, _ in case.requests) + source.randint(3, 25)
    prices = [
        [int(one * source.choice((0, 0.5, 1, source.random()))) for _ in range(-(-last // cell))]
        for _ in rows
    ]
    instance, chunks = case.instance, "chunks" in case.scope
    can = spans_of(case.levels, *least_times(instance, known(case.model), chunks=chunks))
    most = max(lines[line].round_ns for line in rows[0])
    fixed = [int(one * most * source.choice((0, 0.3, 1)) * source.random()) for _ in can]
    unit = one * source.randint(2, 30) * source.choice((1, 2))
    return {
        "kind": "shared-rounds", "rows": rows, "unit": unit, "cell": cell, "fixed": fixed,
        "slopes": [], "interference": [], "row_prices": prices,
    }  # fmt: skip


def test_costs_of_runs_are_those_of_the_definition() -> None:
    source = random.Random(3)
    for _ in range(many(400)):
        borders = sorted(source.sample(range(25), source.randint(2, 6)))
        prices = [source.randint(0, 9) for _ in borders[1:]]
        (tokens,) = prices_between(borders, prices, 1)["resources"]
        at_times = [0] * borders[0] + tokens["numerators"]
        request = Plain(source.randint(0, 12), source.randint(0, 5), source.randint(1, 9))
        begin, latest = request.arrival, request.arrival + source.randint(0, 20)
        last = min(latest, max(begin, borders[-1]))
        least = cheapest_run(dict(enumerate(at_times, 1)), request, last)
        assert Costs(0, at_times, 9, Work()).lowest(*request, latest=latest) == least
        cells = cells_of(tokens)
        end, top = latest + request.output, request.prompt + request.output
        for window, later in (
            ((begin, end, end), 0),
            ((begin, source.randint(begin + 1, end), end), request.output - 1),
        ):
            asked = (window, cells, request.output, later, top, 1, 1)
            assert cheapest_cost(*asked) == cheapest_times(*asked)


def test_several_workers_share_no_memory_and_one_ceiling() -> None:
    three = [Request(0, 2, 2)] * 1 + [Request(0, 2, 2, "b"), Request(0, 2, 2, "c")]
    one, two = (Instance(4, three, workers=m) for m in (1, 2))
    two_rounds = within(one, e2e=2)
    found = [slo_ceiling(each, two_rounds) for each in (one, two)]
    assert [ceiling.value for ceiling in found] == [1, 2]
    floor = known(placed(two, two_rounds, found[1].costs))
    assert (floor.count, sorted(floor.workers)[-1]) == (2, 1)


def test_sure_misses_are_those_that_are_late_alone() -> None:
    pair = instance_of(9, [(0, 1, 4), (3, 1, 2)])
    found = slo_ceiling(pair, Levels([inf] * 2, [inf] * 2, [3, 2]))
    assert (found.value, found.sure_misses) == (1, 1)
    assert least_times(pair, None) == ([1, 1], [4, 2])
    model = BatchTime([Line(10, 1)], kv_ns=2)
    assert least_times(pair, model)[0] == [10 + 2 + 4] * 2


def test_limits_and_arrivals_that_are_far_away_need_no_prices() -> None:
    far = instance_of(3, [(0, 1, 2), (2**52, 1, 2)])
    assert slo_ceiling(far, within(far, e2e=2**53 - 1)).value == 2
    assert slo_ceiling(instance_of(3, []), Levels([], [], [])).value == 0


def test_a_restart_counts_by_the_run_that_is_not_lost() -> None:
    """Of two that start at once one is evicted: its first token is lost, so one attains."""
    pair = [(0, 0, 2), (0, 0, 2)]
    instance = instance_of(2, pair)
    assert slo_ceiling(instance, within(instance, ttft=1)).value == 1
    assert most_in_time(2, pair, [Due(1)] * 2, scope="pauses") == 2
    paused = slo_ceiling(instance, within(instance, ttft=1), scope=Scope.PAUSES)
    assert paused.value == 2
    assert isinstance(paused.proof, PriceProof)


# ---- ceilings and floors of fleets, against all schedules of tiny ones


def fleets(count: int, seed: int) -> Iterator[Case]:
    """Yield fleets of which all schedules can be tried."""
    source = random.Random(seed)
    for _ in range(many(count)):
        case = Case.drawn(source, 4, source.randint(1, 3))
        if not case.server or sum(o for _, _, o in case.requests) <= 7:
            yield case


@pytest.mark.slow
def test_ceiling_and_floor_hold_the_most_of_all_fleets_between_them() -> None:
    exact = 0
    for case in fleets(60, 6):
        low, high = case.bracket()
        assert low <= case.most <= high, case
        exact += low == high
    assert exact > many(35)


@pytest.mark.slow
def test_no_prices_prove_less_than_fleets_reach() -> None:
    source, helped = random.Random(7), 0
    for drawn in fleets(2500, 9):
        case = drawn if source.random() < 0.2 else drawn.of_a_backlog()
        case = case._replace(memory=case.memory + source.choice((0, 0, 9)))
        value, misses = judged(case, drawn_prices(case, source))
        if value < len(case.requests) - misses:
            assert value >= case.most, case
            helped += 1
    assert helped > many(8)


@pytest.mark.slow
def test_no_prices_of_shared_rounds_prove_less_than_fleets_reach() -> None:
    source, helped = random.Random(8), 0
    for drawn in fleets(400, 10):
        case = drawn if source.random() < 0.4 else drawn.of_a_backlog()
        most = case.most if case.server else 0
        for _ in range(8 if case.server else 0):
            proof = drawn_shared(case, source)
            value, misses = judged(case, proof)
            assert value >= most, (case, proof)
            helped += value < len(case.requests) - misses
    assert helped > many(20)


def test_requests_pay_for_the_rounds_that_they_share() -> None:
    """A first token in 4 s and a token in 30 ms: prompts leave no time for so many rounds."""
    rows = [Request(0, 40, 200, arrival_seconds=n / 5) for n in range(60)]
    instance = Instance(10**6, rows)
    model = BatchTime([Line(20_000_000, 0), Line(0, 2_500_000)])
    levels = Slo(ttft="4s", tpot="30ms").levels(instance, rounds=False)
    found = slo_ceiling(instance, levels, model)
    assert isinstance(found.proof, SharedRoundsProof)
    assert found.value < 50
    clock = Clock.of(model.to_json())
    requests = [Plain(n * 200_000_000, 40, 200) for n in range(60)]
    dues = [checked.Due(*due) for due in zip(*levels, strict=True)]
    content = to_builtins(found.proof)
    for scope in ("runs", "pauses"):
        problem = Problem(10**6, requests, clock=clock).within(scope)
        assert checked_most(problem, content, dues, Work()) == (found.value, 0)
    spoiled = {
        "negative": {"fixed": [-1, *content["fixed"][1:]]},
        "each request": {"fixed": content["fixed"][1:]},
        "no such prices": {"slopes": [1] * 60},
        "a ceiling has no such": {"grown": [1] * 60},
        "lines of the model": {"rows": [[0], [7]]},
        "does not cover prompts in pieces": {},
    }
    for reason, change in spoiled.items():
        problem = Problem(10**6, requests, clock=clock).within("" if change else "chunks")
        with pytest.raises(Invalid, match=reason):
            checked_most(problem, {**content, **change}, dues, Work())


def test_requests_that_few_can_join_pay_for_rounds_by_their_prompts() -> None:
    """Prompts of 146 ms, 25 rounds of 7.2 ms, all within 3.2 s: no more than 20."""
    instance, model = (
        Instance(10**6, [Request(0, 2000, 25)] * 30),
        BatchTime([Line(7_200_000, 73_127)]),
    )
    levels = Slo(e2e="3200ms").levels(instance, rounds=False)
    found = slo_ceiling(instance, levels, model, scope=Scope.PAUSES_AND_CHUNKS)
    assert found.value == 20
    content = to_builtins(found.proof)
    (machine,) = content["resources"]
    dues = [checked.Due(*due) for due in zip(*levels, strict=True)]
    problem = Problem(10**6, [Plain(0, 2000, 25)] * 30, clock=Clock.of(model.to_json()))

    def proved(reach: int) -> int:
        proof = {**content, "resources": [{**machine, "reach": reach}]}
        return checked_most(problem.within("pauses+chunks"), proof, dues, Work())[0]

    assert proved(machine["reach"]) == 20
    # No request has a shorter reach, and pays.
    assert proved(machine["reach"] - 1) == 22
    with pytest.raises(Invalid, match="not negative"):
        proved(-1)


def test_prices_prove_no_less_with_longer_limits_or_more_machines() -> None:
    source = random.Random(11)
    for _ in range(many(300)):
        case = Case.drawn(source)
        prices = drawn_prices(case, source)
        value, misses = judged(case, prices)
        longer = [Due(*(limit + source.randint(0, 3) for limit in due)) for due in case.due]
        for wider in (case._replace(due=longer), case._replace(workers=case.workers + 1)):
            more, fewer = judged(wider, prices)
            assert more >= value, (case, wider, prices)
            assert fewer <= misses


@pytest.mark.parametrize("workers", [1, 3])
def test_schedules_in_rounds_fit_and_are_counted(workers: int) -> None:
    drawn = generate("conversation", 80, 500, seed=2, parameters={"per_second": 40})
    fleet = replace(drawn, workers=workers)
    levels = within(fleet, e2e=150)
    found = slo_ceiling(fleet, levels)
    floor = known(placed(fleet, levels, found.costs))
    schedule = Schedule(fleet, floor.starts, floor.workers)
    assert schedule.check().feasible
    arrivals, firsts, ends = schedule.arrivals, schedule.first_tokens, schedule.completions
    assert levels.attained(arrivals, firsts, ends) >= floor.count
    assert found.value - floor.count <= 4


def test_runs_in_seconds_fit_and_are_counted() -> None:
    drawn = generate("conversation", 80, 500, seed=2, parameters={"per_second": 40})
    fleet = replace(drawn, workers=3)
    clock = Seconds(BatchTime([Line(40_000_000, 100_000)]))
    made = certify(fleet, clock=clock, slo="ttft=3s,tpot=90ms,e2e=6s", only_slo=True, time_limit=1)
    assert made.in_time is not None
    best = known(made.in_time.best)
    assert best.violations() == []
    pairs = zip(best.arrivals, best.first_tokens, best.completions, fleet, strict=True)
    counted = sum(
        end - a <= 6 * 10**9
        and first - a <= 3 * 10**9
        and end - first <= 90_000_000 * (request.output - 1)
        for a, first, end, request in pairs
    )
    assert made.in_time.best_attained == counted
    assert made.in_time.ceiling - counted <= 12
    assert made.provenance["attained_by"] == "search for service levels"


def test_servers_that_process_prompts_in_pieces_keep_the_pace() -> None:
    """Prompts at once last up to 220 ms, in which others yield no token."""
    source = random.Random(1)
    rows = [
        Request(0, s, o, arrival_seconds=round(a, 3))
        for s, o, a in zip(
            (source.randint(500, 3000) for _ in range(150)),
            (source.randint(5, 40) for _ in range(150)),
            (source.uniform(0, 20) for _ in range(150)),
            strict=True,
        )
    ]
    clock = Seconds(BatchTime([Line(20_000_000, 15_000), Line(7_000_000, 73_000)], kv_ns=30))
    limits: dict[str, Any] = {"clock": clock, "slo": "ttft=2s,tpot=50ms", "only_slo": True}
    fleet = Instance(400_000, rows, workers=2)
    made = certify(fleet, scope="pauses+chunks", time_limit=4, **limits)
    assert known(made.in_time).best_attained == 150
    assert made.provenance["attained_by"].startswith("policy vllm-fcfs:budget=")
    alone = run(fleet, "slo", clock=clock, slo="ttft=2s,tpot=50ms")
    assert known(attained_in(alone, Slo(ttft="2s", tpot="50ms"))) < 150
