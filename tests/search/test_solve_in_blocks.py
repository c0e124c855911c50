"""Searches in whole blocks: what an engine finds inside counts at once outside."""

from __future__ import annotations

from kvopt import Instance, Request
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.search.stages import as_longer_prompts


def test_a_schedule_in_blocks_is_known_while_the_engine_works() -> None:
    search = Search(Instance(24, [Request(0, 3, 5)] * 4, block_size=4))
    known: list[int | None] = []

    def work(inner: Search) -> None:
        offer_list_schedules(inner)
        known.append(search.objective)

    as_longer_prompts(search, work)
    assert known == [search.objective]
    assert search.objective is not None
