"""Schedulers of real servers: they admit by free memory, and pause requests with tokens kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import add
from typing import ClassVar, Literal

from kvopt.errors import InvalidInput
from kvopt.problem.instance import Instance
from kvopt.problem.requests import checked_integer, volume_of
from kvopt.problem.scopes import Scope
from kvopt.show.summary import counted
from kvopt.simulate.policies.by_name import register
from kvopt.simulate.policies.interface import Policy, View, fraction_below_one

_VLLM_PRESETS = {
    "serve-h100": {"budget": "8192", "max_seqs": "1024", "asynchronous": "1"},
    "serve-a100": {"budget": "2048", "max_seqs": "256", "asynchronous": "1"},
    "serve-b200": {"budget": "16384", "max_seqs": "1024", "asynchronous": "1"},
    "serve-h100-0.13": {"budget": "8192", "max_seqs": "1024", "asynchronous": "0"},
    "serve-a100-0.13": {"budget": "2048", "max_seqs": "256", "asynchronous": "0"},
}
"""Defaults of ``vllm serve`` by GPU; ``docs/servers.md`` has the versions and the source."""
_SGLANG_PRESETS = {
    "serve-h100": {"prefill": "8192", "max_running": "2048"},
    "serve-b200": {"prefill": "16384", "max_running": "2048"},
    "serve-a10": {"prefill": "4096", "max_running": "2048"},
}
"""Those of SGLang by memory of the GPU."""


def uncovered(needed: Scope) -> str:
    """Return the reason why runs of a policy are not compared with a bound of a narrower scope."""
    does = {
        Scope.PAUSES: "pauses requests with tokens kept",
        Scope.CHUNKS: "processes prompts in pieces",
        Scope.PAUSES_AND_CHUNKS: "pauses requests and processes prompts in pieces",
    }[needed]
    return f"{does}, which the bound to judge it by does not cover; the scope {needed} does"


class PausingPolicy(Policy):
    """A scheduler that interrupts requests and keeps their tokens, with a simulator of its own."""

    block_field: ClassVar[str] = "block"
    """Name of the parameter for the tokens of a block."""
    active_field: ClassVar[str] = "max_seqs"
    """Name of the parameter for the limit of requests that run at once on a machine."""

    @property
    def block_tokens(self) -> int:
        """Tokens of a block."""
        return int(getattr(self, self.block_field))

    @property
    def active_limit(self) -> int:
        """Limit of the requests that run at once on a machine."""
        return int(getattr(self, self.active_field))

    def admit(self, view: View) -> Iterable[int]:
        """Raise an error: admission depends on blocks, which only its own simulator has."""
        raise InvalidInput("is a server of its own and admits for no other", field=self.name)

    def scope(self, *, rounds: bool) -> Scope:
        """Return the scope that the server may use: pauses."""
        return Scope.PAUSES


@dataclass
class ServerPolicy(PausingPolicy):
    """A scheduler that is simulated with the limits of a server, by `kvopt.simulate.block_server`.

    Parameters
    ----------
    block
        Tokens of a block; memory is given out in whole blocks.
    max_seqs
        Most requests that run at once.
    budget
        Most tokens that a round processes, one for each request that yields one.
    chunked
        Whether a prompt that exceeds the budget may be processed in pieces.
    watermark
        Share of the blocks that must stay free when a request joins others.
    asynchronous
        Whether a round is planned before the tokens of the last one are known.
    prompts
        Most prompts that a round processes; vLLM has no such limit.
    victims
        Which request pauses if blocks run out: the ``last`` in line, or that with the fewest
        computed tokens (``least-computed``), as issue 54644 of vLLM proposes.
    """

    source = "vLLM 0.33.0, v1 scheduler"
    presets = _VLLM_PRESETS

    block: int = 16
    max_seqs: int = 1024
    budget: int = 2048
    chunked: bool = True
    watermark: Fraction = Fraction(0)
    asynchronous: bool = False
    prompts: int | None = None
    victims: Literal["last", "least-computed"] = "last"

    def __post_init__(self) -> None:
        for name in ("block", "max_seqs", "prompts"):
            if (value := getattr(self, name)) is not None:
                checked_integer(value, name, 1)
        fraction_below_one(self.watermark, "watermark")
        if self.budget < self.max_seqs:  # vLLM refuses it as well
            reason = f"must be at least max_seqs, {self.max_seqs}, got {self.budget}"
            raise InvalidInput(reason, field="budget")

    def scope(self, *, rounds: bool) -> Scope:
        """Return the scope that the server may use: pauses, and in seconds prompts in pieces."""
        return Scope.PAUSES if rounds or not self.chunked else Scope.PAUSES_AND_CHUNKS

    @property
    def limits(self) -> str:
        """Limits of a round, in words."""
        more = "" if self.prompts is None else f", {counted(self.prompts, 'prompt')} a round"
        more += ", asynchronous" if self.asynchronous else ""
        return f"budget {self.budget:,}, {counted(self.max_seqs, 'request')}{more}"

    @abstractmethod
    def priorities(self, instance: Instance) -> Sequence[int]:
        """Return a key for each request: the smallest is admitted first, the largest pauses."""


@register
@dataclass
class VllmFcfs(ServerPolicy):
    """Admit by arrival requests that fit now; if blocks run out the last admitted pauses."""

    name = "vllm-fcfs"
    needs = ()

    def priorities(self, instance: Instance) -> Sequence[int]:
        """Return the same key for all: the arrival decides."""
        return [0] * len(instance)


@register
@dataclass
class VllmPriority(ServerPolicy):
    """Admit by priority requests that fit now; if blocks run out the largest priority pauses.

    Parameters
    ----------
    by
        The priority: the believed ``output``, its token-rounds (``volume``), prompt and believed
        output (``total``), the ``prompt``, the middle of its interval (``prediction``), or the
        field of the requests (``priority``).
    """

    name = "vllm-priority"

    by: Literal["output", "volume", "total", "prompt", "prediction", "priority"] = "output"

    def priorities(self, instance: Instance) -> Sequence[int]:
        """Return the priorities by ``by``; ties are broken by arrival."""
        if self.by == "priority":
            if len(instance) and all(request.priority is None for request in instance):
                reason = "no request has a priority: take output, volume or prediction"
                raise InvalidInput(reason, field="by")
            return [request.priority or 0 for request in instance]  # as in vLLM
        prompts = [request.prompt for request in instance]
        if self.by == "prompt":
            return prompts
        beliefs = self.prediction_model().beliefs(instance)
        if self.by == "prediction":
            return [sum(ends) // 2 for ends in zip(beliefs.lower, beliefs.upper, strict=True)]
        if self.by == "output":
            return beliefs.output
        measure = add if self.by == "total" else volume_of
        return list(map(measure, prompts, beliefs.output))


@register
@dataclass
class Sglang(PausingPolicy):
    """Admit by a share of the tokens to come; if memory runs out the youngest are retracted.

    It is simulated by `kvopt.simulate.sglang`.

    Parameters
    ----------
    page
        Tokens of a page; memory is given out in whole pages.
    max_running
        Most requests that run at once.
    prefill
        Most tokens of prompts in a round.
    conservative
        Factor on the reserved share of the tokens that running requests may still produce.
    mixed
        Whether running requests yield tokens while prompts are processed.
    order
        The line: by arrival, or the longest cached prefix first (``lpm``).
    """

    name = "sglang"
    source = "SGLang, schedule_policy and retract_decode"
    presets = _SGLANG_PRESETS
    block_field, active_field = "page", "max_running"

    page: int = 1
    max_running: int = 1024
    prefill: int = 16384
    conservative: Fraction = Fraction(1)
    mixed: bool = False
    order: Literal["fcfs", "lpm"] = "fcfs"

    def __post_init__(self) -> None:
        for name in ("page", "max_running", "prefill"):
            checked_integer(getattr(self, name), name, 1)
        if self.conservative <= 0:
            raise InvalidInput(f"must be above 0, got {self.conservative}", field="conservative")
