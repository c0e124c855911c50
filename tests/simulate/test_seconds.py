"""Continuous time: against rounds of one length, against a literal server, and its own check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import pytest
from brute_force import Server
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from known import known
from literal import chen, jaillet
from literal.common import Job, Run, Timed
from strategies import instances, jobs_of

from kvopt import (
    BatchTime,
    Instance,
    InvalidInput,
    Line,
    Outcome,
    Problem,
    Request,
    View,
    compare,
    generate,
    run,
)
from kvopt.fleets import fleet_sizes
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.clocks import Seconds
from kvopt.problem.hardware.batch_time_files import DEFAULT_MODEL, batch_time
from kvopt.simulate.policies import Policy
from kvopt.timetable.policy_run import PolicyRun
from kvopt.timetable.waiting_times import summary
from kvopt.timetable.work_intervals import Lost

POLICIES = (
    "fcfs", "mc-sf", "mc-sf-total", "svf", "svf-1bit:threshold=3,short=2,long=5", "h-sf",
    "alpha-protect:alpha=0.2",
    "alpha-beta:alpha=0.2,beta=0.5", "sorted-f:phase1=exact", "sorted-f:phase1=dp",
    "sorted-f:phase1=swap", "sorted-f:phase1=quantile", "a-max", "a-min", "a-l", "a-switch",
    "a-random", "mc-sf:pred=noise,eps=0.5", "mc-sf:pred=noise,eps=0.5,alpha=0.2",
    "a-min:intervals=relative,eps=0.5", "sorted-f-a-min:intervals=relative,eps=0.5",
)  # fmt: skip

EVEN = BatchTime([Line(NANOSECONDS, 0)])
"""Rounds of one second."""


@st.composite
def models(draw: st.DrawFn) -> BatchTime:
    costs = st.integers(0, 5)
    lines = draw(st.lists(st.tuples(st.integers(0, 40), costs), min_size=1, max_size=3))
    return BatchTime([Line(max(a, 1), b) for a, b in lines], draw(costs), draw(costs))


@st.composite
def timed(draw: st.DrawFn) -> Instance:
    """Draw an instance whose arrivals are some nanoseconds apart."""
    bare = draw(instances())
    times = draw(st.lists(st.integers(0, 300), min_size=len(bare), max_size=len(bare)))
    requests = [
        replace(r, arrival=0, arrival_seconds=time / NANOSECONDS)
        for r, time in zip(bare, times, strict=True)
    ]
    return Instance(bare.memory, requests)


# ---- the model ---------------------------------------------------------------------


@given(models(), st.integers(1, 9), st.integers(0, 50), st.integers(0, 9))
def test_rounds_in_a_row_last_as_long_as_one_by_one(
    model: BatchTime, active: int, held: int, rounds: int
) -> None:
    singly = sum(model.round_ns(active, 0, held + k * active) for k in range(rounds))
    assert model.stretch_ns(active, held, rounds) == singly


@given(models(), st.integers(1, 9), st.integers(0, 50), st.integers(0, 50))
def test_no_round_is_shorter_than_the_least(
    model: BatchTime, active: int, prompts: int, more: int
) -> None:
    assert model.round_ns(active, prompts, prompts + active + more) >= model.least_ns > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([],), "lines"),
        (([Line(1, 1), (1, 1)],), "lines"),
        (([Line(1, 1)], -1), "kv_ns"),
        (([Line(1, 1)], 0, 1.5), "prompt_ns"),
    ],
)
def test_models_are_checked(arguments: tuple[object, ...], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        BatchTime(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("numbers", [(0, 0), (-1, 5), (5, True)])
def test_lines_are_checked(numbers: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput):
        Line(*numbers)


# ---- rounds of one length ----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("text", POLICIES)
@examples(12)
@given(instance=instances())
def test_rounds_of_one_second_are_rounds(text: str, instance: Instance) -> None:
    """The two clocks agree where every round takes a second and arrivals are whole seconds."""
    timed = [replace(r, arrival_seconds=float(r.arrival)) for r in instance]
    found = run(Instance(instance.memory, timed), text, clock=Seconds(EVEN))
    wanted = run(instance, text)
    assert found.outcome is wanted.outcome
    assert found.evictions == wanted.evictions
    if wanted.outcome is Outcome.LIVELOCK:  # where in the loop they stop may differ
        return
    assert found.start_times == tuple(
        None if start is None else start * NANOSECONDS for start in wanted.starts
    )
    assert found.objective == known(wanted.objective) * NANOSECONDS
    assert found.peak_memory == wanted.peak_memory
    assert found.makespan == wanted.makespan * NANOSECONDS
    assert found.memory_over_time() == wanted.memory_over_time()
    assert (found.throughput, found.rounds) == (wanted.throughput, wanted.rounds)
    for name in ("latencies", "times_to_first_token"):
        assert getattr(found, name) == [time * NANOSECONDS for time in getattr(wanted, name)]


# ---- transcriptions of policies, whose rounds last ------------------------------------


LITERAL: dict[str, Callable[[Sequence[Job], int], Run]] = {
    "mc-sf": jaillet.mc_sf,
    "fcfs": jaillet.fcfs,
    "svf": jaillet.svf,
    "h-sf": chen.h_sf,
    "alpha-protect:alpha=0.3": partial(jaillet.alpha_protect, alpha="0.3"),
}


@pytest.mark.slow
@pytest.mark.parametrize("text", LITERAL)
@examples(30)
@given(instance=timed(), model=models())
def test_a_server_that_counts_round_by_round_does_the_same(
    text: str, instance: Instance, model: BatchTime
) -> None:
    clock = Seconds(model)
    found, arrivals = run(instance, text, clock=clock), clock.arrivals(instance)
    jobs = [job._replace(arrival=a) for job, a in zip(jobs_of(instance), arrivals, strict=True)]
    server = Server([(e.round_ns, e.token_ns) for e in model.lines], model.prompt_ns, model.kv_ns)
    served = Timed(jobs, server.round_ns)
    expected = LITERAL[text](served, instance.memory)
    assert found.outcome == expected.outcome
    if found.outcome is Outcome.COMPLETED:
        assert [*found.start_times] == served.starts
        assert [*found.first_tokens] == served.first_tokens
        assert [*found.completions] == served.completions
        assert (found.evictions, found.peak_memory) == (expected.evictions, served.peak)


def test_times_are_those_computed_by_hand() -> None:
    """Prefill of 10 in the first round; the second request waits until it ends."""
    model = BatchTime([Line(40, 1), Line(10, 3)], kv_ns=2, prompt_ns=5)
    requests = [Request(0, 10, 2, arrival_seconds=100e-9), Request(0, 1, 1, arrival_seconds=150e-9)]
    found = run(Instance(100, requests), "fcfs", clock=Seconds(model))
    first = 100 + max(40 + 11, 10 + 33) + 5 * 10 + 2 * 11  # A + P = 11, P = 10, H = 11
    second = first + max(40 + 3, 10 + 9) + 5 * 1 + 2 * (12 + 2)
    assert found.start_times == (100, first)
    assert found.first_tokens == (first, second)
    assert found.completions == (second, second)
    assert found.objective == (second - 100) + (second - 150)
    assert found.rounds == 2
    assert found.throughput == pytest.approx(3 / (second * 1e-9))


def test_an_idle_server_begins_when_somebody_arrives() -> None:
    requests = [Request(0, 1, 2, arrival_seconds=t) for t in (0.0, 12.3456789, 100.5)]
    found = run(Instance(10, requests), "mc-sf", clock=Seconds(EVEN))
    assert found.start_times == (0, 12_345_678_900, 100_500_000_000)
    assert found.busy == 6 * NANOSECONDS
    seconds, held = found.memory_over_time()
    assert held[seconds.index(14.3456789) + 1] == 0  # idle from the end of the second


class Naps(Policy):
    """Start one request at a time, and only when woken three rounds after the last."""

    name = "naps"
    source = "none"
    needs = ()

    def begin(self, view: View) -> None:
        self.line: list[int] = []
        self.ready = 3

    def arrived(self, view: View, i: int) -> None:
        self.line.append(i)

    def admit(self, view: View) -> list[int]:
        if not self.line or view.active or view.now < self.ready:
            return []
        self.ready = view.now + 3
        return [self.line.pop(0)]

    def wake(self, view: View) -> int | None:
        return self.ready if self.line else None


def test_a_policy_that_sleeps_while_nothing_runs_is_woken() -> None:
    found = run(Instance(10, [Request(0, 1, 1)] * 3), Naps(), clock=Seconds(EVEN))
    assert found.outcome is Outcome.COMPLETED
    assert found.start_times == (3 * NANOSECONDS, 6 * NANOSECONDS, 9 * NANOSECONDS)


# ---- outcomes ----------------------------------------------------------------------


def test_hindsight_is_for_a_backlog_only() -> None:
    backlog = Instance(9, [Request(0, 1, 3), Request(0, 1, 4)])
    assert run(backlog, "sorted-lp:hindsight=1", clock=Seconds(EVEN)).completed == 2
    later = Instance(9, [Request(0, 1, 3, arrival_seconds=1)])
    with pytest.raises(InvalidInput, match="backlog"):
        run(later, "sorted-lp:hindsight=1", clock=Seconds(EVEN))


def test_arrivals_without_seconds_are_refused() -> None:
    with pytest.raises(InvalidInput, match="round_ms"):
        run(Instance(9, [Request(3, 1, 3)]), "fcfs", clock=Seconds(EVEN))
    found = run(Instance(9, [Request(3, 1, 3)], round_ms=0.5), "fcfs", clock=Seconds(EVEN))
    assert found.arrivals == (1_500_000,)


def test_the_stand_ins_arrive_in_seconds() -> None:
    instance = generate("conversation", n=400, parameters={"per_second": 50})
    last = instance.requests[-1]
    assert last.arrival_seconds == pytest.approx(400 / 50, rel=0.2)
    for r in instance:
        assert (r.arrival - 1) * 0.05 < known(r.arrival_seconds) <= r.arrival * 0.05 + 1e-9
    assert run(instance, "svf", clock=Seconds(EVEN)).completed == 400


@given(st.lists(st.integers(0, 99), min_size=1, max_size=300))
def test_percentiles_are_values_that_so_many_do_not_exceed(values: list[int]) -> None:
    found = summary(values)
    for key, share in (("median", Fraction(1, 2)), ("p99", Fraction(99, 100))):
        value = known(found[key])
        whole = round(value * NANOSECONDS)
        assert whole in values
        assert sum(v <= whole for v in values) >= share * len(values)
        assert sum(v < whole for v in values) < share * len(values)


# ---- its own check -----------------------------------------------------------------


def arriving(made: PolicyRun, i: int, time: int) -> Instance:
    """Return the instance of a run with another arrival of a request, in nanoseconds."""
    requests = list(made.instance)
    requests[i] = replace(requests[i], arrival_seconds=time / NANOSECONDS)
    return Instance(made.instance.memory, requests)


def good_run() -> PolicyRun:
    requests = [Request(0, 2, 3, arrival_seconds=t) for t in (0.0, 0.5, 30.0)]
    return run(Instance(10, requests), "fcfs", clock=Seconds(EVEN))


def test_the_check_sees_what_is_wrong() -> None:
    found = good_run()
    assert found.violations() == []
    start = found.start_times[1] or 0
    assert replace(found, instance=arriving(found, 1, start)).violations() == []
    early = replace(found, instance=arriving(found, 1, start + 1))
    assert f"starts at {start} ns, arrives at {start + 1} ns" in early.violations()[0]
    tight = Instance(8, found.instance.requests)
    assert "tokens held" in replace(found, instance=tight).violations()[0]
    resumed = dict.fromkeys(found.resumed[0], 0)
    said = replace(found, resumed=[resumed]).violations()
    assert any("begins before" in line for line in said)
    assert any("starts at" in line for line in said)
    twice = (Lost(0, 1, 2),)
    assert any("runs twice" in line for line in replace(found, lost=twice).violations())


def test_problems_and_words_name_the_clock() -> None:
    """`run`, `compare` and `fleet_sizes` take what `solve` takes."""
    instance, seconds = generate("arrival-1", 6, seed=1), Seconds(batch_time(DEFAULT_MODEL))
    latency = run(instance, "svf", clock=seconds).objective
    problem = Problem(instance, seconds)
    for same in run(problem, "svf"), run(instance, "svf", clock="seconds"):
        assert (same.clock, same.objective) == (seconds, latency)
    (compared,) = compare(problem, ["svf"])
    assert compared.objective == latency
    found = fleet_sizes(problem, "mean=1000s", policies=["svf"], counts=[1], time_limit=1)
    assert latency in found.bands[0].runs.values()
