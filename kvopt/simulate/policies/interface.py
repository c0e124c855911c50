"""Interface of policies: parameters, input, and decisions in every round.

The simulator has the clock and the true outputs.  At each round it reports completions and
arrivals to a policy, and asks which requests to evict and to start.  A policy sees prompts,
arrivals and beliefs of arrived requests, and the tokens that active requests have produced.
The numbers of other requests are visible only to a policy that declares it in its `needs`;
for any other policy every use of them raises an error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from fractions import Fraction
from random import Random
from typing import Any, ClassVar

from kvopt.errors import InvalidInput, PolicyFault
from kvopt.kernels.guarding import Extensible, file_of
from kvopt.problem.clocks import ROUNDS, Clock
from kvopt.problem.instance import Instance
from kvopt.problem.predictions import Beliefs, Believed, Intervals, PredictionModel
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Due
from kvopt.timetable.prefix_cache import Cache


class Need(StrEnum):
    """Knowledge that a policy needs beyond prompts and arrivals so far."""

    OUTPUTS = "outputs"
    """A believed output for every request that has arrived."""
    INTERVALS = "intervals"
    """An interval for the output of every request that has arrived."""
    ARRIVALS = "arrivals"
    """Every request in advance."""
    PREFIXES = "prefixes"
    """Which tokens of a prompt no other request shares, those that arrive later included."""
    RANGE = "range"
    """The smallest lower and the largest upper end of all intervals in advance."""
    LP = "lp"
    """An LP solver."""


_OPERATIONS = """
lt le gt ge eq hash bool int index float iter getitem neg abs add radd sub rsub mul rmul
truediv rtruediv floordiv rfloordiv mod rmod
"""


class Hidden:
    """Placeholder for a number that a policy may not know; any use raises.

    Parameters
    ----------
    policy
        The policy.
    what, remedy
        Its meaning, and how a policy may use it.
    """

    def __init__(self, policy: Policy, what: str, remedy: str) -> None:
        self._policy, self._what, self._remedy = policy, what, remedy

    def __repr__(self) -> str:
        return self._what

    def _refuse(self, *_: object) -> Any:
        place = file_of(type(self._policy)) or type(self._policy).__name__
        reason = f"uses {self._what}: {self._remedy} among its needs"
        raise PolicyFault(f"{place}: {self._policy.name}: {reason}")


for _operation in _OPERATIONS.split():
    setattr(Hidden, f"__{_operation}__", Hidden._refuse)


class View:
    """The information of a policy, kept up to date by the simulator.

    Parameters
    ----------
    instance
        The problem; outputs are replaced by beliefs.
    beliefs
        Beliefs about outputs.

    Attributes
    ----------
    now
        The round.
    active
        Start round of each active request.
    waiting
        Positions of the requests that wait.  It changes with each start.
    arrivals, prompts
        Those of each request, by position; the number of requests is known.
    private
        Prompt tokens of each request that no other one shares, for `Need.PREFIXES` alone.
    cache
        Computed tokens of shared prefixes in seconds; None in rounds.
    padding
        Tokens that each request counts beyond its own, so that what fits does in whole blocks.
    range
        The smallest lower and the largest upper end of all intervals.
    clock, time
        How long rounds last, and when this one begins.
    due
        When the tokens of each request are due, from its arrival on.
    """

    # Nodes of prefixes follow from later arrivals too: only look-ahead may use them, whose
    # answers do not depend on how private tokens and nodes are divided.

    def __init__(self, instance: Instance, beliefs: Beliefs) -> None:
        self.memory = instance.memory
        self.arrivals = [request.arrival for request in instance]
        self.prompts = [request.prompt for request in instance]
        forest = instance.forest
        self._private, self._paths = list(forest.private), list(forest.paths)
        self._weights = list(forest.weights)
        self._users = [0] * len(self._weights)
        self.private = self._private
        self.beliefs = beliefs
        self.range = min(beliefs.lower, default=1), max(beliefs.upper, default=1)
        self.now = 0
        self.active: dict[int, int] = {}
        self.waiting: set[int] = set()
        self.padding = 0
        self.cache: Cache | None = None
        self.clock: Clock = ROUNDS
        self.time = 0
        self.due: defaultdict[int, Due] = defaultdict(Due)
        self._base = 0  # sum of private - start over active requests, and of nodes that they use

    @property
    def columns(self) -> tuple[list[Any], ...]:
        """Data of each request from its arrival on, by position."""
        believed = self.beliefs.output, self.beliefs.lower, self.beliefs.upper
        return self.prompts, self._private, self._paths, *believed

    def before_arrivals(self, policy: Policy) -> View:
        """Return the view before anything arrives."""
        if Need.ARRIVALS in policy.needs:
            return self
        what = "a number of a request that has not arrived"
        hidden: Any = Hidden(policy, what, "wait for arrived(view, i), or write Need.ARRIVALS")
        view = View(Instance(self.memory, []), Beliefs([], [], []))
        for column in (view.arrivals, *view.columns):
            column += [hidden] * len(self.prompts)
        view._weights, view._users = self._weights, self._users
        if Need.PREFIXES not in policy.needs:
            what = "tokens of a prompt that no other request shares"
            unknown: Any = Hidden(policy, what, "write Need.PREFIXES")
            view.private = unknown
        view.range = self.range if Need.RANGE in policy.needs else hidden
        return view

    @property
    def next_load(self) -> int:
        """Tokens held in the next round without starts or evictions now."""
        return self._base + len(self.active) * (self.now + 1)

    @property
    def next_held(self) -> int:
        """Tokens held in the next round, without padding."""
        return self.next_load - self.padding * len(self.active)

    def add_node(self, tokens: int) -> int:
        """Add a node that was not known in advance, and return it."""
        self._weights.append(tokens)
        self._users.append(0)
        return len(self._weights) - 1

    def generated(self, i: int) -> int:
        """Return the tokens that an active request has produced so far."""
        return self.now - self.active[i]

    def matched(self, i: int) -> int:
        """Return the tokens of a request's prefix that active requests hold."""
        return sum(self._weights[v] for v in self._paths[i] if self._users[v])

    def cached(self, i: int) -> int:
        """Return the tokens of a request's prefix that need no work; in rounds, those held."""
        return self.matched(i) if self.cache is None else self.cache.matched(i)

    def start(self, i: int) -> int:
        """Make a request active; return the tokens of its prompt to process."""
        self.active[i] = self.now
        self._base += self.prompts[i] - self.matched(i) - self.now
        for v in self._paths[i]:
            self._users[v] += 1
        processed = self.prompts[i] if self.cache is None else self.cache.start(i)
        return processed - self.padding

    def stop(self, i: int) -> int:
        """Make a request inactive and return its start."""
        start = self.active.pop(i)
        for v in self._paths[i]:
            self._users[v] -= 1
        self._base -= self.prompts[i] - self.matched(i) - start
        if self.cache is not None:
            self.cache.stop(i, self.now, self._private[i] + self.now - start)
        return start


@dataclass
class Policy(Extensible, ABC):
    """One scheduler.  Subclasses are dataclasses: their fields are their parameters.

    Parameters
    ----------
    pred, intervals, eps, width
        The prediction model, see `kvopt.problem.predictions`.
    seed
        Seed of noise and of random choices of the paper.
    """

    name: ClassVar[str]
    """Its name in commands."""
    source: ClassVar[str] = "-"
    """Paper and algorithm."""
    needs: ClassVar[tuple[Need, ...]] = (Need.OUTPUTS,)
    """Data that it needs."""
    draws: ClassVar[bool] = False
    """Whether it draws random numbers while it runs, so that a repeated state is not a loop."""
    presets: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Values of its parameters by the name of a preset, as on the command line."""

    pred: Believed = field(default="exact", kw_only=True)
    intervals: Intervals = field(default="file", kw_only=True)
    eps: Fraction = field(default=Fraction(0), kw_only=True)
    width: int | None = field(default=None, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    def prediction_model(self) -> PredictionModel:
        """Return the model that its parameters describe."""
        return PredictionModel(self.pred, self.intervals, self.eps, self.width, self.seed)

    def scope(self, *, rounds: bool) -> Scope:
        """Return the scope that the policy may use, on a clock of rounds or of seconds."""
        return Scope.RESTARTS

    def parameters(self) -> dict[str, Any]:
        """Return its parameters by name."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.init}

    def begin(self, view: View) -> None:
        """Reset the state for a run."""

    def arrived(self, view: View, i: int) -> None:
        """Record an arrival."""

    def finished(self, view: View, i: int, start: int) -> None:
        """Record a completion."""

    def evict(self, view: View) -> Iterable[int]:
        """Return active requests to evict, before the starts of this round."""
        return list(view.active) if view.next_load > view.memory else ()

    def evicted(self, view: View, i: int, start: int) -> None:
        """Record an eviction: the request waits again and its tokens are lost."""

    def withdrawn(self, view: View, i: int) -> None:
        """Forget a waiting request that another worker of a fleet has started."""
        raise InvalidInput(
            "has no method withdrawn, which forgets what another worker started", field=self.name
        )

    @abstractmethod
    def admit(self, view: View) -> Iterable[int]:
        """Return waiting requests to start in this round."""

    def wake(self, view: View) -> int | None:
        """Return a later round at which to decide again without an event before."""
        return None

    def learned(self) -> Hashable:
        """Return the learned state, part of the state that a loop repeats."""
        return None

    def note(self) -> str | None:
        """Return notes for readers of the run."""
        return None

    def round_limit(self, instance: Instance) -> int | None:
        """Return a round after which a run counts as endless, None for no such round."""
        return None


def fraction_below_one(value: Fraction, field: str) -> None:
    """Raise an error if a share is not in [0, 1)."""
    if not 0 <= value < 1:
        raise InvalidInput(f"must be at least 0 and below 1, got {value}", field=field)


def shuffled_ranks(count: int, seed: int) -> list[int]:
    """Return a random place for each request, which breaks ties "at random"."""
    ranks = list(range(count))
    Random(seed).shuffle(ranks)
    return ranks
