"""Slower machines: what is claimed of them is true, and what is not true is refused."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from brute_force import Server, Triple, optimum
from certificates import judged
from effort import FEW_STEPS, many
from known import known
from strategies import instance_of, plain, random_instances

from kvopt import BatchTime, Instance, InvalidInput, Line, Request, certify
from kvopt.certificates import (
    Certificate,
    building,
    read_certificate,
    write_certificate,
)
from kvopt.certificates.files import certificate_text
from kvopt.incumbent.proofs import SlowerBound, VolumeProof
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.slower import SlowRounds
from kvopt.search import attaining

pytestmark = pytest.mark.usefixtures("processor_clock")

PHIS = [Fraction(1), Fraction(1001, 1000), Fraction(7, 6), Fraction(3, 2), Fraction(12, 5)]
SERVER = Server([(20, 1), (12, 2), (0, 5)], 0, 1)
CLOCK = Seconds(BatchTime([Line(*line) for line in SERVER.lines], SERVER.kv_ns, SERVER.prompt_ns))


def slow_optimum(memory: int, requests: tuple[Triple, ...], phi: Fraction) -> Fraction:
    """Return the least total latency with rounds of length phi that begin at any time."""
    server = Server([(phi.numerator, 0)], 0, 0)
    timed = [(phi.denominator * a, s, o) for a, s, o in requests]
    return Fraction(optimum(memory, timed, server=server), phi.denominator)


def slow_optimum_in_seconds(instance: Instance, phi: Fraction) -> Fraction:
    lines = [(phi.numerator * fixed, phi.numerator * each) for fixed, each in SERVER.lines]
    server = Server(lines, phi.numerator * SERVER.prompt_ns, phi.numerator * SERVER.kv_ns)
    arrivals = CLOCK.arrivals(instance)
    timed = [
        (phi.denominator * a, r.prompt, r.output) for a, r in zip(arrivals, instance, strict=True)
    ]
    return Fraction(optimum(instance.memory, timed, server=server), phi.denominator)


def tiny(count: int, seed: int, most: int = 3) -> list[Instance]:
    """Return instances that the oracle of timed rounds can take, with arrivals."""
    found = random_instances(
        count, seed, most_requests=most, most_memory=7, most_output=3, last_arrival=7
    )
    return [instance for instance in found if len(instance)]


def timed(instance: Instance) -> Instance:
    """Return the instance with its rounds as so many times 9 ns."""
    requests = [Request(0, r.prompt, r.output, arrival_seconds=9e-9 * r.arrival) for r in instance]
    return Instance(instance.memory, requests)


class TestWhatABoundSays:
    """Bounds on the instance of a slower machine, against every schedule of that machine."""

    @pytest.mark.slow
    def test_rounds_that_begin_at_any_time(self) -> None:
        tight = 0
        for instance in tiny(many(60), 1):
            memory, requests = plain(instance)
            for phi in PHIS:
                slow = SlowRounds.of(instance, phi)
                least = optimum(*plain(slow.instance))
                there = slow_optimum(memory, requests, phi)
                assert least < slow.needed(math.ceil(there))  # what exists is possible
                # The formula: phi times the completions, less the arrivals.
                assert phi * (least + slow.early) - slow.late <= there
                tight += phi * (least + slow.early) - slow.late == there
        assert tight > many(40)

    def test_a_backlog_takes_phi_times_as_long(self) -> None:
        slow = SlowRounds.of(Instance(9, [Request(5, 1, o) for o in (3, 4, 5, 7)]), Fraction(3, 2))
        assert [request.arrival for request in slow.instance] == [0] * 4
        assert (slow.early, slow.late) == (0, 0)
        assert slow.needed(27) == 19  # 1.5 * 18 = 27

    def test_arrivals_in_rounds_of_phi(self) -> None:
        slow = SlowRounds.of(instance_of(9, [(4, 1, 1), (7, 1, 2), (10, 1, 3)]), Fraction(3, 2))
        assert [request.arrival for request in slow.instance] == [0, 2, 4]
        assert (slow.early, slow.late) == (6, 9)


class TestCertify:
    """The least factor, in both clocks."""

    @pytest.mark.slow
    def test_nothing_on_the_machine_is_as_good(self) -> None:
        source, compared = random.Random(4), 0
        for instance in tiny(many(12), 4):
            memory, requests = plain(instance)
            found = certify(instance, ["svf", "fcfs"], slower=True)
            for run in (None, *found.runs):
                value = found.objective if run is None else run.objective
                phi = found.slower_than(run)
                if phi is None:
                    continue
                compared += 1
                for more in (0, source.random(), 3):
                    slower = phi + Fraction(1, 1000) + Fraction(more).limit_denominator(50)
                    assert slow_optimum(memory, requests, slower) > known(value)
        assert compared > many(12)

    @pytest.mark.slow
    def test_nothing_on_the_machine_is_as_good_in_seconds(self) -> None:
        for instance in map(timed, tiny(many(10), 5)):
            found = certify(instance, ["svf", "fcfs"], clock=CLOCK, slower=True)
            for run in found.runs:
                phi = found.slower_than(run)
                for more in (Fraction(1, 1000), Fraction(1, 3), Fraction(2)):
                    slower = slow_optimum_in_seconds(instance, known(phi) + more)
                    assert slower > known(run.objective)

    @pytest.mark.parametrize("scope", ["pauses", "chunks", "pauses+chunks"])
    def test_what_a_scope_asks_for_is_verified(self, tmp_path: Path, scope: str) -> None:
        instance = instance_of(10, [(0, 0, 9), (4, 5, 1), (5, 5, 2), (9, 2, 5)])
        asked: dict[str, Any] = {
            "scope": scope,
            "slower": True,
            "params": FEW_STEPS,
            "time_limit": 0.5,
        }
        found = certify(instance, ["fcfs"], **asked)
        timely = certify(timed(instance), ["fcfs"], clock=CLOCK, **asked)
        for each in (found, timely):
            assert each.slower
            write_certificate(each, tmp_path / "some.cert.json")
            assert read_certificate(tmp_path / "some.cert.json").slower == each.slower

    def test_a_larger_value_needs_a_slower_machine(self) -> None:
        found = some_in_rounds()
        assert found.slower is not None
        assert [bound.phi for bound in found.slower] == sorted({b.phi for b in found.slower})
        assert [bound.value for bound in found.slower] == sorted({b.value for b in found.slower})
        best, worst = found.slower_than(), found.slower_than(found.runs[0])
        assert 1 < known(best) < known(worst)

    def test_on_a_backlog_it_is_value_by_bound(self, tmp_path: Path) -> None:
        backlog = instance_of(9, [(0, 1, o) for o in (3, 4, 5, 7)])
        found = certify(backlog, ["mc-sf"], slower=True)
        assert found.slower == ()
        assert found.slower_than() == 1
        assert found.slower_than(found.runs[0]) == Fraction(1038, 1000)  # 28 / 27, rounded up
        assert found.to_json()["policies"][0]["slower_than"] == 1.038
        write_certificate(found, tmp_path / "c")
        assert read_certificate(tmp_path / "c").slower_than() == 1

    @pytest.mark.parametrize("clock", [ROUNDS, CLOCK])
    @pytest.mark.parametrize("late", [0, 3])
    def test_what_is_not_asked_for_is_not_there(self, clock: Clock, late: int) -> None:
        instance = timed(instance_of(9, [(late, 1, 3), (0, 1, 4)]))
        found = certify(instance, ["fcfs"], clock=clock)
        assert found.slower is None
        assert found.slower_than(found.runs[0]) is None
        said = found.to_json()
        assert "slower_than" not in said
        assert "slower_than" not in said["policies"][0]
        assert "slower_than" not in found.to_dataframe()
        assert '"slower"' not in certificate_text(found)

    def test_whole_blocks_are_refused_by_name(self) -> None:
        with pytest.raises(InvalidInput, match="search for slower machines counts tokens"):
            certify(Instance(8, [Request(0, 1, 2)], block_size=2), slower=True)

    @pytest.mark.parametrize("scope", ["runs", "pauses", "chunks"])
    def test_clocks_that_count_from_1970(self, tmp_path: Path, scope: str) -> None:
        """Arrivals in nanoseconds, times 1000, leave 64 bits."""
        epoch = [Request(0, 1, 3, arrival_seconds=1764000000.0 + i / 100) for i in range(3)]
        rounds = Instance(8, [Request(0, 1, 2), Request(3 * 10**9, 1, 2)], round_ms=40)
        for instance in (Instance(8, epoch), rounds):
            found = certify(instance, ["svf"], clock=CLOCK, scope=scope, slower=True)
            assert found.slower
            assert not [note for note in found.notes if "failed" in note]
            write_certificate(found, tmp_path / "c")
            assert read_certificate(tmp_path / "c").slower == found.slower

    def test_a_failure_is_a_note_and_both_sides_are_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whatever fails there: both sides are known by then."""

        def fails(*_: object, **__: object) -> None:
            raise OverflowError("too\nlarge")

        instance = some_in_rounds().instance  # kept for other tests, so made before this fails
        monkeypatch.setattr(building, "slower_bounds", fails)
        monkeypatch.setattr(attaining, "deadline_ceiling", fails)
        found = certify(instance, ["fcfs"], deadline=9, slower=True)
        assert found.gap == 0
        assert (found.slower, found.in_time) == ((), None)
        for name in ("slower machines", "deadline"):
            assert f"{name}: failed, OverflowError: too\\nlarge" in found.notes
        write_certificate(found, tmp_path / "c")
        assert read_certificate(tmp_path / "c").objective == found.objective

    def test_without_requests_nothing_is_claimed(self) -> None:
        found = certify(Instance(9, []), ["fcfs"], slower=True)
        assert found.slower_than(found.runs[0]) is None

    def test_tables(self) -> None:
        found = some_in_rounds()
        phi = found.slower_than(found.runs[0])
        assert phi is not None
        assert f"{float(phi):.3f}" in found.to_latex()
        assert found.to_dataframe()["slower_than"].tolist() == [float(phi)]
        assert found.to_json()["slower_than"] == float(found.slower_than() or 0)


@cache
def some_in_rounds() -> Certificate:
    """Return a certificate with two slower machines."""
    triples = [(0, 0, 5), (1, 3, 2), (2, 1, 1), (3, 0, 3), (9, 2, 2)]
    return certify(instance_of(6, triples), ["fcfs"], slower=True, time_limit=60)


@cache
def some_in_seconds() -> Certificate:
    return certify(timed(some_in_rounds().instance), ["fcfs"], clock=CLOCK, slower=True)


CERTIFICATES = [some_in_rounds, some_in_seconds]


class TestVerify:
    """The checker evaluates every claim with integers of its own."""

    @pytest.mark.parametrize("some", CERTIFICATES)
    def test_what_it_says(self, tmp_path: Path, some: Any) -> None:
        found = some()
        verdict = judged(tmp_path / "c.json", certificate_text(found))
        assert verdict.valid, verdict.lines
        phi = found.worded_slower_than(found.runs[0])
        said = f"  as good as 'fcfs' on a machine more than {phi} times slower is impossible"
        assert said in verdict.lines
        best = f"  as good as this schedule on a machine more than {found.worded_slower_than()} "
        assert any(line.startswith(best) for line in verdict.lines)

    @pytest.mark.parametrize("some", CERTIFICATES)
    @pytest.mark.parametrize(
        ("place", "change"),
        [
            ("machine", lambda machine: [machine[1], machine[1]]),
            ("value", lambda value: 2 * value),
            ("proof", lambda _: None),
        ],
    )
    def test_a_forged_claim_is_invalid(
        self, tmp_path: Path, some: Any, place: str, change: Any
    ) -> None:
        content = json.loads(certificate_text(some()))
        row = content["slower"][-1]
        row[place] = change(row.get(place))
        if row[place] is None:  # prove nothing
            is_timed = content["clock"] != "rounds"
            nothing = [0] * len(content["instance"]["requests"])
            shares = {"kind": "shares", "lines": [0], "weights": nothing, "company": []}
            row[place] = shares if is_timed else {"kind": "volume"}
            row["value"] = content["policies"][0]["value"]
            row["machine"] = [1001, 1000]
        verdict = judged(tmp_path / "c.json", content)
        assert verdict.exit_status == 1
        assert "slower: " in verdict.lines[-1]

    @pytest.mark.parametrize("machine", [[], [2], [3, 2, 1], [1, 2], [2, 0], [2, -1], [-2, -1]])
    def test_what_is_no_machine(self, tmp_path: Path, machine: list[int]) -> None:
        content = json.loads(certificate_text(some_in_rounds()))
        content["slower"][0]["machine"] = machine
        verdict = judged(tmp_path / "c.json", content)
        assert verdict.exit_status == 1
        assert "P / Q times slower" in verdict.lines[-1]

    def test_a_claim_without_any_proof(self, tmp_path: Path) -> None:
        content = json.loads(certificate_text(some_in_rounds()))
        content["lower"] = None
        del content["slower"][0]
        content["slower"][0].pop("proof", None)
        assert "needs a proof" in judged(tmp_path / "c.json", content).lines[-1]

    def test_proofs_that_do_not_cover_the_scope(self, tmp_path: Path) -> None:
        content = json.loads(certificate_text(some_in_rounds()))
        steps = {"kind": "volume", "staircases": [[3]]}
        content |= {"scope": "pauses", "lower": None}
        content["slower"][0]["proof"] = steps
        assert "do not cover pauses" in judged(tmp_path / "c.json", content).lines[-1]

    def test_prices_of_the_bound_are_not_written_twice(self) -> None:
        found = some_in_rounds()
        own, volume = (
            replace(found, slower=(SlowerBound(Fraction(50), 60, proof),))
            for proof in (known(found.lower).proof, VolumeProof())
        )
        assert "proof" not in json.loads(certificate_text(own))["slower"][0]
        assert json.loads(certificate_text(volume))["slower"][0]["proof"] == {"kind": "volume"}
