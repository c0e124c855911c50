"""Compare the checker that is proved in Coq with ``kvopt.verify``: verdicts, and times.

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
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from certificates import (
    certificate,
    numbers_in,
    paused_certificate,
    random_proof,
    with_slo,
)
from configuration_proofs import content_of, drawn_proofs
from strategies import plain, random_instances

import kvopt.verify as verifier
from kvopt import Instance
from kvopt.kernels.pipes import writing_output
from kvopt.problem.instance_files import instance_to_json
from kvopt.verify.certified_problem import Problem, Request
from kvopt.verify.check_proofs import value_of_proof
from kvopt.verify.step_budget import Invalid, Work

Content = dict[str, Any]
PROGRAM = Path(__file__).parents[1] / "proofs" / "build" / "kvopt-proved"
"""That of ``make proofs``."""
CHANGED = ("upper", "lower", "policies", "slo")
"""Where numbers are changed; of another instance the hash would be wrong."""
KINDS = ("prices", "volume", "configurations", "fleets", "pauses", "slo", "slo-pauses")
AT_ONCE = 500
"""Files that one call of the program checks."""


def with_claims(content: Content, proof: Content, source: random.Random) -> Content:
    """Return a certificate of what a proof gives, or of one more."""
    rows = content["instance"]["requests"]
    requests = [Request(r["arrival"], r["prompt"], r["output"]) for r in rows]
    problem = Problem(content["instance"]["memory"], requests)
    try:
        said = json.loads(json.dumps(proof))
        value = value_of_proof(problem, said, Work())[0]
    except Invalid:  # a schedule is below the target of a search
        value = 0
    return {**content, "lower": {"value": value + source.choice((0, 1)), "proof": proof}}


def paused_or_not(instance: Instance, kind: str, source: random.Random) -> Content:
    """Return a valid certificate of pauses, of service levels, or of both."""
    if "slo" in kind and source.random() < 0.5:
        requests = [replace(request, e2e=source.randint(1, 12)) for request in instance]
        instance = Instance(instance.memory, requests)
    made = paused_certificate if "pauses" in kind else certificate
    content = made(instance, source)
    return with_slo(content, source) if "slo" in kind else content


def claimed(content: Content, source: random.Random) -> Content:
    """Return the certificate as it is, or with one of its numbers changed by one."""
    if source.random() < 0.5:
        return content
    content = json.loads(json.dumps(content))
    if "slo" in content and source.random() < 0.5:
        content["slo"]["ceiling"] -= 1
    elif content["lower"] is not None and source.random() < 0.5:
        content["lower"]["value"] += 1
    else:
        places = list(numbers_in({key: content[key] for key in CHANGED if key in content}))
        *steps, last = source.choice(places)
        inner: Any = content
        for step in steps:
            inner = inner[step]
        inner[last] += source.choice((-1, 1))
    return content


def of_a_fleet(instance: Instance, source: random.Random) -> Content:
    """Return a certificate of several workers: a request runs where another is, or alone."""
    workers = source.randint(2, len(instance))
    fleet = Instance(instance.memory, list(instance), workers=workers)
    content = certificate(instance, source)
    content.update(instance=instance_to_json(fleet), hash=fleet.hash)
    on = [source.randrange(workers) for _ in instance]
    content["upper"]["workers"] = content["policies"][0]["workers"] = on
    proof = source.choice((random_proof(source), {"kind": "volume", "staircases": [[1], [1, 2]]}))
    rows = [Request(r.arrival, r.prompt, r.output) for r in instance]
    said = json.loads(json.dumps(proof))
    problem = Problem(instance.memory, rows, workers)
    value = value_of_proof(problem, said, Work())[0]
    content["lower"] = {"value": value + source.choice((0, 1)), "proof": proof}
    return content


def drawn(kind: str, count: int, seed: int) -> Iterator[Content]:
    """Yield certificates of one kind, half of them as they are or with one more claimed."""
    source = random.Random(f"{kind} {seed}")
    if kind == "configurations":
        for problem, proof in drawn_proofs(seed, count):
            yield with_claims(content_of(problem, proof, 0), proof, source)
        return
    drawn_at, least = source.randint(0, 10**9), 2 if kind == "fleets" else 0
    for instance in random_instances(count, drawn_at, least_requests=least, last_arrival=9):
        if "pauses" in kind or "slo" in kind:
            yield claimed(paused_or_not(instance, kind, source), source)
            continue
        proof = random_proof(source)
        if kind == "fleets":
            yield of_a_fleet(instance, source)
            continue
        if kind == "volume":
            stairs = [
                sorted(source.randint(1, plain(instance)[0]) for _ in range(source.randint(1, 4)))
                for _ in range(source.randint(0, 3))
            ]
            proof = {"kind": "volume", "staircases": stairs}
        yield with_claims(certificate(instance, source), proof, source)


def compare(kind: str, count: int, seed: int, folder: Path) -> None:
    """Print how often both say the same of random certificates."""
    verdicts, differ = Counter[str](), 0
    contents = list(drawn(kind, count, seed))
    for begin in range(0, count, AT_ONCE):
        paths = []
        for i, content in enumerate(contents[begin : begin + AT_ONCE]):
            paths.append(folder / f"{i}.json")
            paths[-1].write_text(json.dumps(content))
        done = subprocess.run([PROGRAM, *paths, "-"], capture_output=True, text=True, check=False)
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    if not PROGRAM.is_file():
        parser.error("run `make proofs` first")
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds:
            if options.count:
                compare(kind, options.count, options.seed, Path(folder))
    for path in options.files:
        commands = {
            "kvopt.verify": [sys.executable, "-m", "kvopt.verify", str(path)],
            "proved": [str(PROGRAM), str(path)],
        }
        for name, command in commands.items():
            said: list[str] = []

            def check(command: list[str] = command, said: list[str] = said) -> None:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                said.append(done.stdout.splitlines()[-1])

            took = min(seconds(check) for _ in range(3))
            print(f"{path.name}: {name} {took:.2f} s, {said[0]}", flush=True)


if __name__ == "__main__":
    with writing_output():
        main()
