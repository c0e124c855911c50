"""Orders by arrival, output, volume or prefix, up to the first that does not fit or past it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm

from kvopt.errors import InvalidInput
from kvopt.problem.requests import LARGEST_INTEGER, checked_integer, volume_of
from kvopt.simulate.policies.by_name import register
from kvopt.simulate.policies.in_line import Key, PrefixPolicy, ShuffledPolicy
from kvopt.simulate.policies.interface import Need, View, fraction_below_one


@register
@dataclass
class Fcfs(PrefixPolicy):
    """Scan by arrival, with look-ahead, up to the first that does not fit (no server's FCFS).

    A server's first come, first served knows no output before its end.  This one looks ahead with
    the believed outputs, by default the true ones: then no request that it starts is ever
    evicted.
    """

    name = "fcfs"
    source = "jaillet-2025-v2, Algorithm 2"

    def key(self, view: View, i: int) -> Key:
        """Return the arrival: ties are broken by position alone."""
        return (view.arrivals[i],)

    full_key = key


@register
@dataclass
class Paced(Fcfs):
    """Scan requests by arrival with look-ahead, and start at most one every ``gap`` rounds.

    Requests that start together end together, and the cache is full only then.  If they start one
    after another, some are young while others are old, and more of them share the cache.

    Parameters
    ----------
    gap
        Least number of rounds from one start to the next.
    """

    name = "paced"
    source = "kvopt, theory.md in benchmarks/findings"

    gap: int = 1

    def __post_init__(self) -> None:
        checked_integer(self.gap, "gap", 1)

    def begin(self, view: View) -> None:
        """Start without a last start."""
        super().begin(view)
        self._next = 0

    def admit(self, view: View) -> Iterable[int]:
        """Start the first in line if it fits and the gap is over."""
        self._wake = None
        if view.now >= self._next:
            for i in super().admit(view):
                self._next = view.now + self.gap
                yield i
                break
        if len(self._line) and view.now < self._next:
            self._wake = self._next


@register
@dataclass
class McSf(PrefixPolicy):
    """Scan requests by believed output and stop at the first that does not fit (MC-SF).

    Parameters
    ----------
    alpha
        Share of the memory kept free when outputs are predicted (section 5.2.2): promises
        stay within ``(1 - alpha) M``.

    Notes
    -----
    With predictions it may loop.  After evictions requests with true beliefs finish, and the
    others remain at the front of the line, in the order of their beliefs.  Once memory overflows
    before one of these ends, the same repeats for ever.  Long backlogs reach this state in spite
    of a margin.
    """

    name = "mc-sf"
    source = "jaillet-2025-v2, Algorithm 1 and section 5.2.2"

    alpha: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        fraction_below_one(self.alpha, "alpha")

    def capacity(self, view: View) -> int:
        """Return the memory without the margin."""
        return int((1 - self.alpha) * view.memory)

    def key(self, view: View, i: int) -> Key:
        """Return the believed output."""
        return (view.beliefs.output[i],)


@register
@dataclass
class McSfTotal(PrefixPolicy):
    """Scan requests by prompt plus believed output and stop at the first that does not fit."""

    name = "mc-sf-total"
    source = "wang-2025, Theorem 8.2"

    def key(self, view: View, i: int) -> Key:
        """Return the believed peak."""
        return (view.prompts[i] + view.beliefs.output[i],)


@register
@dataclass
class Svf(PrefixPolicy):
    """Scan requests by believed token-rounds and stop at the first that does not fit."""

    name = "svf"
    source = "arXiv 2606.22327"

    def key(self, view: View, i: int) -> Key:
        """Return the volume ``s o + o (o + 1) / 2``."""
        return (volume_of(view.prompts[i], view.beliefs.output[i]),)


@register
@dataclass
class SvfOneBit(PrefixPolicy):
    """Scan requests by token-rounds as if all short outputs were one length, and all long ones.

    The order knows one bit of each output: whether it is above the threshold.  The look-ahead
    counts believed outputs, as in svf.

    Parameters
    ----------
    threshold
        Largest output that is short.
    short, long
        Lengths to count with; the paper takes the mean output of each class.
    """

    name = "svf-1bit"
    source = "arXiv 2606.22327, section 2.2"

    threshold: int
    short: Fraction
    long: Fraction

    def __post_init__(self) -> None:
        checked_integer(self.threshold, "threshold", 1)
        if not 1 <= self.short <= self.threshold:
            reason = f"must be at least 1 and at most threshold, {self.threshold}, got {self.short}"
            raise InvalidInput(reason, field="short")
        if not self.long > self.threshold:
            reason = f"must be above threshold, {self.threshold}, got {self.long}"
            raise InvalidInput(reason, field="long")

    def begin(self, view: View) -> None:
        """Start with an empty line."""
        super().begin(view)
        self._scale = lcm(self.short.denominator, self.long.denominator)

    def key(self, view: View, i: int) -> Key:
        """Return the volume of the class, times twice the square of a common denominator."""
        length = self.long if view.beliefs.output[i] > self.threshold else self.short
        scaled = int(length * self._scale)
        return (scaled * (2 * view.prompts[i] * self._scale + scaled + self._scale),)


@register
@dataclass
class ARandom(ShuffledPolicy):
    """Admit in the order of one random permutation and stop at the first that does not fit.

    Parameters
    ----------
    memory
        Tokens it may use, if less than M: the paper couples it on ``alpha M``.
    """

    name = "a-random"
    source = "chen-2025, Algorithm 4"

    memory: int | None = None

    def __post_init__(self) -> None:
        if self.memory is not None:
            checked_integer(self.memory, "memory", 1)

    def capacity(self, view: View) -> int:
        """Return M, or the smaller requested memory."""
        return view.memory if self.memory is None else min(self.memory, view.memory)

    def key(self, view: View, i: int) -> Key:
        """Return the place in the permutation."""
        return (self._rank[i],)


@register
@dataclass
class SvfPrivate(PrefixPolicy):
    """Scan requests by believed token-rounds of their private tokens, with later sharers known."""

    name = "svf-private"
    source = "kvopt"
    needs = (Need.OUTPUTS, Need.PREFIXES)

    def key(self, view: View, i: int) -> Key:
        """Return the volume, of private tokens and output."""
        return (volume_of(view.private[i], view.beliefs.output[i]),)


@register
@dataclass
class KLpm(Fcfs):
    """Start the oldest request, then k - 1 times the one with the longest held prefix.

    It stops at the first that does not fit.  Of equal matches the older request goes first.

    Parameters
    ----------
    k
        Every k-th start is the oldest; 1 is first come, first served.
    """

    name = "k-lpm"
    source = "arXiv 2502.04677, k-LPM"

    k: int

    def __post_init__(self) -> None:
        checked_integer(self.k, "k", 1)

    def begin(self, view: View) -> None:
        """Start with an empty line."""
        super().begin(view)
        self._started = 0

    def learned(self) -> int:
        """Return the number of starts since the last turn of the oldest."""
        return self._started % self.k

    def _turn(self, view: View) -> int:
        """Return the place of the request whose turn it is."""
        if self._started % self.k == 0:
            return -1
        line = self._line.items()
        return max(range(-1, -len(line) - 1, -1), key=lambda place: view.cached(line[place][-1]))

    def admit(self, view: View) -> Iterable[int]:
        """Start one after the other until one does not fit."""
        self._refused = None  # what others hold may let it fit earlier
        for i in super().admit(view):
            self._started += 1
            yield i


@register
@dataclass
class Lpm(KLpm):
    """Start the request with the longest held prefix (longest prefix match), then the next one.

    It stops at the first that does not fit.  Of equal matches the older request goes first.
    """

    name = "lpm"
    source = "SGLang (arXiv 2312.07104)"

    k: int = field(default=LARGEST_INTEGER, init=False)

    def begin(self, view: View) -> None:
        """Start with an empty line, and no turn of the oldest."""
        super().begin(view)
        self._started = 1

    def learned(self) -> int:
        """Return nothing that changes: the oldest never has a turn."""
        return 0


# ---- past requests that do not fit --------------------------------------------------------


@register
@dataclass
class Patient(Svf):
    """Scan the first in line by believed token-rounds and start those that fit.

    Parameters
    ----------
    window
        Limit of the requests that do not fit.
    patience
        How often later requests may pass the first in line; then they wait for it.

    Notes
    -----
    Memory that the first in line cannot use is not wasted, as in `svf`; and large requests are
    not postponed to the end, as without a limit to patience.  Beams have this rule in compiled
    loops (`kvopt.heuristics.patient_dispatch`), which take a fiftieth of the time: 0.015 s for
    10,000 requests.  But loading them takes 0.7 s, as long as that run here.
    """

    name = "patient"
    source = "kvopt"

    window: int = 32
    patience: int = 16

    def __post_init__(self) -> None:
        checked_integer(self.window, "window", 1)
        checked_integer(self.patience, "patience", 0)

    def begin(self, view: View) -> None:
        """Start with an empty line."""
        super().begin(view)
        self._passed: Counter[int] = Counter()

    def learned(self) -> Hashable:
        """Return how often each was passed over, on which decisions depend."""
        return frozenset(self._passed.items())

    def admit(self, view: View) -> Iterable[int]:
        """Start requests that fit among the first in line, until one was passed over too often.

        Only the first in line counts starts past it: one behind others may be passed more often.
        """
        line, passed, place = self._line.items(), self._passed, 0
        while place < min(len(line), self.window):
            first, i = line[-1][-1], line[-1 - place][-1]
            if place and passed[first] >= self.patience:
                return
            # The look-ahead would refuse it too, but takes longer.
            no_room = view.next_load + view.prompts[i] - view.matched(i) + 1 > view.memory
            if no_room or self.waits(view, i):
                place += 1
                continue
            if place:
                passed[first] += 1
            del line[-1 - place]
            self.promise(view, i)
            yield i


@dataclass
class LeastShare(Patient):
    """Scan the first in line by their share of the machine, and start those that fit.

    Every request that is passed over counts, not only the first in line, and one that was passed
    over too often ends the round.  It knows all outputs, like the bound, and has no name for
    commands: it searches for schedules, not for an online policy.

    Parameters
    ----------
    takes
        Machine time of each request.
    """

    name = "least-share"
    source = "the order in which the fluid of the bound serves requests"
    takes: Sequence[int] = field(default=(), kw_only=True)

    def key(self, view: View, i: int) -> Key:
        """Return the share of the request."""
        return (self.takes[i],)

    def admit(self, view: View) -> Iterable[int]:
        """Start requests that fit, in the order of the line."""
        line, place, waits = self._line.items(), 0, list[int]()
        while place < min(len(line), self.window):
            i = line[-1 - place][-1]
            if wait := self.waits(view, i):
                waits.append(wait)
                place += 1
                if self._passed[i] >= self.patience:
                    break
                continue
            self._passed.update(before[-1] for before in line[len(line) - place :])
            del line[-1 - place]
            self.promise(view, i)
            yield i
        # Alone every request fits: with nothing active none has to wait.
        self._wake = view.now + min(waits) if waits else None
