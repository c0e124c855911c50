r"""A recorder for vLLM, which writes the decisions of its scheduler to a file.

    KVOPT_RECORD=record.jsonl vllm serve MODEL \
        --scheduler-cls kvopt.integrations.vllm.AsyncRecorder

``AsyncRecorder`` is for asynchronous scheduling, vLLM's default, ``Recorder`` for
``--no-async-scheduling``.  ``KvoptScheduler`` and ``AsyncKvoptScheduler`` let a policy of kvopt
admit requests, see `kvopt.integrations.admission`, and record if ``KVOPT_RECORD`` is set.
``docs/files.md`` has the format of the record.

vLLM is imported when one of its classes is accessed, not with this module.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from typing import Any

SCHEMA = "kvopt.record/1"
RECORD = "KVOPT_RECORD"
"""Environment variable with the name of the record."""

_SCHEDULERS = "vllm.v1.core.sched"


class Recording:
    """Wrap a scheduler of vLLM, and write a line for each call and its answer."""

    record = "kvopt-record.jsonl"
    """Default path of the record."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._file = open(  # noqa: SIM115 - as long as the server lives
            os.environ.get(RECORD, self.record), "w", buffering=1, encoding="utf-8"
        )
        self._began, self._round = time.monotonic_ns(), 0
        self._rounds: dict[int, int] = {}  # of outputs whose tokens are pending
        self._preempted: list[str] = []  # since the last round
        self._shares: bool = self.cache_config.enable_prefix_caching  # type: ignore[attr-defined]
        self._write(schema=SCHEMA, **_configuration(self))

    def _write(self, **event: Any) -> None:
        event["ns"] = time.monotonic_ns() - self._began
        self._file.write(json.dumps(event) + "\n")

    def add_request(self, request: Any) -> None:
        """Record the arrival of a request, and its prompt."""
        self._write(
            arrived=request.request_id,
            round=self._round,
            prompt=request.num_prompt_tokens,
            priority=request.priority,
            **({"prefix": [h.hex()[:16] for h in request.block_hashes]} if self._shares else {}),
        )
        super().add_request(request)  # type: ignore[misc]

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        """Record the processed tokens of each request in a round, and preemptions."""
        output = super().schedule(*args, **kwargs)  # type: ignore[misc]
        self._preempted += sorted(output.preempted_req_ids or ())
        if output.num_scheduled_tokens:  # else nothing is computed, so this is no round
            self._round += 1
            self._rounds[id(output)] = self._round
            self._write(
                round=self._round,
                processed=output.num_scheduled_tokens,
                preempted=self._preempted,
                **(_shared(output) if self._shares else {}),
            )
            self._preempted = []
        return output

    def update_from_output(self, output: Any, *args: Any, **kwargs: Any) -> Any:
        """Record the tokens that a round yielded, and finished requests."""
        answers_by_client = super().update_from_output(output, *args, **kwargs)  # type: ignore[misc]
        number = self._rounds.pop(id(output), None)
        if number is not None:
            answers = [answer for client in answers_by_client.values() for answer in client.outputs]
            self._write(
                tokens={a.request_id: len(a.new_token_ids) for a in answers if a.new_token_ids},
                round=number,
                finished=[a.request_id for a in answers if a.finish_reason is not None],
            )
        return answers_by_client


def _shared(output: Any) -> dict[str, Any]:
    """Return the tokens that requests hit in the prefix cache, and the blocks they took."""
    begun, others = output.scheduled_new_reqs, output.scheduled_cached_reqs
    hits = {request.req_id: request.num_computed_tokens for request in begun}
    took = {request.req_id: request.block_ids[0] for request in begun}
    columns = others.req_ids, others.new_block_ids, others.num_computed_tokens
    for name, blocks, computed in zip(*columns, strict=True):
        if blocks is not None:
            took[name] = blocks[0]
        if name in others.resumed_req_ids:
            hits[name] = computed
    return {"hits": {name: hit for name, hit in hits.items() if hit}, "took": took}


def _configuration(scheduler: Any) -> dict[str, Any]:
    """Return the configuration of a server, and reasons that break the record's rules."""
    settings, groups = scheduler.scheduler_config, scheduler.kv_cache_config.kv_cache_groups
    windows = [getattr(group.kv_cache_spec, "sliding_window", None) for group in groups]
    return {
        "engine": f"vllm {getattr(sys.modules['vllm'], '__version__', '')}".strip(),
        "policy": str(scheduler.policy.value),
        "block": groups[0].kv_cache_spec.block_size,
        "blocks": scheduler.kv_cache_manager.block_pool.num_gpu_blocks - 1,  # one is never used
        "budget": scheduler.max_num_scheduled_tokens,
        "max_seqs": scheduler.max_num_running_reqs,
        "chunked": bool(settings.enable_chunked_prefill),
        "watermark": settings.watermark,
        "asynchronous": bool(settings.async_scheduling),
        "prefix_caching": bool(scheduler.cache_config.enable_prefix_caching),
        "speculation": bool(scheduler.num_spec_tokens),
        "sliding_window": any(window is not None for window in windows) or len(groups) > 1,
        **getattr(scheduler, "kvopt_admission", {}),
    }


_BASES = {
    "Recorder": "scheduler.Scheduler",
    "AsyncRecorder": "async_scheduler.AsyncScheduler",
    "KvoptScheduler": "scheduler.Scheduler",
    "AsyncKvoptScheduler": "async_scheduler.AsyncScheduler",
}


def __getattr__(name: str) -> Any:
    if name not in _BASES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, base = _BASES[name].partition(".")
    kinds: list[Any] = [Recording, getattr(import_module(f"{_SCHEDULERS}.{module}"), base)]
    content: dict[str, Any] = {"__module__": __name__}
    if name.endswith("KvoptScheduler"):
        kinds.insert(1, import_module("kvopt.integrations.admission").Admission)
        content["record"] = os.devnull
    globals()[name] = kind = type(name, tuple(kinds), content)
    return kind
