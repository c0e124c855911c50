"""Check the claim that there is one eager schedule of whole prompts."""

from __future__ import annotations

from collections import Counter, defaultdict

from kvopt.verify.certified_problem import Clock, Problem
from kvopt.verify.step_budget import Invalid, Work, refuse


def check_eager(problem: Problem, value: int, work: Work) -> str:
    """Replay the eager schedule; return the line about it.

    Every round holds all requests that are there.  If they always fit, no eager schedule can differ
    from it: it has no choice.
    """
    requests, clock, block = problem.requests, problem.clock, problem.block
    if clock is None or problem.workers > 1 or problem.paths:
        raise Invalid("eager: is of one machine in seconds, without prefixes")
    waiting = sorted(range(len(requests)), key=lambda i: -requests[i].arrival)
    weights = problem.weights or (1,) * len(requests)
    due: dict[int, list[int]] = defaultdict(list)  # requests by their last round
    taken: Counter[int] = Counter()  # active requests by the remainder of tokens less rounds
    number = now = active = held = total = 0
    work.part = "eager: "
    while waiting or active:
        now = now if active else max(now, requests[waiting[-1]].arrival)
        prompts = 0
        while waiting and requests[waiting[-1]].arrival <= now:
            i = waiting.pop()
            arrival, prompt, output = requests[i]
            active, held, prompts = active + 1, held + prompt, prompts + prompt
            due[number + output].append(i)
            taken[(prompt - number) % block] += 1
            total -= weights[i] * arrival
        # Rounds in a row: up to the first that begins with an arrival, or to a completion.
        first = clock.line(active + prompts) + clock.prompt * prompts + clock.kv * (held + active)
        last, wanted = min(due) - number, requests[waiting[-1]].arrival - now if waiting else None
        rounds = 1 if wanted is not None and first >= wanted else last
        low = 1
        while wanted is not None and low < rounds:  # the least that last as long as wanted
            middle = (low + rounds) // 2
            if first + _lasting(clock, active, held, middle) >= wanted:
                rounds = middle
            else:
                low = middle + 1
        now += first + _lasting(clock, active, held, rounds)
        number, held = number + rounds, held + rounds * active
        # Tokens only grow in these rounds: the last one holds most, with whole blocks rounded up.
        rest = sum(many * (-(before + number) % block) for before, many in taken.items())
        work.spend(100 + (block > 1) * len(taken))
        is_limited = problem.max_active is not None and active > problem.max_active
        if is_limited or (held + rest) // block > problem.memory // block:
            raise Invalid(f"eager: {active:,} requests are there at round {number:,}, too many")
        for i in due.pop(number, ()):
            _, prompt, output = requests[i]
            active, held, total = active - 1, held - prompt - output, total + weights[i] * now
            taken[(prompt + output - number) % block] -= 1
    refuse(value != total, f"eager: says {value:,}, its replay gives {total:,}")
    return f"  eager {value:,}: its replay gives it, and no request waits"


def _lasting(clock: Clock, active: int, held: int, rounds: int) -> int:
    """Return the length of all rounds in a row but the first one.

    In the j-th of them, j = 2, 3, .., each request holds j tokens more than before the first.
    """
    grown = active * ((rounds + 1) * rounds // 2 - 1)
    return (rounds - 1) * (clock.line(active) + clock.kv * held) + clock.kv * grown
