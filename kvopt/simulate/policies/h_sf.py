"""Hindsight shortest first: as many as possible at every round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kvopt.problem.arrays import Integers
from kvopt.simulate.policies.base import Policy, View
from kvopt.simulate.policies.fronts import Together, undominated
from kvopt.simulate.policies.lookahead import look_ahead
from kvopt.simulate.policies.phase1 import Candidate
from kvopt.simulate.policies.phase1.batch import columns
from kvopt.simulate.policies.registry import register
from kvopt.simulate.policies.waiting import SortedLine

_QUESTIONS = 10
"""How many questions are asked of the look-ahead where others ask one."""


@register
@dataclass
class HSf(Policy):
    """Start the largest set of waiting requests that fits beside what is running.

    Among largest sets the least sum of outputs wins, then the one that is earlier by
    (output, prompt, arrival, position).  Shortest first finds such a set only where prompts
    are equal, so it is searched for.
    """

    name = "h-sf"
    source = "chen-2025, Algorithm 3"

    def begin(self, view: View) -> None:
        """Start with no waiting request."""
        self._ahead = look_ahead(view.memory, _QUESTIONS * len(view.prompts))
        self._waiting: SortedLine[Candidate] = SortedLine()
        self._prompts: SortedLine[int] = SortedLine()  # of the waiting
        self._wake: int | None = None

    def arrived(self, view: View, i: int) -> None:
        """Wait."""
        self._waiting.add(self._candidate(view, i))
        self._prompts.add(view.prompts[i])

    def finished(self, view: View, i: int, start: int) -> None:
        """Give back what was promised."""
        self._ahead.remove(view.prompts[i], view.beliefs.output[i], start)

    def evicted(self, view: View, i: int, start: int) -> None:
        """Give back what was promised and wait again."""
        self.finished(view, i, start)
        self.arrived(view, i)

    def withdrawn(self, view: View, i: int) -> None:
        """Wait no longer."""
        self._waiting.remove(self._candidate(view, i))
        self._prompts.remove(view.prompts[i])

    def admit(self, view: View) -> Iterable[int]:
        """Start a largest set; when none fits, remember when one may."""
        self._wake = None
        if not len(self._waiting):
            return
        if wait := self._wait(view):
            self._wake = view.now + wait if len(self._ahead) else None
            return
        for candidate in self._chosen(view):
            self._waiting.remove(candidate)
            self._prompts.remove(candidate.prompt)
            self._ahead.add(candidate.prompt, candidate.output, view.now)
            yield candidate.position
        self._wake = view.now + 1 if len(self._waiting) else None

    def wake(self, view: View) -> int | None:
        """Ask again when a request may fit."""
        return self._wake

    def _candidate(self, view: View, i: int) -> Candidate:
        return Candidate(view.beliefs.output[i], view.prompts[i], view.arrivals[i], i)

    def _wait(self, view: View) -> int:
        """Return 0 if a request fits, else a number of rounds in which none does."""
        waiting, narrowest = self._waiting.items(), self._prompts.items()[0]
        if wait := self._ahead.wait(narrowest, waiting[0].output, view.now):
            return wait  # a request larger in both waits no less
        least, prompt = 0, -1
        for candidate in waiting:  # by output: only a smaller prompt can fit better
            if prompt < 0 or candidate.prompt < prompt:
                prompt = candidate.prompt
                wait = self._ahead.wait(prompt, candidate.output, view.now)
                if not wait:
                    return 0
                least = min(least or wait, wait)
            if prompt == narrowest:
                break
        return least

    def _chosen(self, view: View) -> list[Candidate]:
        outputs, prompts, now = view.beliefs.output, view.prompts, view.now
        running = [
            (prompts[i] + now - start, max(outputs[i] + start - now, 1))
            for i, start in view.active.items()
        ]
        waiting = self._waiting.items()
        places = largest_set(*columns(waiting), running, view.memory)
        return [waiting[place] for place in places]


def largest_set(
    prompts: Integers, outputs: Integers, running: Sequence[tuple[int, int]], memory: int
) -> list[int]:
    """Return the places of the largest set that fits, in ascending order.

    Among largest sets the least sum of outputs wins, then the set whose first differing place
    is earlier.

    Parameters
    ----------
    prompts, outputs
        Of waiting requests, by ascending output.
    running
        Of each active request the tokens held now, and the rounds to its believed completion.
    memory
        Tokens that may be held.
    """
    room = memory - sum(held for held, _ in running) - len(running)  # in the next round
    most = int(np.searchsorted((np.sort(prompts) + 1).cumsum(), room, "right"))
    places = undominated(prompts, most)
    together = Together(prompts[places], outputs[places], memory, most, running)
    size, longest = together.largest()
    places = places[undominated(prompts[places], size)]
    together = Together(prompts[places], outputs[places], memory, size, running)
    _, best = together.best(range(size, size + 1), [longest])[size]
    found: list[int] = places[best].tolist()
    return found
