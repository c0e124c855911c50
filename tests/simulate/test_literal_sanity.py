"""The literal transcriptions of Jaillet et al. and Chen et al. on random small instances."""

from __future__ import annotations

import random

import pytest
from literal import chen, jaillet
from literal.common import Job, Run
from literal.small import draw, optimum, peak


def every_policy(jobs: list[Job], memory: int, seed: int) -> dict[str, Run]:
    rank = random.Random(seed).sample(range(len(jobs)), len(jobs))
    low = [job.interval().lower for job in jobs]
    coin = jaillet.coins(0.5, seed)
    return {
        "fcfs": jaillet.fcfs(jobs, memory),
        "mc_sf": jaillet.mc_sf(jobs, memory),
        "mc_sf low": jaillet.mc_sf(jobs, memory, low),
        "mc_sf margin": jaillet.mc_sf(jobs, memory, low, alpha=0.1),
        "mc_sf_total": jaillet.mc_sf_total(jobs, memory),
        "svf": jaillet.svf(jobs, memory),
        "alpha_protect": jaillet.alpha_protect(jobs, memory, alpha=0.25),
        "alpha_beta": jaillet.alpha_beta(jobs, memory, alpha=0.1, coin=coin, round_limit=500),
        "a_max": chen.a_max(jobs, memory, rank=rank),
        "a_min": chen.a_min(jobs, memory, rank=rank),
        "h_sf": chen.h_sf(jobs, memory),
        "a_random": chen.a_random(jobs, memory, rank=rank),
        "a_l": chen.a_l(jobs, memory),
        "a_switch": chen.a_switch(jobs, memory, rank=rank),
    }


SAFE = {"fcfs", "mc_sf", "mc_sf_total", "svf", "a_max", "h_sf", "a_random"}


@pytest.mark.parametrize("seed", range(60))
def test_runs_are_feasible_consistent_and_repeatable(seed: int) -> None:
    jobs, memory = draw(random.Random(seed))
    runs = every_policy(jobs, memory, seed)
    assert runs == every_policy(jobs, memory, seed)
    for name, run in runs.items():
        for job, start, completion in zip(jobs, run.starts, run.completions, strict=True):
            assert (start is None) == (completion is None)
            if start is not None:
                assert start >= job.arrival
                assert completion == start + job.output
        # last runs alone are a part of what was active, so they fit with evictions as well
        finished = [
            (job, start) for job, start in zip(jobs, run.starts, strict=True) if start is not None
        ]
        assert peak([job for job, _ in finished], [start for _, start in finished]) <= memory
        assert (run.outcome == "livelock") == (None in run.starts)
        assert (run.objective is None) == (run.outcome == "livelock")
        if name in SAFE:
            assert run.outcome == "completed"
            assert run.evictions == 0
        if run.objective is not None:
            assert run.objective >= sum(job.output for job in jobs)


@pytest.mark.parametrize("seed", range(40))
def test_policies_that_coincide(seed: int) -> None:
    generator = random.Random(seed)
    jobs, memory = draw(generator)
    plain = [job._replace(lower=None, upper=None) for job in jobs]
    order = sorted(range(len(jobs)), key=lambda i: (jobs[i].prompt, jobs[i].arrival, i))
    rank = [order.index(i) for i in range(len(jobs))]
    shortest = jaillet.mc_sf(plain, memory)
    assert chen.a_min(plain, memory, rank=rank) == shortest
    assert chen.a_max(plain, memory, rank=rank) == shortest
    order = sorted(range(len(jobs)), key=lambda i: (jobs[i].arrival, i))
    rank = [order.index(i) for i in range(len(jobs))]
    assert chen.a_random(plain, memory, rank=rank) == jaillet.fcfs(plain, memory)
    assert chen.a_l(plain, memory) == jaillet.fcfs(plain, memory)
    prompt = min((job.prompt for job in jobs), default=0)
    equal = [job._replace(prompt=prompt) for job in plain]
    assert chen.h_sf(equal, memory) == jaillet.mc_sf(equal, memory)
    assert jaillet.mc_sf_total(equal, memory) == jaillet.mc_sf(equal, memory)
    assert jaillet.svf(equal, memory) == jaillet.mc_sf(equal, memory)


@pytest.mark.parametrize("seed", range(12))
def test_no_policy_beats_the_optimum(seed: int) -> None:
    generator = random.Random(seed)
    memory = generator.randint(4, 7)
    jobs = [Job(0, generator.randint(0, 1), generator.randint(1, 3)) for _ in range(4)]
    best = optimum(jobs, memory, 8)
    for run in every_policy(jobs, memory, seed).values():
        assert run.objective is None or run.objective >= best


def test_no_requests() -> None:
    for run in every_policy([], 5, 0).values():
        assert run == Run([], [], 0, "completed", 0)


def test_certain_coins_are_alpha_protect() -> None:
    generator = random.Random(5)
    for _ in range(40):
        jobs, memory = draw(generator)
        protect = jaillet.alpha_protect(jobs, memory, alpha=0.3)
        beta = jaillet.alpha_beta(jobs, memory, alpha=0.3, coin=lambda: True, round_limit=300)
        assert beta.outcome == protect.outcome
        assert beta.completions == protect.completions


def test_a_min_never_evicts_the_last() -> None:
    generator = random.Random(11)
    for _ in range(100):
        jobs, memory = draw(generator)
        blind = [job._replace(lower=1) for job in jobs]
        assert chen.a_min(blind, memory).outcome == "completed"
