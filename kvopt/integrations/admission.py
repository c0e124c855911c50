"""A kvopt policy decides which requests vLLM may admit; vLLM does the rest.

vLLM keeps control of blocks, the token budget and preemption, so a wrong prediction costs time and
breaks nothing.  A request may state its believed output, as ``"vllm_xargs": {"output": 120}``; the
default is its ``max_tokens``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

from kvopt.errors import InvalidInput
from kvopt.problem.instance import Instance
from kvopt.problem.predictions import Beliefs
from kvopt.simulate.policies.by_name import policy as policy_from
from kvopt.simulate.policies.interface import Need, View
from kvopt.simulate.policies.server_policies import PausingPolicy

POLICY = "KVOPT_POLICY"
"""Environment variable with the policy; by default `svf`."""
SLACK = "KVOPT_SLACK"
"""Environment variable with the tokens that every request is promised in addition to its own."""


class Admission:
    """A gate before a scheduler of vLLM, which sees only requests started by the policy.

    Promises are in tokens, memory is in whole blocks: every request is promised half a block more,
    the average waste of its last block.  With a block less a token no promise of true outputs is
    broken; with less than half a block more requests start, and more are preempted.
    With prefix caching a block that an earlier request names too is promised once, from the second
    request on.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        label = os.environ.get(POLICY, "svf")
        self._policy = policy_from(label)
        in_advance = {Need.ARRIVALS, Need.LP}.intersection(self._policy.needs)
        if in_advance or isinstance(self._policy, PausingPolicy):
            raise InvalidInput("cannot admit requests one by one", field=f"{POLICY} {label}")
        scheduler: Any = self
        if scheduler.policy.value != "fcfs":
            raise InvalidInput("goes with --scheduling-policy fcfs", field=POLICY)
        memory = (scheduler.kv_cache_manager.block_pool.num_gpu_blocks - 1) * scheduler.block_size
        self._slack = _slack(scheduler.block_size // 2)
        self.kvopt_admission = {"admission": label, "slack": self._slack}
        self._view = View(Instance(memory, []), Beliefs([], [], []))
        self._policy.begin(self._view)
        self._names: list[str] = []  # by place
        self._places: dict[str, int] = {}  # of requests that are not done
        self._started: dict[str, None] = {}  # started by the policy, in its order
        self._shared = _Shared(self._view, scheduler.hash_block_size)
        self._shares = bool(scheduler.cache_config.enable_prefix_caching)

    def add_request(self, request: Any) -> None:
        """Tell the policy of a request."""
        super().add_request(request)  # type: ignore[misc]
        view, place = self._view, len(self._view.prompts)
        stated = (request.sampling_params.extra_args or {}).get("output", request.max_tokens)
        prompt = request.num_prompt_tokens - 1
        output = max(1, min(stated, view.memory - prompt))
        view.prompts.append(min(prompt + self._slack, view.memory - output))
        blocks = request.block_hashes[: prompt // self._shared.block] if self._shares else ()
        view._paths.append(self._shared.path(place, blocks))
        view._private.append(view.prompts[-1] - sum(view._weights[v] for v in view._paths[-1]))
        view.arrivals.append(view.now)
        for outputs in (view.beliefs.output, view.beliefs.lower, view.beliefs.upper):
            outputs.append(output)
        self._names.append(request.request_id)
        self._places[request.request_id] = place
        view.waiting.add(place)
        self._policy.arrived(view, place)

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        """Show vLLM the requests that the policy started, in its order."""
        self._forget_finished()
        admitted = []
        for place in self._policy.admit(self._view):
            self._view.waiting.discard(place)
            self._view.start(place)
            admitted.append(place)
        for place in admitted:
            if (name := self._names[place]) in self._places:
                self._started[name] = None
            else:  # its client aborted it while it waited
                self._policy.finished(self._view, place, self._view.stop(place))
        queue: Any = self.waiting  # type: ignore[attr-defined]
        waiting = {request.request_id: request for request in queue}
        queue.clear()
        queue.extend(waiting.pop(name) for name in self._started if name in waiting)
        output = super().schedule(*args, **kwargs)  # type: ignore[misc]
        queue.extend(waiting.values())
        self._view.now += bool(output.num_scheduled_tokens)
        return output

    def _forget_finished(self) -> None:
        """Tell the policy which requests finished or were aborted."""
        there = self.requests  # type: ignore[attr-defined]
        for name in [name for name in self._places if name not in there]:
            place = self._places.pop(name)
            if name in self._started:
                del self._started[name]
                self._policy.finished(self._view, place, self._view.stop(place))
            self._view.waiting.discard(place)
            self._shared.forget(place)


class _Shared:
    """Nodes of whole blocks that a request shares with earlier ones that are not done.

    The first that names a block counts it as private, since it is not known to be shared yet.
    """

    def __init__(self, view: View, block: int) -> None:
        self.block, self._view = block, view
        self._named: dict[int, tuple[Any, ...]] = {}  # blocks of each request
        self._uses: Counter[Any] = Counter()  # number of requests that name each block
        self._nodes: dict[Any, int] = {}  # of blocks that were named twice
        self._free: list[int] = []  # nodes of blocks that no request names any more

    def path(self, i: int, blocks: Iterable[Any]) -> tuple[int, ...]:
        """Return the nodes of a request that names these blocks."""
        self._named[i] = named = tuple(blocks)
        for block in named:
            if self._uses[block] and block not in self._nodes:
                new = self._free.pop() if self._free else self._view.add_node(self.block)
                self._nodes[block] = new
        self._uses.update(named)
        return tuple(self._nodes[block] for block in named if block in self._nodes)

    def forget(self, i: int) -> None:
        """Free the nodes that only this request still named."""
        for block in self._named.pop(i):
            self._uses[block] -= 1
            if not self._uses[block]:
                del self._uses[block]
                if block in self._nodes:
                    self._free.append(self._nodes.pop(block))


def _slack(default: int) -> int:
    text = os.environ.get(SLACK, str(default))
    if not text.isdecimal():
        raise InvalidInput(f"must be a number of tokens, got {text!r}", field=SLACK)
    return int(text)
