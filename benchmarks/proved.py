"""Compare the checker that is proved in Coq with ``kvopt/verify.py``: verdicts, and times.

Verdicts are compared on random certificates of each kind, half of which claim one too many.
Files that are named are checked by both, with the seconds of CPU of each.

    make proofs
    python benchmarks/proved.py --count 10000
    python benchmarks/proved.py --count 0 a.cert.json b.cert.json
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from certificates import certificate, random_proof
from configuration_proofs import content_of, drawn_proofs
from strategies import plain, random_instances

import kvopt.verify as verifier
from kvopt.certificates.proved import proved_checker

Content = dict[str, Any]
AT_ONCE = 500
"""Files that one call of the program checks."""


def with_claims(content: Content, proof: Content, source: random.Random) -> Content:
    """Return a certificate of what a proof gives, or of one more."""
    memory, rows = content["instance"]["memory"], content["instance"]["requests"]
    requests = [verifier.Request(r["arrival"], r["prompt"], r["output"]) for r in rows]
    try:
        value = verifier._proved(memory, requests, json.loads(json.dumps(proof)))
    except verifier.Invalid:  # a schedule is below the target of a search
        value = 0
    return {**content, "lower": {"value": value + source.choice((0, 1)), "proof": proof}}


def drawn(kind: str, count: int, seed: int) -> Iterator[Content]:
    """Yield certificates of one kind of proof."""
    source = random.Random(f"{kind} {seed}")
    if kind == "configurations":
        for problem, proof in drawn_proofs(seed, count):
            yield with_claims(content_of(problem, proof, 0), proof, source)
        return
    for instance in random_instances(count, source.randint(0, 10**9), last_arrival=9):
        proof = random_proof(source)
        if kind == "volume":
            stairs = [
                sorted(source.randint(1, plain(instance)[0]) for _ in range(source.randint(1, 4)))
                for _ in range(source.randint(0, 3))
            ]
            proof = {"kind": "volume", "staircases": stairs}
        yield with_claims(certificate(instance, source), proof, source)


def compare(kind: str, count: int, seed: int, folder: Path) -> None:
    """Print how often both say the same of random certificates."""
    program, verdicts, differ = proved_checker(), Counter[str](), 0
    contents = list(drawn(kind, count, seed))
    for begin in range(0, count, AT_ONCE):
        paths = []
        for i, content in enumerate(contents[begin : begin + AT_ONCE]):
            paths.append(folder / f"{i}.json")
            paths[-1].write_text(json.dumps(content))
        done = subprocess.run([program, *paths, "-"], capture_output=True, text=True, check=False)
        for path, line in zip(paths, done.stdout.splitlines(), strict=False):
            found, expected = line.partition(":")[0], verifier.verify(path)
            verdicts[found] += 1
            if (found, expected.exit_status) not in (("VALID", 0), ("INVALID", 1)):
                differ += 1
                print(f"{kind}: {line} where the verifier says {expected.lines[-1]}")
                (Path.cwd() / f"differs-{kind}-{differ}.json").write_text(path.read_text())
    print(f"{kind}: {sum(verdicts.values()):,} certificates, {dict(verdicts)}, {differ} differ")


def seconds(call: Callable[[], object]) -> float:
    """Return the CPU seconds of child processes that a call takes."""
    before = os.times()
    call()
    after = os.times()
    return (
        after.children_user
        + after.children_system
        - (before.children_user + before.children_system)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("prices", "volume", "configurations"):
            if options.count:
                compare(kind, options.count, options.seed, Path(folder))
    for path in options.files:
        commands = {
            "verify.py": [sys.executable, "-m", "kvopt.verify", str(path)],
            "proved": [str(proved_checker()), str(path)],
        }
        for name, command in commands.items():
            said: list[str] = []

            def check(command: list[str] = command, said: list[str] = said) -> None:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                said.append(done.stdout.splitlines()[-1])

            took = min(seconds(check) for _ in range(3))
            print(f"{path.name}: {name} {took:.2f} s, {said[0]}", flush=True)


if __name__ == "__main__":
    main()
