"""Feed false claims to `kvopt.verify`: none may be accepted, and none may make it crash.

Instances are tiny, and brute force knows their optima.  A proof climbs: a number of it is changed,
two are exchanged, an entry is dropped or doubled, and the new proof is kept if the checker makes no
less of it.  Each claims one more than is true.  Runs claim less than the optimum, ceilings
one too few.  Whole certificates are changed too, with the hash of what results.

    nice python benchmarks/fuzz_verify.py --claims 1000000

``--restricted 1`` draws only instances with weights, limits or shared prefixes.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from certificates import in_file, numbers_in, prices_between
from claims import Problem, untrue
from configuration_proofs import drawn_cuts, drawn_stage, good_stage, with_cuts
from drawn_claims import (
    Content,
    bound_of,
    drawn,
    proof_of,
    random_branches,
    restricted,
    shared_prices,
    shared_rounds,
    some_lines,
)
from grown_trees import grown_tree
from strategies import instance_of

from kvopt.kernels.pipes import writing_output
from kvopt.verify import verify_text
from kvopt.verify.certified_problem import hash_of, held_together, problem_of, relaxed
from kvopt.verify.check_proofs import missing
from kvopt.verify.step_budget import Invalid

STEPS, MORE_STEPS = 40, 200
"""Changes of one proof, one after the other, and where one kind of proof is attacked alone."""
_NOTES = ("tight", "WRONG")
"""Counts that are not of claims: proofs that reached the optimum, and false accepts."""
_GIVES = re.compile(r"gives? (-?[\d,]+)$")
_LARGE = re.compile(r"\d{5}")
"""Brute force takes too long where a request arrives or starts at such a time."""
CHANGES: tuple[Callable[[int], int], ...] = (
    lambda n: n + 1, lambda n: n - 1, lambda n: 2 * n, lambda n: n // 2, lambda n: -n,
    lambda n: n + 5, lambda n: 0 * n, lambda n: n + 10**17,
)  # fmt: skip


def changed(value: Any, source: random.Random) -> Any:
    """Return JSON with a number changed, two exchanged, or an entry of a list less or more."""
    found = json.loads(json.dumps(value))

    def at(place: tuple[str | int, ...]) -> Any:
        inner = found
        for step in place[:-1]:
            inner = inner[step]
        return inner

    places = list(numbers_in(found))
    if not places:
        return found
    one, other = source.choice(places), source.choice(places)
    if source.random() < 0.6:
        at(one)[one[-1]] = source.choice(CHANGES)(int(at(one)[one[-1]]))
    elif source.random() < 0.5 or not isinstance(row := at(one), list):
        at(one)[one[-1]], at(other)[other[-1]] = at(other)[other[-1]], at(one)[one[-1]]
    elif source.random() < 0.5:
        row.pop(source.randrange(len(row)))
    else:
        row.insert(source.randrange(len(row)), source.choice(row))
    return found


class Attack:
    """Claims about one instance after the other; ``counts`` holds what became of them."""

    def __init__(self, seed: int, restricted: float, kind: str | None) -> None:
        self.source, self.counts = random.Random(seed), Counter[str]()
        self.restricted, self.kind = restricted, kind
        self.steps = STEPS if kind is None else MORE_STEPS

    def judged(self, content: Content, name: str, *, is_false: bool = True) -> tuple[str, float]:
        """Return the verdict on a certificate, and the value that is named in it, if any."""
        text = json.dumps(content)
        self.counts[name] += 1
        try:
            verdict = verify_text(text)
            said, is_valid, is_wrong = verdict.lines[-1], verdict.valid, verdict.valid and is_false
        except Exception as error:  # whatever it is, it is a crash
            said, is_valid, is_wrong = f"crash: {error!r}", False, True
        if is_valid and not is_false:
            is_small = not _LARGE.search(json.dumps([content["instance"], content["upper"]]))
            is_wrong = is_small and any(untrue(content))
        if is_wrong:
            self.counts[f"WRONG {name}"] += 1
            print(f"{name}: {said}\n{text}", flush=True)
        value = _GIVES.search(said)
        return said.partition(":")[0], int(value[1].replace(",", "")) if value else -math.inf

    def run(self) -> None:
        """Attack one instance with claims of every kind."""
        source = self.source
        content = restricted(source) if source.random() < self.restricted else drawn(source)
        problem, rows = Problem(content), content["instance"]["requests"]
        best = problem.least()
        for proof in self.proofs(content, problem, int(best)):
            if self.kind not in (None, proof["kind"]):
                continue
            kept, most, name = proof, -math.inf, f"bound by {proof['kind']}"
            name += " with cuts" * ("cuts" in proof) + " with prefixes" * (
                "block_tokens" in content["instance"]
            )
            for step in range(self.steps):
                other = changed(kept, source) if step else kept
                lower = bound_of(content, other, math.floor(best) + 1)
                _, value = self.judged({**content, "lower": lower}, name)
                kept, most = (other, value) if value >= most else (kept, most)
            self.counts[f"tight {proof['kind']}"] += most == best
        if self.kind is not None:
            return
        starts = [row["arrival"] + source.randint(0, 4) for row in rows]
        run: Content = {"value": 0, "starts": starts}
        if source.random() < 0.5:
            pairs = zip(starts, rows, strict=True)
            run = {"value": 0, "segments": [[[k + 1, k + row["output"]]] for k, row in pairs]}
        if problem.workers > 1:
            run["workers"] = [source.randrange(problem.workers) for _ in rows]
        for _ in range(STEPS):
            _, value = self.judged({**content, "upper": run}, "upper", is_false=run["value"] < best)
            run = {**changed(run, source), "value": int(max(value, 0))}
        lower = bound_of(content, kept, source.randint(0, int(best)))
        for _ in range(STEPS):
            whole = changed({**content, "upper": run, "lower": lower}, source)
            with suppress(Invalid):  # a time that is none
                whole["hash"] = hash_of(whole["instance"])
            self.judged(whole, "whole", is_false=False)
        if "max_active" in content["instance"] or any({"weight", "prefix"} & {*r} for r in rows):
            return
        times, one = sorted(source.sample(range(30), 4)), source.randint(1, 20)
        lines = None if content["clock"] == "rounds" else some_lines(content, source)
        prices = prices_between(times, [1, 1, 1], one, lines)
        if lines is not None and source.random() < 0.5:
            shared = shared_rounds(content, source)
            shared["unit"] *= source.randint(2, 30)
            prices = {**shared, "slopes": [], "interference": []}
        length = source.randint(1, 30)
        limits = {source.choice(("ttft", "e2e")): f"{length}ns" if problem.server else length}
        due: Content = {"limits": limits, "attained": [], "best": None, "ceiling": 0,
                        "proof": prices}  # fmt: skip
        while any(problem.untrue_in_time(due)):
            due["ceiling"] += 1
        due["ceiling"] -= 1
        for _ in range(STEPS):
            due["proof"] = changed(prices, source)
            self.judged({**content, "slo": due}, "slo")

    def proofs(self, content: Content, problem: Problem, best: int) -> Iterator[Content]:
        """Yield proofs of kinds that go with the instance, searches with the optimum as target."""
        source = self.source
        for _ in range(4):
            proof = proof_of(content, source)
            if proof.get("target") is not None and source.random() < 0.7:
                proof["target"] = best + source.choice((0, 0, 1))
            yield proof
        asked = problem_of(content)
        if problem.server is None and held_together(asked)[2]:
            yield shared_prices(asked, source)
        if problem.server or problem.workers > 1 or problem.block > 1:
            return
        # Of shared prefixes and weights the proof is about what is left without them.
        rest, _, _ = relaxed(asked, missing(asked, {"kind": "branches"}))
        plain = rest.memory, tuple((r.arrival, r.prompt, r.output) for r in rest.requests)
        target = best + source.choice((0, 1))
        if not rest.pauses and rest.requests:
            is_good = source.random() < 0.5
            stage = good_stage(source, plain) if is_good else drawn_stage(source, plain, 6)
            cuts = drawn_cuts(source, stage)
            yield with_cuts([stage], target, cuts)
            yield random_branches(source, len(rest.requests), target)
            grown = grown_tree(instance_of(*plain), target, source.randint(0, 30))
            yield in_file(grown.proof())
            yield {"kind": "configurations", "target": None, "searched": False, "stages": [stage]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--claims", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--restricted", type=float, default=0.2)
    parser.add_argument("--kind", help="attack bounds with this kind of proof alone")
    options = parser.parse_args()
    attack, asked, told = Attack(options.seed, options.restricted, options.kind), 0, 0
    while asked < options.claims:
        attack.run()
        asked = sum(n for name, n in attack.counts.items() if name.split()[0] not in _NOTES)
        if asked - told >= 10_000 or asked >= options.claims:
            wrong = sum(n for name, n in attack.counts.items() if name.startswith("WRONG"))
            print(f"{asked:,} claims, {wrong} false accepts or crashes", flush=True)
            told = asked
    print(*(f"{name}: {count:,}" for name, count in sorted(attack.counts.items())), sep="\n")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    with writing_output():
        main()
