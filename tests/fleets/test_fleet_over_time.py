"""Machines over time: no claim is beaten by any schedule of tiny fleets, and what is refused."""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from brute_force import Due, Triple, fleets_over_time, most_in_time
from effort import processor_time
from known import known
from strategies import SERVERS, batch_time, timed_instance

from kvopt import (
    BatchTime,
    Certificate,
    Instance,
    InvalidInput,
    Line,
    Request,
    Slo,
    certify,
    generate,
    read_certificate,
    verify,
    write_certificate,
)
from kvopt.bounds.machine_time_bound import machine_time_bound
from kvopt.certificates.certificate_files import certificate_text
from kvopt.fleets import FleetOverTime, fleet_over_time, fleet_sizes
from kvopt.fleets.scaling import lower_counts
from kvopt.fleets.trace_windows import Trial, Windows
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope
from kvopt.simulate.run_policy import run
from kvopt.timetable.schedule import Schedule
from kvopt.verify import verify_text

pytestmark = pytest.mark.usefixtures("processor_clock")

CHAT = generate("conversation", 80, 500, seed=1, parameters={"per_second": 0.5})
TEN = Instance(2, [Request(0, 1, 1)] * 10)
"""Ten requests at once, which a machine serves one after the other."""


def drawn(source: random.Random) -> tuple[int, list[Triple], Slo, int]:
    """Draw two or three requests, limits that all can keep alone, and the length of a window."""
    memory, length = source.randint(3, 6), source.randint(3, 5)
    rows = []
    for _ in range(source.randint(2, 3)):
        output = source.randint(1, 3)
        rows.append((source.randint(0, 2 * length - 1), source.randint(0, memory - output), output))
    rows.sort()
    kinds = {"ttft": source.randint(1, 3), "e2e": source.randint(3, 5)}
    chosen = source.choice([("ttft",), ("e2e",), ("ttft", "e2e")])
    return memory, rows, Slo(**{name: kinds[name] for name in chosen}), length


def dues(slo: Slo, rows: Sequence[Triple]) -> list[Due]:
    plain = Instance(99, [Request(*row) for row in rows])
    levels = slo.levels(plain, rounds=True)
    return [Due(*limits) for limits in zip(*levels, strict=True)]


def assert_no_fleet_is_below(
    found: FleetOverTime, fleets: list[tuple[tuple[int, ...], int]]
) -> None:
    """Compare claims with all numbers of machines that some schedule does with."""
    for k, window in enumerate(found.windows):
        assert known(window.proved) <= min(counts[k] for counts, _ in fleets)
    assert found.machine_time <= found.proved <= min(time for _, time in fleets)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_schedule_has_fewer_machines(seed: int) -> None:
    source, exact = random.Random(seed), 0
    for _ in range(15):
        memory, rows, slo, length = drawn(source)
        instance = Instance(memory, [Request(*row) for row in rows])
        share = source.choice(["100%", "50%"])
        found = fleet_over_time(instance, length, attain=share, slo=slo, time_limit=0.2)
        misses = [window.allowed for window in found.windows]
        begin = found.windows[0].begin
        moved = [(a - begin, s, o) for a, s, o in rows]
        fleets = [*fleets_over_time(memory, moved, dues(slo, rows), length, misses)]
        assert_no_fleet_is_below(found, fleets)
        least = min(sum(counts) for counts, _ in fleets)
        exact += least == sum(window.proved or 0 for window in found.windows)
    assert exact >= 5


@pytest.mark.slow
def test_no_schedule_in_seconds_has_fewer_machines() -> None:
    """Two windows so far apart that each is a fleet of its own."""
    source, exact = random.Random(3), 0
    for server in SERVERS[2:5] * 4:
        memory, limit = source.randint(3, 8), source.randint(40, 90)
        outputs = [[source.randint(1, 3) for _ in range(source.randint(1, 3))] for _ in range(2)]
        parts = [
            [(source.randint(0, 30), source.randint(0, memory - o), o) for o in row]
            for row in outputs
        ]
        rows = [(a + 10_000 * k, s, o) for k, part in enumerate(parts) for a, s, o in part]
        found = fleet_over_time(
            timed_instance(memory, rows), "0.01ms", attain="60%", slo=f"e2e={limit}ns",
            clock=Seconds(batch_time(server)), time_limit=0.2,
        )  # fmt: skip
        for window, part in zip(found.windows, parts, strict=True):
            least = next(
                m for m in range(len(part) + 1)
                if m == len(part) or len(part) - window.allowed
                <= (m and most_in_time(memory, part, [limit] * len(part), workers=m, server=server))
            )  # fmt: skip
            assert window.proved is not None
            assert window.proved <= least
            assert known(window.sufficient) >= least
            exact += window.proved == least
    assert exact >= 12


def test_the_formula_of_planners_is_no_bound() -> None:
    """Ten at once, one a round, all due after ten: it makes ten machines, and one is enough."""
    found = fleet_sizes(TEN, attain="100%", slo="e2e=10", time_limit=1)
    assert (found.formula, found.machines) == (10, (1, 1))
    assert "formula of planners makes 10 machines, and proves nothing" in found.answer
    (window,) = fleet_over_time(TEN, 1, attain="100%", slo="e2e=10", time_limit=1).windows
    assert (window.formula, window.sufficient, window.misses, window.drained) == (10, 1, 0, 9)


def test_the_formula_may_be_too_few() -> None:
    """Two at once, due at once, in a window of four: it makes one machine, and two are needed."""
    both = Instance(2, [Request(0, 1, 1)] * 2)
    found = fleet_over_time(both, 4, attain="100%", slo="e2e=1", time_limit=1)
    (window,) = found.windows
    assert (window.formula, window.proved, window.sufficient) == (1, 2, 2)
    assert (found.formula, found.proved, found.sufficient) == (4, 8, 8)
    assert found.formula_misses == 1
    assert "1 window would miss with it" in found.answer


def test_only_what_is_due_inside_a_window_counts_there() -> None:
    requests = [Request(0, 1, 2), Request(4, 1, 4), Request(6, 1, 2), Request(7, 1, 3)]
    windows = Windows(Problem(Instance(9, requests), slo=Slo(ttft=2, e2e=4)), 8, "100%")
    part = known(windows.due_inside(0))
    kept = {request.id: request.output for request in part.instance}
    # The second one is due at 8, the end; the third has its first token there, the last not.
    assert kept == {"r0": 2, "r1": 4, "r2": 1}
    alone = Windows(Problem(Instance(9, requests[3:]), slo=Slo(ttft=2, e2e=4)), 8, "100%")
    assert alone.due_inside(0) is None


def test_a_block_of_an_earlier_window_need_not_be_computed_again() -> None:
    shared = [Request(t, 6, 1, prefix=("a",)) for t in (0, 8)]
    windows = Windows(Problem(Instance(9, shared, block_tokens=4), slo=Slo(e2e=4)), 8, "100%")
    for k in range(2):
        part = known(windows.due_inside(k))
        assert [(r.prompt, r.prefix) for r in part.instance] == [(2, ())]
        assert str(part.scope) == "runs"


def test_a_machine_that_is_switched_off_finishes_what_it_has_and_counts_until_then() -> None:
    requests = [Request(0, 1, 6), Request(1, 1, 6), Request(4, 1, 1)]
    windows = Windows(Problem(Instance(7, requests), slo=Slo(e2e=9)), 4, "100%")
    schedule = windows.simulated("fcfs", "round-robin", (2, 1))
    trial = windows.trial((2, 1), schedule)
    assert isinstance(schedule, Schedule)
    assert schedule.workers == (0, 1, 0)
    assert schedule.completions == (6, 7, 7)
    # The first machine is on in both windows; the second one works from 4 to 7.
    assert trial == Trial((2, 1), (0, 0), (0, 3))
    # After the last window all that still works counts.
    short = Windows(windows.problem, 5, "100%")
    trial = short.trial((2,), short.simulated("fcfs", "round-robin", (2,)))
    assert trial == Trial((2,), (0,), (2 + 2,))


def test_a_machine_takes_requests_after_its_start_up_time() -> None:
    requests = [Request(t, 1, 1) for t in (0, 7, 8, 9, 10, 12)]
    windows = Windows(Problem(Instance(7, requests), slo=Slo(e2e=9)), 4, "100%", start_up=2)
    # The border at 8 switches on two more, the one at 12 a fourth.
    assert windows.taking((1, 1, 3, 4)) == [1, 1, 1, 1, 3, 3]
    assert windows.taking((3, 2, 1, 1)) == [3, 2, 1, 1, 1, 1]
    assert windows.floors == [1, 1, 1, 1]
    late = Windows(Problem(Instance(7, requests[:1] + requests[3:5]), slo=Slo(e2e=9)), 4, "100%", 2)
    assert late.floors == [1, 1, 1]
    assert replace(late, start_up=0).floors == [1, 0, 1]


def test_a_start_up_time_is_of_the_upper_side_alone() -> None:
    options = {"attain": "90%", "slo": "e2e=200", "time_limit": 0.2}
    plain, slow = (fleet_over_time(CHAT, 500, start_up=s, **options) for s in (None, 150))  # type: ignore[arg-type]
    assert [w.proved for w in plain.windows] == [w.proved for w in slow.windows]
    assert known(plain.sufficient) <= known(slow.sufficient)


def test_what_suffices_is_counted_from_the_schedule() -> None:
    found = fleet_over_time(CHAT, 1000, attain="90%", slo="ttft=40,e2e=200", time_limit=0.2)
    counts = [window.sufficient or 0 for window in found.windows]
    schedule = found.problem.simulated("slo", "least-requests", counts)
    assert found.problem.trial(counts, schedule) is not None
    assert isinstance(schedule, Schedule)
    assert schedule.check().feasible
    for k, window in enumerate(found.windows):
        missed = arrived = 0
        for i, request in enumerate(CHAT):
            if request.arrival // 1000 == k:
                arrived += 1
                first = schedule.first_tokens[i] - request.arrival
                missed += first > 40 or schedule.completions[i] - request.arrival > 200
        assert (arrived, missed) == (window.arrivals, window.misses)
        assert missed <= window.allowed
        assert (window.proved or 0) <= (window.sufficient or 0)
        assert (schedule.workers[i] or 0) < max(counts)


def test_one_window_is_a_fleet_that_does_not_change() -> None:
    whole = CHAT.last_arrival + 2000
    found = fleet_over_time(CHAT, whole, attain="90%", slo="e2e=200", time_limit=1)
    (window,) = found.windows
    plain = fleet_sizes(
        CHAT, attain="90%", slo="e2e=200", time_limit=1,
        policies=["slo"], routers=["least-requests"],
    )  # fmt: skip
    assert window.proved == plain.machines[0]
    assert window.sufficient == plain.needs["least-requests + slo"]
    alone = run(
        replace(CHAT, workers=window.sufficient or 1), "slo", router="least-requests", slo="e2e=200"
    )
    levels = Slo(e2e=200).levels(CHAT, rounds=True)
    attained = levels.attained(alone.arrivals, alone.first_tokens, alone.completions)
    assert window.misses == len(CHAT) - attained


def test_looser_limits_and_smaller_shares_need_no_more() -> None:
    """Of requests at once two fit into a machine in each round."""
    bursts = Instance(6, [Request(t, 2, 1) for t in [0] * 12 + [8] * 6])
    found = [
        fleet_over_time(bursts, 8, attain=share, slo=slo, time_limit=1)
        for share, slo in (("100%", "e2e=1"), ("100%", "e2e=2"), ("50%", "e2e=2"))
    ]
    assert [[w.proved for w in each.windows] for each in found] == [[6, 3], [3, 2], [2, 1]]
    assert [[w.sufficient for w in each.windows] for each in found] == [[6, 3], [3, 2], [2, 1]]


def machine_time(rows: Instance, every: int, misses: list[int], clock: Clock = ROUNDS) -> int:
    """Return the bound, which the checker takes, and not one more."""
    problem = Problem(rows, clock)
    found = machine_time_bound(problem, every, misses)
    options = {"clock": clock, "scope": problem.scope, "machine_time": found}
    whole = Certificate(rows, None, None, **options)  # type: ignore[arg-type]
    assert verify_text(certificate_text(whole)).valid
    more = replace(whole, machine_time=replace(found, value=found.value + 1))
    assert "machine_time: says" in verify_text(certificate_text(more)).lines[-1]
    return found.value


def test_machine_time_leaves_out_the_largest_that_may_miss() -> None:
    rows = Instance(4, [Request(0, 2, 2), Request(0, 1, 1), Request(9, 2, 2)])  # volumes 7, 2, 7
    assert machine_time(rows, 9, [0, 0]) == 4
    assert machine_time(rows, 9, [1, 0]) == 3
    assert machine_time(rows, 10, [2]) == 1
    # Seconds: a lone request takes o rounds of 10, charged by the tokens that it holds of 4.
    clock = Seconds(BatchTime([Line(10, 0)]))
    assert machine_time(Instance(4, [Request(0, 1, 1)]), 9, [0], clock) == 5
    shared = [Request(0, 6, 2, prefix=("a",)), Request(0, 5, 1, prefix=("a",))]
    assert machine_time(Instance(10, shared, block_tokens=4), 9, [0]) == 2


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"every": 0}, "needs a length"),
        ({"misses": [-1]}, "no negatives"),
        ({"misses": [0, 0]}, "needs misses by window"),
        ({"lines": [2]}, "needs lines of the model"),
        ({"lines": [0, 1]}, "do not cover prompts in pieces"),
    ],
)
def test_a_machine_time_that_means_nothing_is_refused(
    changed: dict[str, object], reason: str
) -> None:
    clock = Seconds(BatchTime([Line(9, 1), Line(0, 5)]))
    problem = Problem(TEN, clock, Scope.CHUNKS)
    found = machine_time_bound(problem, 10, [0])
    options = {"clock": clock, "scope": problem.scope, "machine_time": found}
    text = certificate_text(Certificate(TEN, None, None, **options))  # type: ignore[arg-type]
    assert verify_text(text).valid
    content = json.loads(text)
    content["machine_time"].update(changed)
    assert reason in verify_text(json.dumps(content)).lines[-1]


@pytest.mark.slow
def test_seconds_write_certificates_and_continue(tmp_path: Path) -> None:
    clock = Seconds(BatchTime([Line(40_000_000, 0)], kv_ns=10_000))
    bursts = [Request(0, 200, 5, arrival_seconds=t) for t in [0] * 24 + [8] + [30] * 12]
    chat = Instance(500, bursts)
    options = {"attain": "90%", "slo": "ttft=300ms,tpot=60ms", "clock": clock, "time_limit": 0.5}
    found = fleet_over_time(chat, "20s", out=tmp_path, **options)  # type: ignore[arg-type]
    needing = [k for k, w in enumerate(found.windows, 1) if (w.proved or 0) > 1]
    names = {path.name for path in tmp_path.iterdir()}
    assert verify(tmp_path / "machine-time.cert.json").valid
    assert names == {
        "every.json",
        "machine-time.cert.json",
        *(f"window-{k}.cert.json" for k in needing),
    }
    assert needing
    for k in needing:
        path = tmp_path / f"window-{k}.cert.json"
        assert verify(path).valid
        content = json.loads(path.read_text())
        assert content["instance"].get("workers", 1) == (found.windows[k - 1].proved or 0) - 1
    again = fleet_over_time(chat, "20s", out=tmp_path, **options)  # type: ignore[arg-type]
    assert again.to_json() == found.to_json()
    with pytest.raises(InvalidInput, match="another attain"):
        fleet_over_time(chat, "20s", out=tmp_path, **{**options, "attain": "95%"})  # type: ignore[arg-type]
    other = Seconds(BatchTime([Line(40_000_001, 0)], kv_ns=10_000))
    with pytest.raises(InvalidInput, match="another clock"):
        fleet_over_time(chat, "20s", out=tmp_path, **{**options, "clock": other})  # type: ignore[arg-type]
    # A certificate that is gone, or of fewer machines, is not believed.
    (tmp_path / f"window-{needing[0]}.cert.json").unlink()
    stored = json.loads((tmp_path / "every.json").read_text())
    stored["windows"][needing[0] - 1]["proved"] += 7
    (tmp_path / "every.json").write_text(json.dumps(stored))
    assert fleet_over_time(chat, "20s", out=tmp_path, **options).windows == found.windows  # type: ignore[arg-type]


SHARED = [Request(t, 6, 1, prefix=("a",)) for t in [0] * 8 + [9] * 5]
CLAIMS = {
    "rounds": (
        Instance(6, [Request(t, 2, 1) for t in [0] * 12 + [7] + [8] * 6]),
        ROUNDS,
        8,
        "e2e=2",
    ),
    "seconds": (
        Instance(
            500,
            [Request(0, 200, 5, arrival_seconds=t) for t in [0] * 24 + [19.9] + [30] * 12],
            workers=2,
        ),
        Seconds(BatchTime([Line(40_000_000, 0)], kv_ns=10_000)),
        "20s",
        "ttft=300ms,tpot=60ms",
    ),
    "prefixes": (Instance(9, SHARED, block_tokens=4, max_active=9), ROUNDS, 8, "e2e=1"),
}


@pytest.fixture(scope="module", params=CLAIMS)
def certified(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with certificates of windows that need several machines."""
    (instance, clock, every, slo), path = CLAIMS[request.param], tmp_path_factory.mktemp("day")
    options = {"attain": "90%", "slo": slo, "clock": clock, "time_limit": 1, "out": path}
    with processor_time():
        found = fleet_over_time(instance, every, **options)  # type: ignore[arg-type]
    write_results(path, found.to_json())
    proved = [window.proved or 0 for window in found.windows]
    assert min(proved) > 1
    verdict = verify(path)
    assert verdict.valid, verdict.lines
    assert max(map(len, verdict.lines)) <= 80
    for k, machines in enumerate(proved, 1):
        assert any(f"window {k} needs at least {machines} machines" in s for s in verdict.lines)
    return path


@pytest.fixture
def folder(certified: Path, tmp_path: Path) -> Path:
    """Return a copy to spoil."""
    return shutil.copytree(certified, tmp_path / "day")


def write_results(folder: Path, results: object) -> None:
    (folder / "every.json").write_text(json.dumps(results))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda rows: rows[0].update(proved=rows[0]["proved"] + 1), "rules out"),
        (lambda rows: rows[0].update(allowed=rows[0]["allowed"] + 1), "other numbers of arrivals"),
        (lambda rows: rows[1].update(begin=rows[1]["begin"] + 1), "has another begin"),
        (lambda rows: rows.pop(), "needs 2 windows"),
    ],
)
def test_spoiled_numbers_of_windows_are_refused(
    folder: Path, spoil: Callable[[list[dict[str, int]]], object], reason: str
) -> None:
    results = json.loads((folder / "every.json").read_text())
    spoil(results["windows"])
    write_results(folder, results)
    verdict = verify(folder)
    assert verdict.exit_status == 1
    assert reason in verdict.lines[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "status", "reason"),
    [
        ({"limits": {"e2e": 0}}, 1, "slo: needs lengths of time"),
        ({"limits": ["e2e"]}, 2, "has not the shape"),
        ({"attain": "50%"}, 1, "its share is"),
        ({"attain": "9"}, 2, "has not the shape"),
        ({"instance": "sha256:0"}, 1, "is about another instance"),
        ({"every": 7}, 1, "is about another every"),
        ({"clock": "none"}, 1, "is about another clock"),
        ({"machine_time": {"proved": 10**15}}, 1, "the windows give"),
        ({"windows": None}, 2, "has not the shape"),
    ],
)
def test_spoiled_results_of_a_day_are_refused(
    folder: Path, changed: dict[str, object], status: int, reason: str
) -> None:
    write_results(folder, {**json.loads((folder / "every.json").read_text()), **changed})
    verdict = verify(folder)
    assert verdict.exit_status == status
    assert reason in verdict.lines[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (lambda part: replace(part, requests=part.requests[1:]), "its requests are not those"),
        (
            lambda part: replace(
                part, requests=[*part.requests, replace(part.requests[-1], id="more")]
            ),
            "its requests are not those",
        ),
        (lambda part: replace(part, memory=part.memory - 1), "has less memory"),
        (lambda part: replace(part, workers=part.workers + 1), "attain, which"),
    ],
)
def test_a_window_has_the_requests_of_its_day(
    folder: Path, changed: Callable[[Instance], Instance], reason: str
) -> None:
    """A certificate that is valid by itself is refused if it is about something else."""
    path = folder / "window-1.cert.json"
    part = read_certificate(path)
    assert part.in_time is not None
    requests = [replace(request, id=None) for request in part.instance.requests]
    other = changed(replace(part.instance, requests=requests))
    options = {"clock": part.clock, "scope": part.scope, "slo": part.in_time.slo}
    write_certificate(certify(other, only_slo=True, time_limit=1, **options), path)  # type: ignore[arg-type]
    assert verify(path).valid
    verdict = verify(folder)
    assert verdict.exit_status == 1
    assert reason in verdict.lines[-1]


def test_a_window_without_a_true_certificate_is_refused(folder: Path) -> None:
    path = folder / "window-1.cert.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "slo": {**content["slo"], "ceiling": 0}}))
    assert "window-1.cert.json: slo: says at most 0" in verify(folder).lines[-1]
    path.write_text(json.dumps({key: member for key, member in content.items() if key != "slo"}))
    assert "window 1: needs a ceiling" in verify(folder).lines[-1]
    path.unlink()
    assert verify(folder).exit_status == 2


def test_ctrl_c_keeps_finished_windows(tmp_path: Path) -> None:
    told: list[str] = []

    def interrupt(text: str) -> None:
        told.append(text)
        if text.startswith("window 3"):
            signal.raise_signal(signal.SIGINT)

    options = {"attain": "90%", "slo": "e2e=200", "time_limit": 1}
    cut = fleet_over_time(CHAT, 800, out=tmp_path, observer=interrupt, **options)  # type: ignore[arg-type]
    assert cut.signal_number == signal.SIGINT
    assert cut.left[0] == 3
    assert cut.sufficient is None
    assert "no numbers of machines are known that do" in cut.answer
    told.clear()
    whole = fleet_over_time(CHAT, 800, out=tmp_path, observer=told.append, **options)  # type: ignore[arg-type]
    assert told[0].startswith("window 3")
    assert not whole.left
    assert [w.proved for w in whole.windows[:2]] == [w.proved for w in cut.windows[:2]]


def test_windows_that_fail_get_more_and_others_fewer() -> None:
    """A stand-in of a simulation needs 1, 5, 2, 3 machines."""
    requests = [Request(t, 1, 1) for t in range(0, 16) for _ in range(9)]
    windows = Windows(Problem(Instance(9, requests), slo=Slo(e2e=9)), 4, "100%")
    needs = (1, 5, 2, 3)

    def simulated(counts: tuple[int, ...]) -> Trial:
        return Trial(
            counts, tuple(int(c < n) for c, n in zip(counts, needs, strict=True)), (0,) * 4
        )

    for start in ((1, 1, 1, 1), (9, 9, 9, 9), (1, 9, 1, 9)):
        assert known(lower_counts(windows, simulated, start, (1, 1, 1, 1))).counts == needs
    assert lower_counts(windows, lambda _: None, (1, 1, 1, 1), (1, 1, 1, 1)) is None
    assert lower_counts(windows, simulated, (1, 5, 1, 3), (1, 1, 1, 1), attempts=1) is None


def test_results_become_facts_a_frame_and_a_picture() -> None:
    found = fleet_over_time(TEN, 10, attain="90%", slo="e2e=10", time_limit=1)
    assert "window 1" in str(found)
    assert list(found.to_dataframe()["proved"]) == [1]
    legend = known(found.plot().axes[0].get_legend())
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["sufficient", "proved", "formula of planners, no bound", "arrivals"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"every": "10"}, None),
        ({"every": "1s"}, "s needs --seconds, or an instance with round_ms"),
        ({"every": "soon"}, "must be a length of time"),
        ({"every": "0"}, "must be at least one round"),
        ({"attain": "9"}, "must be a share of each window"),
        ({"slo": None}, "needs a service level"),
        ({"routers": ["central"]}, "routers that send requests on arrival"),
    ],
)
def test_wrong_options_are_refused(changed: dict[str, object], reason: str | None) -> None:
    given = {"every": 10, "slo": "e2e=10", "time_limit": 0.1, **changed}
    if reason is None:
        assert fleet_over_time(TEN, **given).windows[0].sufficient == 1  # type: ignore[arg-type]
        return
    with pytest.raises(InvalidInput, match=reason):
        fleet_over_time(TEN, **given)  # type: ignore[arg-type]


def test_too_many_windows_are_refused() -> None:
    apart = Instance(9, [Request(0, 1, 1), Request(10**9, 1, 1)])
    with pytest.raises(InvalidInput, match="windows, at most 10,000"):
        fleet_over_time(apart, 10, slo="e2e=4")
    assert len(Windows(Problem(apart, ROUNDS, slo=Slo(e2e=4)), 10**6, "100%")) == 1001
