"""Summaries: a few lines at a prompt, a table in a notebook, whatever is in it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from known import known

from kvopt import (
    BatchTime,
    BoundResult,
    Certificate,
    Instance,
    Line,
    Request,
    Schedule,
    SolveResult,
    bound,
    certify,
    generate,
    run,
    solve,
)
from kvopt.problem.clocks import Seconds
from kvopt.problem.scopes import Scope
from kvopt.show.summary import Summarised, exact_ratio, rounded, share, spread, worded

MANY = generate("conversation", n=500, memory=16_492, seed=1)
SMALL = generate("arrival-1", n=5, seed=3)
CLOCK = Seconds(BatchTime([Line(1_000_000, 1000)]))
HOSTILE = "<script>alert(1)</script>\n& more"


def all_kinds() -> list[Summarised]:
    return [
        SMALL,
        MANY,
        Instance(5, []),
        Schedule(SMALL, (0,) * 5),
        solve(SMALL),
        solve(SMALL, time_limit=0, quick_start=False),
        bound(SMALL, "volume"),
        bound(MANY, "configuration", time_limit=1),
        run(MANY, "svf"),
        run(SMALL, "svf", clock=CLOCK),
        run(Instance(9, [Request(0, 1, o) for o in (7, 7, 7)]), "alpha-protect:alpha=0.1"),
        certify(SMALL, ["mc-sf", "svf"]),
        certify(SMALL, ["svf"], clock=CLOCK),
        certify(Instance(5, []), ["svf"]),
    ]


def test_summaries_are_short_whatever_is_in_them() -> None:
    for thing in all_kinds():
        assert len(repr(thing)) < 600
        assert "\n" not in repr(thing)
        assert len(str(thing).splitlines()) < 18
        assert str(thing).startswith(type(thing).__name__)
        assert len(thing._repr_html_()) < 5000


def test_summaries_have_both_sides() -> None:
    found = solve(SMALL)
    assert re.search(rf"total latency +{found.objective:,}\n", str(found))
    assert re.search(rf"lower bound +{found.lower_bound:,}\n", str(found))
    certificate = certify(SMALL, ["mc-sf"])
    least, most = certificate.ratio(certificate.runs[0])
    low, high = map(float, re.findall(r"mc-sf +([\d.]+) to ([\d.]+) times", str(certificate))[0])
    assert low <= known(least) <= known(most) <= high
    assert "seconds" in str(run(SMALL, "svf", clock=CLOCK))


def test_summaries_name_the_scope_of_a_bound() -> None:
    paused = solve(Instance(10, [Request(0, 0, 3)]), scope="pauses")
    assert Scope.PAUSES.sentence in " ".join(str(paused).split())
    for thing in all_kinds():
        has_bound = isinstance(thing, SolveResult | BoundResult | Certificate)
        assert (Scope.RUNS.sentence in " ".join(str(thing).split())) == has_bound
        assert (Scope.RUNS.sentence in thing._repr_html_()) == has_bound
        assert Scope.RUNS.sentence not in repr(thing)


def test_html_is_well_formed_and_shows_foreign_text_as_text() -> None:
    named = Instance(9, [Request(0, 1, 3)], name=HOSTILE)
    for thing in (*all_kinds(), named, run(named, "svf"), certify(named, ["svf"])):
        ElementTree.fromstring(f"<p>{thing._repr_html_()}</p>")
        assert "<script" not in thing._repr_html_()


def test_numbers_and_texts_become_words() -> None:
    assert [worded(value) for value in (1234, 0.5, 12345.6, True, "a\nb")] == [
        "1,234",
        "0.5",
        "12,346",
        "yes",
        "a b",
    ]
    assert (spread([]), spread([3]), spread([5, 1])) == (None, "3", "1 to 5")
    assert (share(None), share(0.0), share(1e-9), share(0.123)) == (None, "0%", "0.01%", "12.30%")
    ends = [rounded(exact_ratio(10, 3), up=up) for up in (False, True)]
    assert (*ends, rounded(None, up=True)) == ("3.3333", "3.3334", "-")


class TestInstances:
    def test_an_index_gives_a_request_and_a_range_an_instance(self) -> None:
        assert SMALL[1] is SMALL.requests[1]
        assert SMALL[-1] is SMALL.requests[-1]
        assert SMALL[1:3].requests == SMALL.requests[1:3]
        assert SMALL[1:3].memory == SMALL.memory
        assert SMALL[:].hash == SMALL.hash
        with pytest.raises(IndexError):
            SMALL[5]

    def test_integers_of_numpy_become_plain(self) -> None:
        rows = np.array([(0, 1, 3), (2, 1, 4)], dtype=np.int32)
        made = Instance(np.int64(9), [Request(*row) for row in rows])  # type: ignore[arg-type]
        plain = Instance(9, [Request(0, 1, 3), Request(2, 1, 4)])
        assert made == plain
        assert made.hash == plain.hash
        assert type(made.memory) is type(made[0].output) is int
        schedule = Schedule(made, np.array([0, 3]))  # type: ignore[arg-type]
        assert schedule.starts == (0, 3)
        assert type(schedule.starts[0]) is int
        assert solve(made).objective == solve(plain).objective
