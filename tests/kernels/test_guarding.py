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
from kvopt.simulate.routers import ArrivalRouter
from kvopt.simulate.routers import register

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
    "raising": (replaced("1 / 0"), "line 11: mine: key failed: ZeroDivisionError: division"),
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
    "begin-fails": (method("begin(self, view): view.nothing"), "mine: begin failed: Attri"),
    "begin-forgets": (method("begin(self, view): pass"), "mine failed: AttributeError: 'M"),
    "post-init": (method("__post_init__(self): 1 / 0"), "mine: __post_init__ failed: Zero"),
}


ROUTERS = {
    "text": ('"last"', "mine: choose returned 'last', and must return int"),
    "beyond": ("2", "router mine: chose 2, workers are 0 .. 1"),
    "below": ("-1", "router mine: chose -1, workers are 0 .. 1"),
    "true": ("True", "router mine: chose True, workers are 0 .. 1"),
    **{word: (word, "and must return int") for word in ("None", "1.0")},
    "raising": ("loads[9].requests", "line 12: mine: choose failed: IndexError"),
}


WRONG_ROUTERS = [
    ("choose", "chose", "Mine: does not define choose: write def choose(self, loads, p"),
    (", prompt, output", "", "choose: too many positional arguments: write def choose(self"),
    ("(ArrivalRouter)", "", "Mine: is no router: write class NAME(ArrivalRouter), from"),
    ("@register", '@register("mine")', "must be the class of a router: write @register above"),
]
FORMATS = [
    ("path", "return []", "format mine failed: TypeError: it returned [], and must return a Trace"),
    ("path", "1 / 0", "line 6: format mine failed: ZeroDivisionError: division by zero"),
    ("", "pass", "format mine failed: TypeError: mine() takes 0 positional arguments but 1"),
    ("path, more", "pass", "format mine failed: TypeError: mine() missing 1 required"),
    ("path", "return Trace(1 / 0 for _ in [0])", "line 6: format mine failed: Zero"),
    ("path", "return Trace([(1, 2)])", "format mine failed: AttributeError: 'int' object"),
    ("path", "return Trace(3)", "format mine failed: TypeError: 'int' object is not iterable"),
]


PLAIN = """
from dataclasses import dataclass
from kvopt import Policy, register

@register
@dataclass
class Mine(Policy):
    name = "mine"
    def admit(self, view):
        return 3
"""
WRONG_REGISTER = (
    "must be the class of a policy: write @register above it without brackets; register of "
    "routers and formats is in kvopt."
)


FILES: list[tuple[str | None, str]] = [
    (None, "cannot be read: No such file or directory; write the path of a Python file"),
    ("x = 1\ndef (\n", "line 2: invalid syntax: def ("),
    ("x = 1\n1 / 0\n", "line 2: cannot be loaded: ZeroDivisionError: division by zero"),
    ("import sys\nsys.exit(3)\n", "line 2: cannot be loaded: SystemExit: 3"),
    (
        "x = 1\n",
        "registers nothing: write @register above a policy (from kvopt import register); "
        "register of routers and formats is in kvopt.",
    ),
    (PLAIN.replace('    name = "mine"\n', ""), 'Mine: has no name: write name = "..." in it'),
    (PLAIN.replace("admit", "admits"), "Mine: does not define admit: write def admit(self, view)"),
    (
        PLAIN.replace('"mine"', '"mine"\n    weight = 10'),
        "weight: has no type: write weight: int = 10",
    ),
    (
        PLAIN.replace('"mine"', '"mine"\n    weight: int = 10').replace("@dataclass\n", ""),
        "weight: is no key: write @dataclass between @register and the class",
    ),
    (PLAIN.replace("(Policy)", ""), "Mine: is no policy: write class NAME(Policy)"),
    (
        PLAIN.replace("mine", "mc-sf"),
        "mc-sf: is the name of kvopt.simulate.policies.order_policies: write another",
    ),
    (PLAIN.replace("@register", '@register("mine")'), WRONG_REGISTER),
    (
        "from kvopt.problem.traces import register\n@register\ndef f(path): ...",
        "f: has no name: write",
    ),
    (PLAIN.replace("mine", "a:b"), "name of a policy: must be a text without"),
    (PLAIN, "mine: admit returned 3, and must return positions of requests: write return [i]"),
]
FAULTS = {
    "        raise OSError('a\\nb')": "line 10: mine: admit failed: OSError: a\\nb",
    "        return own()\ndef own():\n    return 1 / 0": "line 12: mine: admit failed: Z",
}
RUN = ("run", "EC1", "--policy", "mine")
SERVED = ("run", "EC1", "--policy", "mc-sf", "--workers", 2, "--router", "mine", "-q")
READ = ("import", "EC1", "--format", "mine", "--memory", 9, "-o", "OUT")
ASKED_LATER = {
    "learned-list": (RUN, "    def evict(self, view): return list(view.active)\n"),
    "scope-text": (("certify", "EC1", "-P", "mine", "-o", "OUT"), ""),
}
"""What is asked only after evictions, and only where a bound has to cover it."""

Case = tuple[str | None, str, tuple[object, ...]]
CASES: list[Case] = [
    *(
        (text + more, said, command)
        for name, (text, said) in POLICIES.items()
        for command, more in [ASKED_LATER.get(name, (RUN, ""))]
    ),
    *(
        (ROUTER.replace("return 0", f"return {body}"), said, SERVED)
        for body, said in ROUTERS.values()
    ),
    *((ROUTER.replace(old, new), said, SERVED) for old, new, said in WRONG_ROUTERS),
    *((FORMAT.format(takes=takes, body=body), said, READ) for takes, body, said in FORMATS),
    *(
        (text, said, ("run", "EC1", "-P", "mine:weight=2" if "weight" in str(text) else "mine"))
        for text, said in FILES
    ),
    *((PLAIN.replace("        return 3", body), said, RUN) for body, said in FAULTS.items()),
]


@pytest.mark.parametrize(("text", "said", "command"), CASES, ids=[said for _, said, _ in CASES])
def test_a_mistake_is_one_line(
    run: Run, ec1: Path, tmp_path: Path, text: str | None, said: str, command: tuple[object, ...]
) -> None:
    module = tmp_path / "mine.py"
    if text is not None:
        module.write_text(text)
    words = {"EC1": ec1, "OUT": tmp_path / "out.json"}
    command = (*(words.get(str(word), word) for word in command), "--module", module)
    code, out, err = run(*command)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert err.startswith(f"kvopt: {module}: ") or " are " in err or "which is not" in err
    if "admit failed" in said:
        _, _, err = run(*command, "-v")
        assert "Traceback (most recent call last):" in err
        assert err.count(f"kvopt: {module}: ") == 1
