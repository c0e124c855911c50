"""What others write for kvopt: each mistake in it is one line that says what to write."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Run

pytestmark = pytest.mark.usefixtures("own_things")


POLICY = """
from dataclasses import dataclass
from kvopt import PrefixPolicy, register

@register
@dataclass
class Mine(PrefixPolicy):
    name = "mine"

    def key(self, view, i):
        return (view.arrivals[i],)
"""
ROUTER = """
from dataclasses import dataclass
from kvopt.simulate.routers.base import ArrivalRouter
from kvopt.simulate.routers.registry import register

@register
@dataclass
class Mine(ArrivalRouter):
    name = "mine"

    def choose(self, loads, prompt, output):
        return 0
"""
FORMAT = """
from kvopt.problem.traces import Trace, register

@register("mine")
def mine({takes}):
    {body}
"""


def replaced(key: str) -> str:
    return POLICY.replace("(view.arrivals[i],)", key)


def method(text: str) -> str:
    return f"{POLICY}\n    def {text}\n"


POLICIES = {
    "scalar-key": (
        replaced("-3"),
        "mine: key returned -3, and must return a tuple: write return (-3,)",
    ),
    "key-of-nothing": (replaced("(None if i else 0,)"), "mine failed: TypeError: '<' not su"),
    "no-return": (
        replaced("None"),
        "mine: key returned None, and must return a tuple: write return (",
    ),
    "key-without-i": (
        POLICY.replace("key(self, view, i)", "key(self, view)"),
        "mine: key: too many positional arguments: write def key(self, view, i)",
    ),
    "key-wants-more": (POLICY.replace("view, i)", "view, i, j)"), "mine: key failed: TypeError: "),
    "raising": (
        replaced("1 / 0"),
        "line 11: mine: key failed: ZeroDivisionError: division",
    ),
    "float-belief": (
        method("belief(self, view, i): return 2.5"),
        "mine: belief returned 2.5, and must return int",
    ),
    "no-capacity": (
        method("capacity(self, view): pass"),
        "capacity returned None, and must return int",
    ),
    "wake-at-half": (
        method("wake(self, view): return 0.5"),
        "mine: wake returned 0.5, and must return int | None",
    ),
    "evict-one": (
        method("evict(self, view): return 7"),
        "evict returned 7, and must return positions of requests: write return [i], or yield i",
    ),
    "admit-rows": (
        method("admit(self, view): yield [0]"),
        "mine failed: TypeError: unhashable type: 'list'",
    ),
    "admit-list-of-texts": (
        method('admit(self, view): return ["r0"]'),
        "mine: starts r0, which is not waiting",
    ),
    "admit-fails-late": (method("admit(self, view): yield 1 // 0"), "mine failed: Zero"),
    "learned-list": (
        method("learned(self): return []"),
        "learned returned [], and must return Hashable",
    ),
    "note-number": (method("note(self): return 3"), "note returned 3, and must return str | None"),
    "scope-text": (
        method('scope(self, rounds): return "runs"'),
        "mine: scope returned 'runs', and must return Scope",
    ),
    "begin-fails": (
        method("begin(self, view): view.nothing"),
        "mine: begin failed: Attri",
    ),
    "begin-forgets": (
        method("begin(self, view): pass"),
        "mine failed: AttributeError: 'M",
    ),
    "post-init": (method("__post_init__(self): 1 / 0"), "mine: __post_init__ failed: Zero"),
}


@pytest.mark.parametrize("mistake", POLICIES)
def test_a_mistake_in_a_policy_is_one_line(
    run: Run, ec1: Path, tmp_path: Path, mistake: str
) -> None:
    text, said = POLICIES[mistake]
    if "learned" in mistake:  # asked only after evictions
        text += "    def evict(self, view): return list(view.active)\n"
    if "scope" in mistake:  # asked only where a bound has to cover it
        return _one_line(
            run, tmp_path, text, said, "certify", ec1, "-P", "mine", "-o", tmp_path / "c.json"
        )
    return _one_line(run, tmp_path, text, said, "run", ec1, "--policy", "mine")


ROUTERS = {
    "text": ('"last"', "mine: choose returned 'last', and must return int"),
    "beyond": ("2", "router mine: chose 2, workers are 0 .. 1"),
    "raising": ("loads[9].requests", "line 12: mine: choose failed: IndexError"),
}


@pytest.mark.parametrize("mistake", ROUTERS)
def test_a_mistake_in_a_router_is_one_line(
    run: Run, ec1: Path, tmp_path: Path, mistake: str
) -> None:
    body, said = ROUTERS[mistake]
    text = ROUTER.replace("return 0", f"return {body}")
    command = ("run", ec1, "--policy", "mc-sf", "--workers", 2, "--router", "mine", "-q")
    _one_line(run, tmp_path, text, said, *command)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "choose",
            "chose",
            "Mine: does not define choose: write def choose(self, loads, p",
        ),
        (
            ", prompt, output",
            "",
            "choose: too many positional arguments: write def choose(self",
        ),
        (
            "(ArrivalRouter)",
            "",
            "Mine: is no router: write class NAME(ArrivalRouter), from",
        ),
        ("@register", '@register("mine")', "must be the class of a router: write @register above"),
    ],
)
def test_a_router_that_cannot_be_used_is_refused_when_it_is_registered(
    run: Run, ec1: Path, tmp_path: Path, old: str, new: str, said: str
) -> None:
    text = ROUTER.replace(old, new)
    _one_line(run, tmp_path, text, said, "run", ec1, "--workers", 2, "--router", "mine")


FORMATS = [
    ("path", "return []", "format mine failed: TypeError: it returned [], and must return a Trace"),
    ("path", "1 / 0", "line 6: format mine failed: ZeroDivisionError: division by zero"),
    ("", "pass", "format mine failed: TypeError: mine() takes 0 positional arguments but 1"),
    ("path, more", "pass", "format mine failed: TypeError: mine() missing 1 required"),
    ("path", "return Trace(1 / 0 for _ in [0])", "line 6: format mine failed: Zero"),
    ("path", "return Trace([(1, 2)])", "format mine failed: AttributeError: 'int' object"),
    ("path", "return Trace(3)", "format mine failed: TypeError: 'int' object is not iterable"),
]


@pytest.mark.parametrize(("takes", "body", "said"), FORMATS)
def test_a_mistake_in_a_format_is_one_line(
    run: Run, ec1: Path, tmp_path: Path, takes: str, body: str, said: str
) -> None:
    text = FORMAT.format(takes=takes, body=body)
    command = ("import", ec1, "--format", "mine", "--memory", 9, "-o", tmp_path / "out")
    _one_line(run, tmp_path, text, said, *command)


def _one_line(run: Run, folder: Path, text: str, said: str, *command: object) -> None:
    module = folder / "mine.py"
    module.write_text(text)
    code, out, err = run(*command, "--module", module)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert "mine.py" in err or " are " in err or "which is not" in err
