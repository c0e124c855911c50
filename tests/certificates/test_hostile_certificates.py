"""Files that lie, by one or by much, and files that are meant to hurt."""

from __future__ import annotations

import gzip
import json
import lzma
import random
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from certificates import (
    EC1,
    LOST,
    Place,
    assert_unreadable,
    certificate,
    changed,
    claiming,
    judged,
    numbers_in,
    prices_proof,
    proved,
    split,
)
from claims import Problem as Claims
from claims import untrue
from effort import many
from interpreters import python
from known import known
from strategies import random_instances

from kvopt import BatchTime, Line, bound, certify, generate
from kvopt.certificates.certificate_files import certificate_text
from kvopt.problem.clocks import Seconds
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Prediction, Request
from kvopt.verify import verify
from kvopt.verify.step_budget import Unreadable

CHANGES: list[Callable[[Any], Any]] = [
    lambda number: number + 1,
    lambda number: number - 1,
    lambda number: number + 5,
    lambda number: number * 2 + 10,
    lambda number: -number - 1,
    lambda number: 0,  # noqa: ARG005
    lambda number: 10**17 + number,
]
TIMED = {
    "policy": "evicts", "outcome": "completed", "starts": [1, 4, 5, 7],
    "lost": [[0, 0, 1], [2, 3, 4]], "waits": [[3, 70], [7, 200]],
}  # fmt: skip
"""A run with evictions of the certificate in seconds; its value is found round by round."""


def in_seconds() -> dict[str, Any]:
    """Return a certificate of four requests; at 90 ns the server has long been idle."""
    shapes = ((0, 0, 2), (0, 3, 1), (5, 1, 2), (90, 4, 1))
    requests = [Request(0, s, o, arrival_seconds=a * 1e-9) for a, s, o in shapes]
    roof = Seconds(BatchTime([Line(10, 0), Line(4, 3)], kv_ns=1, prompt_ns=2))
    content: dict[str, Any] = json.loads(
        certificate_text(certify(Instance(5, requests), ["fcfs"], clock=roof))
    )
    content["policies"].append({**TIMED, "value": Claims(content).nanoseconds(TIMED)})
    return content


class TestMutations:
    """Whatever number is changed: refused, or still true."""

    def refused_and_accepted(self, path: Path, content: dict[str, Any]) -> tuple[int, int]:
        """Change every number in every way; return how often it was refused and not.

        In seconds rounds without work take no time, so a start may be as late as it likes; brute
        force goes from round to round.
        """
        refused = accepted = 0
        changes = CHANGES if content["clock"] == "rounds" else CHANGES[:-1]
        assert judged(path, content).valid, judged(path, content).lines
        assert not [*untrue(content)]
        for place in numbers_in(content):
            if place[0] == "provenance":
                continue
            for change in changes:
                other = changed(content, place, change)
                if judged(path, other).valid:
                    assert other["instance"] == content["instance"], "it is hashed"
                    assert not [*untrue(other)], (place, other)
                    accepted += 1
                else:
                    refused += 1
        return refused, accepted

    def test_most_changes_of_a_full_certificate_are_refused(self, tmp_path: Path) -> None:
        content = certificate(EC1, random.Random(3))
        content["policies"].append(LOST)
        refused, accepted = self.refused_and_accepted(tmp_path / "c", content)
        assert refused > 5 * accepted > 0

    @pytest.mark.slow
    def test_most_changes_of_a_certificate_in_seconds_are_refused(self, tmp_path: Path) -> None:
        content = in_seconds()
        refused, accepted = self.refused_and_accepted(tmp_path / "c", content)
        assert any("with 2 evictions" in line for line in judged(tmp_path / "c", content).lines)
        assert refused > 3 * accepted > 0

    def test_most_changes_of_a_certificate_of_a_fleet_are_refused(self, tmp_path: Path) -> None:
        fleet = Instance(3, [Request(0, 0, 3), Request(0, 1, 2), Request(5, 1, 1)], workers=2)
        content = json.loads(certificate_text(certify(fleet, ["fcfs", "svf"])))
        refused, accepted = self.refused_and_accepted(tmp_path / "c", content)
        assert refused > 3 * accepted

    @pytest.mark.slow
    def test_changes_of_random_certificates_prove_nothing_false(self, tmp_path: Path) -> None:
        source = random.Random(31)
        for instance in random_instances(
            many(12), 22, most_requests=3, most_memory=7, most_output=4
        ):
            content = certificate(instance, source)
            content["lower"]["value"] -= source.choice((0, 0, 1))
            self.refused_and_accepted(tmp_path / "c", content)

    def test_everything_in_the_instance_but_its_labels_is_hashed(self, tmp_path: Path) -> None:
        request = Request(0, 1, 2, "a", Prediction(1, 3), 0.5)
        instance = Instance(9, [request], "name", {"n": 1}, 2.5)
        content = certificate(instance, random.Random(5))
        assert judged(tmp_path / "c", content).valid
        for place in numbers_in(content["instance"]):
            other = changed(content, ("instance", *place), lambda number: number + 1)
            assert judged(tmp_path / "c", other).valid == (place == ("notes", "n"))


@pytest.mark.parametrize(
    "proof",
    [
        prices_proof(0, 1, [1]),
        prices_proof(-3, 1, [1]),
        prices_proof(-3, 1, [-1]),
        prices_proof(3, 1, [2, -1, 2]),
        prices_proof(3, 0, [1]),
        prices_proof(3, -5, [1]),
        *(
            {"kind": "branches", "target": 99, "branches": branches, "leaves": leaves}
            for branches, leaves in (
                ([], []),
                ([], [[0]]),
                ([], [[0, 0]]),
                ([], [[0, 1, 0]]),
                ([], [[0, 1], [1, 1]]),
                ([[0, 1]], [[1, 1], [2, 1]]),
                ([[0, 1]], [[1, 1, 0, -1], [2, 1], [3, 1]]),
                ([[0, 1]], [[1, 1, 5, 1], [2, 1], [3, 1]]),
                ([[0, 1], [0, 1]], [[1, 1], [2, 1], [3, 1]]),
                ([[0, 0]], [[1, 1], [2, 1], [3, 1]]),
                ([[0, 9]], [[1, 1], [2, 1], [3, 1]]),
                ([[0, -1]], [[1, 1], [2, 1], [3, 1]]),
                ([[]], [[1, 1]]),
                ([[-1]], [[1, 1], [2, 1]]),
                ([[-9, 3]], [[1, 1], [2, 1]]),
            )
        ),
        *({"kind": "volume", "staircases": [steps]} for steps in ([], [0], [-1, 2], [3, 2])),
    ],
)
def test_proofs_that_are_none_are_invalid(tmp_path: Path, proof: dict[str, Any]) -> None:
    lower = {"value": 0, "proof": proof}
    verdict = judged(tmp_path / "c", certificate(EC1, random.Random(1), lower=lower))
    assert verdict.exit_status == 1
    assert verdict.lines[0].startswith("INVALID: lower")


VOLUME = {"kind": "volume"}
WRONG: list[tuple[Place, Any]] = [
    (("schema",), "kvopt.certificate/3"),
    (("schema",), "kvopt.seconds-certificate/2"),
    (("schema",), "kvopt.certificate/5"),
    (("clock",), "seconds"),
    (("scope",), "all"),
    (("narrower",), [{}]),
    (("lower", "proof", "kind"), "word"),
    (("lower", "proof", "cuts"), []),
    (("lower", "proof"), split((0, split((0, VOLUME))))),
    (("lower", "proof", "resources", 0, "numerators"), [1, [2]]),
    (("lower", "proof", "resources", 0, "name"), "slots"),
    (("policies", 0, "outcome"), "won"),
    (("policies", 0, "outcome"), "livelock"),
    (("policies", 0, "lost"), [[0, 0, None]]),
    (("policies", 1, "value"), 3),
    (("instance", "schema"), "kvopt.instance/3"),
    (("instance", "requests", 0, "predicted"), {"lower": 1}),
    (("instance", "notes"), [1]),
]


class TestShape:
    """What is not shaped like a certificate is unreadable."""

    @pytest.mark.parametrize(("place", "value"), WRONG)
    def test_wrong_words_and_parts_are_unreadable(
        self, tmp_path: Path, place: Place, value: object
    ) -> None:
        content = certificate(EC1, random.Random(1))
        assert_unreadable(judged(tmp_path / "c", changed(content, place, lambda _: value)))

    @pytest.mark.parametrize(
        ("place", "value"),
        [
            (("memory",), 0),
            (("memory",), 2**53),
            (("memory",), 4),
            (("requests", 0, "arrival"), -1),
            (("requests", 0, "arrival"), 2**53),
            (("requests", 0, "output"), 0),
            (("requests", 0, "prompt"), -1),
            (("requests", 0, "id"), ""),
            (("requests", 0, "id"), "r1"),
            (("round_ms",), -1),
            (("round_ms",), 10**299),
        ],
    )
    def test_an_instance_that_is_none_is_invalid(
        self, tmp_path: Path, place: Place, value: object
    ) -> None:
        content = certificate(EC1, random.Random(1))
        other = changed(content, ("instance", *place), lambda _: value)
        assert judged(tmp_path / "c", other).exit_status == 1


VALID = json.dumps(certificate(EC1, random.Random(1)))
HUGE = "1" + "0" * 5000

HOSTILE = {
    "nothing": "",
    "another file": "[1, 2]",
    "a list nested deeply": "[" * 1_000_000,
    "an object nested deeply": '{"a":' * 1_000_000,
    "a nested field": VALID.replace('"seed": 7', '"seed": ' + "[" * 50_000 + "]" * 50_000),
    "a huge integer": VALID.replace('"value": ', f'"value": {HUGE}, "value": ', 1),
    "a huge price": VALID.replace('"numerators": [', f'"numerators": [{HUGE}, '),
    "a huge negative": VALID.replace('"seed": 7', f'"seed": -{HUGE}'),
    "a huge float": VALID.replace('"seed": 7', '"seed": 1e999'),
    "NaN": VALID.replace('"seed": 7', '"seed": NaN'),
    "Infinity": VALID.replace('"seed": 7', '"seed": -Infinity'),
    "a key twice": VALID.replace('"seed": 7', '"seed": 7, "seed": 7'),
    "the schema twice": VALID.replace("{", '{"schema": "kvopt.certificate/4", ', 1),
    "the end cut off": VALID[:-20],
    "something after it": VALID + "{}",
    "a comment": "// kvopt\n" + VALID,
    "NUL": VALID.replace("seed", "\0"),
}


class TestHostile:
    """Quick, one line, exit 2, and little memory."""

    @pytest.mark.parametrize("name", HOSTILE)
    def test_hostile_files_are_refused_at_once(self, tmp_path: Path, name: str) -> None:
        verdict = judged(tmp_path / "c", HOSTILE[name])
        assert_unreadable(verdict)
        assert len(verdict.lines[0]) < 300

    @pytest.mark.parametrize("raw", [b"\xff\xfe{}", b"\x80", VALID.encode("utf-16")])
    def test_what_is_not_utf_8_is_unreadable(self, tmp_path: Path, raw: bytes) -> None:
        (tmp_path / "c").write_bytes(raw)
        assert verify(tmp_path / "c").exit_status == 2

    @pytest.mark.parametrize("packed", [gzip.compress, lzma.compress])
    def test_a_compressed_file_is_called_so(
        self, tmp_path: Path, packed: Callable[[bytes], bytes]
    ) -> None:
        (tmp_path / "c").write_bytes(packed(VALID.encode()))
        assert verify(tmp_path / "c").lines == (
            "UNREADABLE: is compressed: unpack it first, with xz -d or gzip -d",
        )

    def test_a_missing_file_is_unreadable(self, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "missing", "a\0b"):
            assert verify(path).exit_status == 2

    def test_a_file_that_is_too_large_is_not_read(self, tmp_path: Path) -> None:
        path = tmp_path / "c"
        with path.open("wb") as stream:
            stream.truncate(100_000_000)
        assert "90,000,000 bytes" in verify(path).lines[0]
        assert verify(path).exit_status == 2

    def test_an_endless_stream_is_not_read_to_its_end(self) -> None:
        assert verify("/dev/zero").exit_status == 2

    def test_many_small_parts_are_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kvopt.verify.certificate_shape.MOST_PARTS", 1000)
        assert judged(tmp_path / "c", VALID).valid
        text = VALID.replace('"seed": 7', '"seed": [' + "{}," * 1000 + "{}]")
        assert "parts" in judged(tmp_path / "c", text).lines[0]

    def test_prices_far_after_a_long_request_are_refused(self) -> None:
        long = Instance(2**52, [Request(0, 0, 2**51)])
        with pytest.raises(Unreadable, match="lower: prices: needs about"):
            proved(long, prices_proof(1, 2**50, [1]))

    def test_prices_that_keep_the_checker_busy_are_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Noise leaves no block of starts out, and no request is like another.
        source = random.Random(8)
        instance = Instance(4000, [Request(0, s, 40) for s in range(1, 3000)])
        prices = prices_proof(10**6, 1, [source.randint(0, 10**4) for _ in range(20_000)])
        content = claiming(instance, lower={"value": 0, "proof": prices})
        monkeypatch.setattr("kvopt.verify.step_budget.STEPS", 4_000_000)
        verdict = judged(tmp_path / "c", content)
        assert verdict.exit_status == 2
        assert "the budget of 4,000,000 steps is used up: verify --budget" in verdict.lines[0]

    @pytest.mark.slow
    def test_honest_prices_are_far_from_the_limit_of_steps(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        instance = generate("conversation", 2000, memory=16_492)
        found = bound(instance, "lagrangian", time_limit=1)
        monkeypatch.setattr("kvopt.verify.step_budget.STEPS", 4000 * len(instance))
        assert proved(instance, known(found.checked).proof) == found.value

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["nested", "parts", "long"])
    def test_memory_is_bounded(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / "c"
        path.write_text({"nested": "[", "parts": "{},", "long": "9"}[name] * 29_000_000)
        limit = 800_000_000
        limits = resource.RLIMIT_AS, (limit, limit)
        done = python("-m", "kvopt.verify", path, preexec_fn=lambda: resource.setrlimit(*limits))
        assert done.returncode == 2
        assert done.stdout.startswith("UNREADABLE")
        assert not done.stderr
