"""What bounds cover is said everywhere in the same words, and what they do not cover is so."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from commands import Run

import kvopt
from kvopt.errors import InvalidInput
from kvopt.problem.instance_files import write_instance
from kvopt.problem.scopes import Scope
from kvopt.verify.certificate_shape import SCOPES
from kvopt.verify.report import covered_by

COVERED = Scope.RUNS.sentence
ROOT = Path(__file__).parents[2]
TOO_MUCH = re.compile(
    r"any scheduler whatever|ever be written|nobody can do better|no scheduler can be|"
    r"whatever it knows|best possible|possibly be\?|holds for all schedulers|cannot be beaten"
)

ROUND_NS, TOKEN_NS = 100, 10
CHUNKED = [(0, 20), (90, 1)]
"""Prompt, output; both at 0."""


@pytest.mark.parametrize("page", ["README.md", "docs/problem.md"])
def test_pages_say_it_word_for_word(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert COVERED in " ".join(re.sub(r"^> ", "", text, flags=re.MULTILINE).split())


def test_nothing_claims_more() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "kvopt").rglob("*.py")]
    assert [p for p in pages if TOO_MUCH.search(" ".join(p.read_text("utf-8").split()))] == []


@pytest.mark.parametrize("command", ["bound", "certify", "certify --seconds"])
def test_commands_say_it(run: Run, tmp_path: Path, command: str) -> None:
    file = tmp_path / "a.json"
    requests = [kvopt.Request(0, *request) for request in CHUNKED]
    write_instance(kvopt.Instance(200, requests), file)
    name, *options = command.split()
    if name == "certify":
        options += ["-o", str(tmp_path / "c.json")]
    code, out, err = run(name, file, *options)
    assert (code, err.splitlines().count(COVERED), COVERED in out) == (0, 1, False)
    code, out, err = run(name, file, *options, "--json")
    assert (code, COVERED in out + err) == (0, False)


# ---- what each scope covers, and the sentence that says so


RUNS, RESTARTS, PAUSES, CHUNKS, BOTH = list(Scope)[:5]


@pytest.mark.parametrize("scope", Scope)
def test_what_is_printed_can_be_read(scope: Scope) -> None:
    assert Scope.parse(str(scope)) is scope


def test_what_is_joined_has_no_order() -> None:
    assert Scope.parse("chunks+pauses") is BOTH


@pytest.mark.parametrize("text", ["", "pause", "RUNS", "runs+chunks", "pauses+pauses", None, 3])
def test_what_is_no_scope_is_refused(text: object) -> None:
    with pytest.raises(InvalidInput, match=r"^scope: must be one of runs, .*, sharing.*got"):
        Scope.parse(text)


def test_the_nearest_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"got 'pause'; did you mean pauses\?$"):
        Scope.parse("pause")


def test_a_scope_covers_what_it_allows() -> None:
    """A bound for runs is one for restarts; all else is covered where it is allowed."""
    for scope, other in product(Scope, Scope):
        wanted = {
            RUNS: {RUNS, RESTARTS},
            RESTARTS: {RUNS, RESTARTS},
            PAUSES: {RUNS, RESTARTS, PAUSES},
            CHUNKS: {RUNS, RESTARTS, CHUNKS},
            BOTH: {RUNS, RESTARTS, PAUSES, CHUNKS, BOTH},
        }
        shares = (scope not in wanted, other not in wanted)
        inner = (scope.without_sharing, other.without_sharing)
        fits = inner[1] in wanted[inner[0]]
        assert scope.covers(other) == (fits and shares != (False, True))


def test_what_two_need_together_covers_both() -> None:
    for scope, other in product(Scope, Scope):
        joined = scope.joined(other)
        assert joined.covers(scope)
        assert joined.covers(other)
        assert joined is other.joined(scope)
        assert scope.joined(scope) is scope
    assert RUNS.joined(RESTARTS) is RESTARTS
    assert PAUSES.joined(CHUNKS) is BOTH
    assert CHUNKS.joined(Scope.SHARING) is Scope.SHARING_AND_CHUNKS
    assert BOTH.joined(Scope.SHARING).without_sharing is BOTH


def test_sentences_name_what_is_covered() -> None:
    """Runs and restarts say what was always said; others name what they cover."""
    assert RUNS.sentence == RESTARTS.sentence == Scope.RUNS.sentence
    assert {str(scope): scope.sentence for scope in Scope} == {
        scope: covered_by(scope) for scope in SCOPES
    }
    assert len({scope.sentence for scope in Scope}) == len(Scope) - 1
    for scope in Scope:
        covered, _, beyond = scope.sentence.partition("not covered")
        for word, other in (("paus", PAUSES), ("in pieces", CHUNKS)):
            assert (word in covered) == scope.covers(other)
            assert (word in beyond) == (not scope.covers(other))
        assert ("a shared prefix once" in covered) == scope.covers(Scope.SHARING)
