"""The simulator: worked cases, rules that bind every policy, outcomes, registration."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kvopt import (
    Instance,
    InvalidInput,
    Need,
    Outcome,
    Policy,
    PolicyFault,
    Prediction,
    PrefixPolicy,
    Request,
    View,
    check_online,
    run,
)
from kvopt.errors import Stopped
from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.simulate.policies import by_name
from kvopt.timetable.policy_run import PolicyRun
from kvopt.timetable.work_intervals import Lost

PLAIN = (
    "fcfs", "mc-sf", "mc-sf-total", "svf", "svf-1bit:threshold=3,short=2,long=5", "h-sf",
    "alpha-protect:alpha=0.2",
    "alpha-beta:alpha=0.2,beta=0.5", "a-max", "a-min", "a-l", "a-switch", "a-random",
    "mc-sf:pred=noise,eps=0.5", "a-min:intervals=relative,eps=0.5", "mc-sf:pred=mid",
)  # fmt: skip


CLOCKS: tuple[Clock, ...] = (ROUNDS, Seconds(BatchTime([Line(10**9, 0)])))

# ---- what binds every policy -------------------------------------------------------


@dataclass
class Clairvoyant(PrefixPolicy):
    """Serve the shortest or the longest first, as the sum of all outputs is even or odd."""

    name = "clairvoyant"

    def begin(self, view: View) -> None:
        super().begin(view)
        self._sign = (-1) ** sum(view.beliefs.output)

    def key(self, view: View, i: int) -> tuple[int, ...]:
        return (self._sign * view.beliefs.output[i],)


class Declared(Clairvoyant):
    needs = (Need.OUTPUTS, Need.ARRIVALS)


class ThroughTheLimit(Clairvoyant):
    """Read the instance that another method is given."""

    def begin(self, view: View) -> None:
        PrefixPolicy.begin(self, view)
        self._sign = (-1) ** self._instance.total_output

    def round_limit(self, instance: Instance) -> None:
        self._instance = instance


class ByNodes(PrefixPolicy):
    """Serve the shortest or the longest first, by what later arrivals share."""

    name = "by-nodes"

    def key(self, view: View, i: int) -> tuple[int, ...]:
        return ((-1) ** len(view._weights) * view.beliefs.output[i],)


class ByPrivateTokens(PrefixPolicy):
    """Prefer what shares little, without a word of it among the needs."""

    name = "by-private-tokens"

    def key(self, view: View, i: int) -> tuple[int, ...]:
        return (view.private[i],)


class FromTheQueue(Policy):
    """Start the shortest waiting requests one at a time, without a line of its own."""

    name = "from-the-queue"

    def admit(self, view: View) -> Iterable[int]:
        if not view.active and view.waiting:
            yield min(view.waiting, key=lambda i: (view.beliefs.output[i], i))


SOON_AND_LATER = Instance(9, [Request(0, 1, 5), Request(3, 1, 2), Request(9, 4, 5)])


def test_who_asks_for_what_has_not_arrived_is_refused_in_one_line() -> None:
    said = "clairvoyant: uses a number of a request that has not arrived: wait for arrived"
    with pytest.raises(PolicyFault, match=said) as caught:
        run(SOON_AND_LATER, Clairvoyant())
    assert "\n" not in str(caught.value)
    assert "write Need.ARRIVALS among its needs" in str(caught.value)
    assert run(SOON_AND_LATER, Declared()).outcome is Outcome.COMPLETED


USES: tuple[Callable[[Any], object], ...] = (
    int, hash, bool, list, lambda x: x + 1, lambda x: 2 * x, lambda x: x < 3,
)  # fmt: skip


def test_nothing_of_what_has_not_arrived_can_be_used() -> None:
    class Looking(Clairvoyant):
        def begin(self, view: View) -> None:
            PrefixPolicy.begin(self, view)
            for column in (view.arrivals, view.prompts, view.beliefs.lower, view.beliefs.upper):
                for use in USES:
                    with pytest.raises(PolicyFault):
                        use(column[2])
            with pytest.raises(PolicyFault):
                min(view.range)
            self._sign = 1

        def admit(self, view: View) -> Iterable[int]:
            arrived = [i for i, at in enumerate((0, 3, 9)) if at <= view.now]
            assert [view.prompts[i] for i in arrived] == [(1, 1, 4)[i] for i in arrived]
            assert [view.arrivals[i] for i in arrived] == [(0, 3, 9)[i] for i in arrived]
            return super().admit(view)

    assert run(SOON_AND_LATER, Looking()).outcome is Outcome.COMPLETED


@pytest.mark.parametrize("text", [*PLAIN, "patient", "paced", "lpm", "k-lpm:k=2"])
def test_policies_are_online(text: str) -> None:
    if text != "a-switch":
        check_online(text, tries=100)


@pytest.mark.parametrize(
    "policy", [Declared(), ThroughTheLimit(), ByNodes(), "a-switch", "svf-private"]
)
def test_who_knows_the_future_is_not_online(policy: Policy | str) -> None:
    with pytest.raises(PolicyFault, match="decides otherwise before round"):
        check_online(policy)


def test_later_sharing_is_hidden_unless_a_policy_needs_it() -> None:
    pair = [Request(0, 4, 1, prefix=["a"]), Request(0, 4, 1, prefix=["a"])]
    instance = Instance(9, pair, block_tokens=2)
    said = "tokens of a prompt that no other request shares: write Need.PREFIXES among its needs"
    with pytest.raises(PolicyFault, match=said):
        run(instance, ByPrivateTokens())


def test_a_view_has_the_waiting_requests() -> None:
    check_online(FromTheQueue(), tries=50)
    requests = [Request(0, 0, 4), Request(1, 0, 3), Request(2, 0, 1)]
    assert run(Instance(9, requests), FromTheQueue()).starts == (0, 5, 4)


def test_online_is_no_question_to_servers_and_to_what_fails() -> None:
    with pytest.raises(InvalidInput, match="is a server of its own"):
        check_online("vllm-fcfs")
    with pytest.raises(PolicyFault, match="has not arrived"):
        check_online(Clairvoyant())


@pytest.mark.parametrize("text", PLAIN)
def test_the_same_seed_gives_the_same_run(text: str) -> None:
    rng = random.Random(1)
    requests = [Request(rng.randint(0, 9), rng.randint(0, 3), rng.randint(1, 9)) for _ in range(40)]
    instance = Instance(20, requests)
    one, two = run(instance, text), run(instance, text)
    assert (one.starts, one.lost, one.outcome) == (two.starts, two.lost, two.outcome)


@pytest.mark.parametrize("clock", CLOCKS, ids=str)
@pytest.mark.parametrize("text", PLAIN)
def test_empty_instance_completes(text: str, clock: Clock) -> None:
    found = run(Instance(5, []), text, clock=clock)
    assert (found.objective, found.outcome, found.makespan) == (0, Outcome.COMPLETED, 0)


def test_far_apart_arrivals_cost_no_time() -> None:
    instance = Instance(5, [Request(k * 10**12, 1, 3) for k in range(50)])
    assert run(instance, "mc-sf").objective == 150


def test_long_outputs_cost_no_time() -> None:
    instance = Instance(10**12, [Request(0, 0, 10**11)] * 30)
    found = run(instance, "mc-sf")
    assert found.violations() == []
    assert found.objective is not None


# ---- livelock ----------------------------------------------------------------------


@pytest.mark.parametrize("clock", CLOCKS, ids=str)
def test_the_loop_of_alpha_protect_is_found_and_named(clock: Clock) -> None:
    """Two requests that both start and never both fit: v1's endless evictions."""
    instance = Instance(6, [Request(0, 0, 5), Request(0, 0, 5)])
    found = run(instance, "alpha-protect:alpha=0", clock=clock)
    assert found.outcome is Outcome.LIVELOCK
    assert (found.objective, found.completed, found.starts) == (None, 0, (None, None))
    assert found.evictions > 0
    shown = found.to_json()
    if not clock.is_even:
        assert (shown["objective_seconds"], shown["tokens_per_second"]) == (None, None)
    assert shown["latency"] == {"mean": None, "median": None, "p99": None}


@pytest.mark.parametrize("alpha", ["0", "1/10", "1/4"])
def test_mc_sf_loops_when_everyone_in_front_was_believed_too_short(alpha: str) -> None:
    """A request believed too short survives evictions, until the front of the line is all such.

    Three start together, outgrow the memory before one of them ends, and are in front again.
    """
    too_short = [Request(0, 1, 6, predicted=Prediction(2, 6))] * 3
    found = run(Instance(14, too_short), f"mc-sf:pred=lower,alpha={alpha}")
    assert found.outcome is Outcome.LIVELOCK
    assert found.starts == (None,) * 3
    # When one of the three ends in time, the others have room.
    ends = replace(too_short[0], output=3)
    found = run(Instance(14, [ends, *too_short[1:]]), f"mc-sf:pred=lower,alpha={alpha}")
    assert found.outcome is Outcome.COMPLETED


def test_a_random_loop_ends_at_its_round_limit() -> None:
    instance = Instance(6, [Request(0, 0, 5), Request(0, 0, 5)])
    found = run(instance, "alpha-beta:alpha=0,beta=1,rounds=40")
    assert found.outcome is Outcome.LIVELOCK
    assert found.note == "ended at its limit of 40 rounds"


@pytest.mark.parametrize("text", ["fcfs", "mc-sf", "svf-private", "h-sf", "lpm", "k-lpm:k=3"])
def test_every_loop_of_evictions_ends_when_a_state_repeats(text: str) -> None:
    """A policy that counts its starts for ever would never be in the same state again."""
    instance = Instance(9, [Request(0, 3, 4, predicted=Prediction(1, 4))] * 2)
    found = run(instance, f"{text}{',' if ':' in text else ':'}pred=lower")
    assert found.outcome is Outcome.LIVELOCK
    assert found.evictions <= 12
    assert found.note is not None
    assert re.fullmatch(r"repeats itself for ever from round \d+ on", found.note)


def test_a_livelock_without_evictions_has_a_reason_too() -> None:
    instance = Instance(10, [Request(0, 1, 2), Request(1, 9, 1)])
    found = run(instance, "mc-sf:alpha=0.5")
    assert found.note == "does not start the only waiting request, and nothing else happens"
    two = Instance(10, [Request(0, 9, 1)] * 2)
    found = run(two, "mc-sf:alpha=0.5")
    assert found.note == "does not start any of 2 requests, and nothing else happens"
    assert run(two, "mc-sf").note is None


# ---- policies of others ------------------------------------------------------------


@dataclass
class LastComeFirstServed(Policy):
    """Start the latest arrival as long as it fits alone."""

    name = "test-lcfs"
    source = "this test"
    rule: int = 1

    def begin(self, view: View) -> None:
        self.stack: list[int] = []

    def arrived(self, view: View, i: int) -> None:
        self.stack.append(i)

    def evicted(self, view: View, i: int, start: int) -> None:
        self.stack.append(i)

    def admit(self, view: View) -> Iterable[int]:
        if not view.active and self.stack:
            yield self.stack.pop()


@pytest.mark.usefixtures("own_things")
def test_policies_of_users_can_register() -> None:
    by_name.register(LastComeFirstServed)
    instance = Instance(5, [Request(0, 1, 2), Request(0, 1, 3)])
    assert run(instance, "test-lcfs:rule=2").starts == (3, 0)
    assert run(instance, LastComeFirstServed()).objective == 8


@dataclass
class WrongEviction(LastComeFirstServed):
    """Evicts what is not active."""

    def evict(self, view: View) -> Iterable[int]:
        return [0]


def test_what_is_not_active_cannot_be_evicted() -> None:
    with pytest.raises(PolicyFault, match="not active"):
        run(Instance(5, [Request(0, 3, 2), Request(0, 3, 2)]), WrongEviction())


@pytest.mark.parametrize("clock", CLOCKS, ids=str)
def test_a_run_stops_when_asked(clock: Clock) -> None:
    instance = Instance(5, [Request(0, 1, 2)])
    with pytest.raises(Stopped):
        run(instance, LastComeFirstServed(), clock=clock, should_stop=lambda: True)


# ---- the check of runs -------------------------------------------------------------

SOUND = PolicyRun(
    Instance(7, [Request(0, 1, 4), Request(1, 1, 3)]), (2, 1), lost=(Lost(0, 0, 1),), policy="x"
)


def test_a_sound_run_has_no_violation() -> None:
    assert SOUND.violations() == []
    assert SOUND.peak_memory == 7  # at time 4: 1 + 2 of the first, 1 + 3 of the second


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"starts": (2, 0)}, "starts at 0, arrives at 1"),
        ({"lost": (Lost(0, 0, 4),)}, "cannot lose"),
        ({"lost": (Lost(0, 3, 3),)}, "cannot lose"),
        ({"lost": (Lost(0, 3, 4),)}, "runs twice"),
        ({"starts": (1, 1)}, "8 tokens held"),
    ],
)
def test_what_breaks_a_rule_is_found(change: dict[str, object], words: str) -> None:
    broken = replace(SOUND, **change)  # type: ignore[arg-type]
    assert any(words in line for line in broken.violations())
