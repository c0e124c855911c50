"""Families of instances: what holds for each, what is refused, the same bytes each time."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
from drawn import CHEN, SHARING, TRAFFIC, WANG, noted

from kvopt.errors import InvalidInput
from kvopt.problem.families import FAMILIES, generate
from kvopt.problem.instance_files import read_instance, write_instance

NAMES = list(FAMILIES)
FREE_COUNT = [name for name in NAMES if "n" not in FAMILIES[name].fixed]


class TestEveryFamily:
    """What holds for each of them."""

    def test_families_are_those_of_the_specification(self) -> None:
        assert set(NAMES) == {
            *("arrival-1", "arrival-2", "v1-thm-6.4"),
            *WANG,
            *("thm-2.1", "thm-8.2", "three-partition", "steady"),
            *CHEN,
            *TRAFFIC,
            "two-humps",
            *SHARING,
        }

    @pytest.mark.parametrize("name", NAMES)
    def test_same_arguments_same_bytes_that_read_back(self, name: str, tmp_path: Path) -> None:
        instance = generate(name, seed=7)
        for file, made in (("a.json", instance), ("b.json", generate(name, seed=7))):
            write_instance(made, tmp_path / file)
        assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
        assert read_instance(tmp_path / "a.json") == instance

    @pytest.mark.parametrize("name", sorted(set(NAMES) - {"thm-2.1", "thm-8.2"}))
    def test_another_seed_draws_another_instance(self, name: str) -> None:
        first = generate(name, seed=0).hash
        assert any(generate(name, seed=seed).hash != first for seed in range(1, 6))

    @pytest.mark.parametrize("name", NAMES)
    def test_labels_say_where_it_comes_from(self, name: str) -> None:
        instance = generate(name, seed=3)
        notes = noted(instance)
        assert instance.name == f"{name}-n{len(instance)}-m{instance.memory}-seed3"
        assert (notes["family"], notes["seed"]) == (name, 3)
        assert notes["source"] == FAMILIES[name].source
        names = {parameter.name for parameter in FAMILIES[name].parameters}
        assert names - {"per_second", "batch"} <= set(notes)  # not there unless asked for

    @pytest.mark.parametrize("name", FREE_COUNT)
    @pytest.mark.parametrize("n", [3, 6, 30])
    def test_n_is_what_was_asked_for(self, name: str, n: int) -> None:
        instance = generate(name, n=n)
        assert len(instance) == n
        assert noted(instance)["n"] == n

    @pytest.mark.parametrize("name", sorted(set(FREE_COUNT) - {"v1-thm-6.4"}))
    def test_every_family_draws_no_requests_too(self, name: str) -> None:
        assert len(generate(name, n=0)) == 0

    @pytest.mark.parametrize("name", sorted({*NAMES} - {"three-partition"}))
    def test_memory_is_what_was_asked_for(self, name: str) -> None:
        is_large = name in (*TRAFFIC, *SHARING, "two-humps")
        instance = generate(name, memory=4096 if is_large else 81 if name[0] == "t" else 64)
        assert instance.memory == noted(instance)["memory"]

    @pytest.mark.parametrize("name", NAMES)
    def test_texts_and_numbers_mean_the_same(self, name: str) -> None:
        values = {p.name: p.default for p in FAMILIES[name].parameters if p.default is not None}
        texts = {key: str(value) for key, value in values.items()}
        instance = generate(name)
        assert instance == generate(name, parameters=values)
        assert instance == generate(name, parameters=texts)

    def test_families_do_not_change(self) -> None:
        with pytest.raises(FrozenInstanceError):
            FAMILIES["uniform"].n = "5"  # type: ignore[misc]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("nosuch", {}, "family"),
    ("uniform", {"n": -1}, "n"),
    ("uniform", {"n": 10**7 + 1}, "n"),
    ("uniform", {"n": 2.0}, "n"),
    ("uniform", {"memory": 0}, "memory"),
    ("uniform", {"memory": 1}, "memory"),
    ("uniform", {"seed": -1}, "seed"),
    ("uniform", {"parameters": {"k": 2}}, "k"),
    ("summarisation", {"memory": 1}, "memory"),
    ("arrival-1", {"memory": 5}, "memory"),
    ("arrival-1", {"parameters": {"rate": 1}}, "rate"),
    ("arrival-2", {"parameters": {"rate": "fast"}}, "rate"),
    ("arrival-2", {"parameters": {"rate": "nan"}}, "rate"),
    ("arrival-2", {"parameters": {"rate": 10**400}}, "rate"),
    ("arrival-2", {"parameters": {"rate": True}}, "rate"),
    ("arrival-2", {"parameters": {"rate": 1e6, "rounds": 10**6}}, "rate"),
    ("arrival-2", {"parameters": {"rounds": "41.5"}}, "rounds"),
    ("arrival-2", {"parameters": {"rounds": ""}}, "rounds"),
    ("thm-2.1", {"n": 48}, "n"),
    ("thm-2.1", {"memory": 25}, "memory"),
    ("thm-2.1", {"memory": 17**4}, "memory"),
    ("thm-2.1", {"memory": 81, "parameters": {"k": 2}}, "k"),
    ("thm-8.2", {"n": 8}, "n"),
    ("thm-8.2", {"parameters": {"k": 101}}, "k"),
    ("v1-thm-6.4", {"n": 0}, "n"),
    ("v1-thm-6.4", {"memory": 4}, "epsilon"),
    ("v1-thm-6.4", {"memory": 10**9}, "memory"),
    ("v1-thm-6.4", {"parameters": {"epsilon": 0.6}}, "epsilon"),
    ("v1-thm-6.4", {"parameters": {"prompt": 100}}, "prompt"),
    ("v1-thm-6.4", {"parameters": {"short-prompt": 100}}, "short-prompt"),
    ("two-point", {"parameters": {"l": 9, "u": 8}}, "l"),
    ("two-point", {"memory": 50}, "memory"),
    ("geometric", {"parameters": {"u": 100}}, "memory"),
    ("geometric", {"parameters": {"q": 1}}, "q"),
    ("linear-geometric", {"parameters": {"prompt": -1}}, "prompt"),
    ("three-partition", {"memory": 43}, "memory"),
    ("three-partition", {"n": 4}, "n"),
    ("three-partition", {"parameters": {"target": 8}}, "target"),
    ("three-partition", {"parameters": {"answer": "no"}}, "answer"),
    ("three-partition", {"parameters": {"answer": 1}}, "answer"),
    ("conversation", {"parameters": {"rate": 1e-300}}, "rate"),
    ("conversation-summarisation", {"parameters": {"share": "2"}}, "share"),
    ("sessions", {"memory": 64}, "memory"),
    ("agents", {"parameters": {"block_tokens": 0}}, "block_tokens"),
    ("agents", {"parameters": {"turns": 0.5}}, "turns"),
    ("steady", {"memory": 6, "parameters": {"output": 9}}, "memory"),
    ("steady", {"memory": 6, "parameters": {"least": 4}}, "least"),
    ("steady", {"memory": 6, "parameters": {"rate": 1e6, "rounds": 10**6}}, "rate"),
    ("steady", {"memory": 6, "parameters": {"rate": 3, "batch": 2}}, "batch"),
    ("conversation", {"n": 4, "parameters": {"per_second": 50, "rate": 1}}, "per_second"),
]


@pytest.mark.parametrize(("name", "arguments", "field"), REFUSED)
def test_bad_arguments_are_refused_with_the_field_on_one_line(
    name: str, arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        generate(name, **arguments)
    assert caught.value.field == field
    assert len(str(caught.value).splitlines()) == 1
