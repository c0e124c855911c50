"""The clock of the simulator in continuous time: a round lasts as long as its batch.

Requests that arrive while a round lasts are seen when it ends.  A server with nothing to do
begins a round as soon as a request arrives; until then it counts rounds of the shortest length,
so that a policy that asked to be woken after some rounds is.
"""

from __future__ import annotations

from kvopt.model.batch_time import BatchTime
from kvopt.policies.base import View


class BatchClock:
    """Nanoseconds that pass with rounds.

    Parameters
    ----------
    batch_time
        How long a round lasts.
    arrivals
        Nanoseconds at which requests arrive.

    Attributes
    ----------
    time
        Nanoseconds at the start of the current round.
    resumed
        Rounds at which an idle server began to work, and when that was.
    """

    def __init__(self, batch_time: BatchTime, arrivals: list[int]) -> None:
        self.arrivals = arrivals
        self.time = 0
        self.resumed: dict[int, int] = {}
        self._batch_time = batch_time
        self._prompts = 0  # tokens to prefill in the round that begins now
        self._idle = True
        self._next: int | None = None  # nanoseconds of the arrival that was asked about last

    def due(self, view: View, i: int) -> int:
        """Return the round that is the first to begin at or after the arrival."""
        self._next = self.arrivals[i]
        gap = self._next - self.time
        if gap <= 0:
            return view.now
        if not view.active:
            return view.now + gap // self._batch_time.least_ns
        low, high = 1, 1 + gap // self._first_ns(view)
        while self._passing_ns(view, high) < gap:
            low, high = high + 1, 2 * high
        while low < high:
            middle = (low + high) // 2
            if self._passing_ns(view, middle) < gap:
                low = middle + 1
            else:
                high = middle
        return view.now + low

    def has_arrived(self, _view: View, i: int) -> bool:
        """Return whether a request is there when the current round begins."""
        return self.arrivals[i] <= self.time

    def started(self, view: View, i: int) -> None:
        """Count the prompt, and note that the server works again."""
        self._prompts += view.prompts[i]
        if self._idle:
            self.resumed[view.now] = self.time
            self._idle = False

    def advance(self, view: View, following: int) -> None:
        """Let rounds pass."""
        rounds = following - view.now
        if view.active:
            self.time += self._passing_ns(view, rounds)
        else:
            self._idle = True
            self.time = self._after_waiting(rounds)
        self._next = None
        self._prompts = 0
        view.now = following

    def _first_ns(self, view: View) -> int:
        return self._batch_time.round_ns(len(view.active), self._prompts, view.next_load)

    def _passing_ns(self, view: View, rounds: int) -> int:
        """Return how long the next rounds take if no request starts or leaves after now."""
        active = len(view.active)
        later = self._batch_time.stretch_ns(active, view.next_load + active, rounds - 1)
        return self._first_ns(view) + later

    def _after_waiting(self, rounds: int) -> int:
        """Return the time after idle rounds, later if the next arrival is less than one off."""
        time, least = self.time + rounds * self._batch_time.least_ns, self._batch_time.least_ns
        if self._next is not None and time < self._next < time + least:
            return self._next
        return time
