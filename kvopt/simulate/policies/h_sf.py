"""Hindsight shortest first: as many as possible at every round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from kvopt.problem.arrays import Integers
from kvopt.simulate.policies.by_name import register
from kvopt.simulate.policies.in_line import AheadPolicy, SortedLine
from kvopt.simulate.policies.interface import View
from kvopt.simulate.policies.phase1 import Candidate, columns
from kvopt.simulate.policies.startable_sets import FEW_ENTRIES, Together, undominated


@register
@dataclass
class HSf(AheadPolicy):
    """Start the largest set of waiting requests that fits with the running ones.

    Among largest sets the least sum of outputs wins, then the one that is earlier by
    (output, prompt, arrival, position).  Shortest first finds such a set only if prompts
    are equal, so it is searched for.  Held nodes of shared prefixes count once; the set to start
    counts whole prompts.
    """

    name = "h-sf"
    source = "chen-2025, Algorithm 3"

    def begin(self, view: View) -> None:
        """Start with no waiting request."""
        super().begin(view)
        self._waiting: SortedLine[Candidate] = SortedLine()
        self._prompts: SortedLine[int] = SortedLine()

    def arrived(self, view: View, i: int) -> None:
        """Wait."""
        self._waiting.add(self._candidate(view, i))
        self._prompts.add(view.prompts[i])

    def withdrawn(self, view: View, i: int) -> None:
        """Wait no longer."""
        self._waiting.remove(self._candidate(view, i))
        self._prompts.remove(view.prompts[i])

    def admit(self, view: View) -> Iterable[int]:
        """Start a largest set; if none fits, store the round at which one may."""
        self._wake = None
        waiting = self._waiting.items()
        if not waiting or self._none_fits(view, waiting):
            return
        for candidate in self._chosen(view, waiting[::-1]):
            self.withdrawn(view, candidate.position)
            self.promise(view, candidate.position)
            yield candidate.position
        self._wake = view.now + 1 if len(self._waiting) else None

    def _candidate(self, view: View, i: int) -> Candidate:
        return Candidate(view.beliefs.output[i], view.prompts[i], view.arrivals[i], i)

    def _none_fits(self, view: View, waiting: list[Candidate]) -> bool:
        """Whether no request fits, to be woken before the first one may."""
        narrowest = self._prompts.items()[-1]
        wait = self._ahead.wait(narrowest, waiting[-1].output, view.now)
        if self._must_wait(view, wait):
            return True  # a request that is larger in both waits at least as long
        shortest, prompt = 0, -1
        for candidate in reversed(waiting):  # by output: only a smaller prompt can fit better
            if prompt < 0 or candidate.prompt < prompt:
                prompt = candidate.prompt
                wait = self._ahead.wait(prompt, candidate.output, view.now)
                if not wait:
                    return False
                shortest = min(shortest or wait, wait)
            if prompt == narrowest:
                break
        self._wake = view.now + shortest if len(self._ahead) else None
        return True

    def _chosen(self, view: View, waiting: list[Candidate]) -> list[Candidate]:
        """Return the largest set; a node counts with the user that completes last."""
        outputs, now, counted, running = view.beliefs.output, view.now, set[int](), []
        ends = {i: max(outputs[i] + start, now + 1) for i, start in view.active.items()}
        for i in sorted(ends, key=ends.__getitem__, reverse=True):
            mine = {*view._paths[i]} - counted  # a node is held until the last of its users ends
            counted |= mine
            held = view._private[i] + sum(view._weights[v] for v in mine)
            running.append((held + now - view.active[i], ends[i] - now))
        places = largest_set(*columns(waiting), running, view.memory)
        return [waiting[place] for place in places]


def largest_set(
    prompts: Integers,
    outputs: Integers,
    running: Sequence[tuple[int, int]],
    memory: int,
    few_entries: int = FEW_ENTRIES,
) -> list[int]:
    """Return the places of the largest set that fits, in ascending order.

    Among largest sets the least sum of outputs wins, then the set whose first differing place
    is earlier.

    Parameters
    ----------
    prompts, outputs
        Those of waiting requests, by ascending output.
    running
        Tokens held now by each active request, and the rounds to its believed completion.
    memory
        Tokens that may be held.
    few_entries
        As of `Together`.
    """
    room = memory - sum(held for held, _ in running) - len(running)  # in the next round
    limit = int(np.searchsorted((np.sort(prompts) + 1).cumsum(), room, "right"))
    # Earlier requests with prompts that are not longer are in the best set with a member, or could
    # replace it.  So a member has fewer of them than ``limit``, and, once known, than ``size``.
    places = undominated(prompts, limit)
    together = partial(Together, memory=memory, running=running, few_entries=few_entries)
    size = together(prompts[places], outputs[places], limit=limit).largest()
    places = places[undominated(prompts[places], size)]
    _, best = together(prompts[places], outputs[places], limit=size).best(size)[size]
    chosen: list[int] = places[best].tolist()
    return chosen
