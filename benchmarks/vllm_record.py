"""Drive vLLM's own scheduler without a model or a GPU, and record what it decides.

    python benchmarks/vllm_record.py requests.json -o record.jsonl --blocks 64 --budget 256

A step is a round; a request yields a token once its prompt is processed.  The file lists requests
as ``[arrival, prompt, output, priority]``, or with a believed output as the fifth number, and
prompts as vLLM counts them, or with their tokens as a list.  ``--lead svf`` lets a policy of kvopt
admit; ``--prefix-caching`` shares what prompts begin with.

vLLM need not be installed: ``--source DIR`` takes the Python files of its wheel, unpacked
(``pip download vllm --no-deps``), and replaces by stand-ins what the scheduler imports and does
not use, torch before all.  Tried with vLLM 0.33.0.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import json
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

REAL = (
    "vllm.v1.core", "vllm.v1.engine", "vllm.v1.metrics.stats", "vllm.v1.metrics.utils",
    "vllm.v1.metrics.cache_hit_source", "vllm.v1.request", "vllm.v1.outputs", "vllm.v1.utils",
    "vllm.v1.kv_cache_interface", "vllm.v1.kv_cache_spec_registry", "vllm.v1.kv_cache_layout",
    "vllm.v1.kv_hints", "vllm.v1.hisparse", "vllm.v1.structured_output.request",
    "vllm.v1.spec_decode.metrics", "vllm.utils", "vllm.logger", "vllm.logging_utils", "vllm.envs",
    "vllm.version",
)  # fmt: skip
"""Modules of vLLM that the scheduler works with."""
NOT_NEEDED = ("vllm.utils.torch_utils", "vllm.utils.torch_version", "vllm.utils.gc_utils")
PACKAGES = ("vllm.v1", "vllm.v1.metrics")
"""Loaded as they are, without all that is below them."""


def attribute_of(owner: object, name: str) -> Any:
    """Give a class or a module an attribute that it lacks, but for those of Python itself."""
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    found = Anything(name, (Nothing,), {})
    setattr(owner, name, found)
    return found


class Anything(type):
    """A class that has every attribute, is called, subscribed and derived from."""

    __getattr__ = attribute_of

    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __or__(cls, _: Any) -> Any:
        return cls

    __ror__ = __or__


class Nothing(metaclass=Anything):
    """What stands for all that is not there; as a decorator it returns what it decorates."""

    def __new__(cls, *given: Any, **_: Any) -> Any:
        """Return what is decorated, else a new one."""
        if len(given) == 1 and callable(given[0]):
            return given[0]
        return super().__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self), name)

    def __call__(self, *given: Any, **_: Any) -> Any:
        """Return what is decorated, else itself."""
        return given[0] if len(given) == 1 and callable(given[0]) else self

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None: ...


class StandIn(ModuleType):
    """A module that has every name."""

    __getattr__ = attribute_of


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in for what is not there or not needed."""

    def __init__(self, source: Path) -> None:
        self.source = source

    def find_spec(self, name: str, path: Any = None, _target: Any = None) -> Any:
        """Return None for what is loaded as it is."""
        top = name.partition(".")[0]
        is_real = name in PACKAGES or any(f"{name}.".startswith(f"{real}.") for real in REAL)
        if top == "vllm":
            if is_real and name not in NOT_NEEDED:
                return None
        elif top in {"kvopt", *sys.stdlib_module_names} or (
            top != "torch" and importlib.machinery.PathFinder.find_spec(name, path)
        ):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        """Return a stand-in, below which what is real is found."""
        module = StandIn(spec.name)
        folder = self.source.joinpath(*spec.name.split("."))
        module.__path__ = [str(folder)] if spec.name.startswith("vllm") else []
        if spec.name == "vllm":
            vars(module)["__version__"] = _version(self.source)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave it as it is."""


def _version(source: Path) -> str:
    found = [p.name.split("-")[1] for p in source.glob("vllm-*.dist-info")]
    return found[0] if found else os.environ.get("VLLM_VERSION", "0.33.0")


def use_source(source: Path) -> None:
    """Load vLLM from the files of its wheel."""
    sys.path.insert(0, str(source))
    sys.meta_path.insert(0, StandIns(source))


def make_scheduler(kind: str, options: argparse.Namespace) -> Any:
    """Build a scheduler of `kvopt.integrations.vllm` for one group of full attention."""
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec

    from kvopt.integrations import vllm

    spec = FullAttentionSpec(block_size=options.block, num_kv_heads=1, head_size=1, dtype=None)
    cache = KVCacheConfig(options.blocks + 1, [], [KVCacheGroupSpec(["layer"], spec)])
    manager = SimpleNamespace(
        accept_tokens=lambda *_: True, should_advance=lambda _: False, grammar_init=lambda _: None
    )
    return getattr(vllm, kind)(
        vllm_config=configuration(options), kv_cache_config=cache, log_stats=False,
        structured_output_manager=manager, block_size=options.block,
    )  # fmt: skip


def configuration(options: argparse.Namespace) -> Any:
    """Return what vLLM's scheduler reads of its configuration."""
    scheduler = SimpleNamespace(
        max_num_seqs=options.max_seqs, max_num_active_seqs=None, max_num_scheduled_tokens=None,
        max_num_batched_tokens=options.budget, long_prefill_token_threshold=0,
        long_prefill_token_threshold_adaptive=False, policy=options.policy,
        watermark=options.watermark, scheduler_reserve_full_isl=True, prefill_schedule_interval=1,
        enable_chunked_prefill=options.chunked, async_scheduling=options.asynchronous,
        disable_chunked_mm_input=False,
    )  # fmt: skip
    cache = SimpleNamespace(
        num_gpu_blocks=options.blocks + 1, block_size=options.block, mamba_cache_mode="none",
        enable_prefix_caching=options.prefix_caching, enable_mamba_shared_prefix_checkpoint=False,
    )  # fmt: skip
    model = SimpleNamespace(
        uses_mrope=False, is_encoder_decoder=False, max_model_len=options.blocks * options.block,
        runner_type="generate", is_diffusion=False, supports_multimodal_inputs=False,
        return_sampling_mask=False,
    )  # fmt: skip
    parallel = SimpleNamespace(
        data_parallel_index=0, data_parallel_size=1, decode_context_parallel_size=1,
        prefill_context_parallel_size=1, pipeline_parallel_size=1,
    )  # fmt: skip
    observability = SimpleNamespace(
        kv_cache_metrics=False, per_request_spec_decode_metrics="none", enable_mfu_metrics=False
    )
    return SimpleNamespace(
        scheduler_config=scheduler, cache_config=cache, model_config=model,
        parallel_config=parallel, observability_config=observability, lora_config=None,
        kv_events_config=None, is_mm_encoder_only=False, kv_transfer_config=None,
        ec_transfer_config=None, speculative_config=None, num_speculative_tokens=0,
        num_lookahead_tokens=0, num_hash_lookahead_tokens=0, num_prefill_lookahead_tokens=0,
        ec_manager_config=SimpleNamespace(get_encoder_cache_manager_obj=lambda: None),
        use_v2_model_runner=False, max_in_flight_tokens=options.budget, max_concurrent_batches=1,
        aux_output_config=SimpleNamespace(enabled=False),
    )  # fmt: skip


def hasher(block: int) -> Any:
    """Return what names the blocks of a request, as a server does."""
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash

    init_none_hash(sha256)
    return get_request_block_hasher(block, sha256)


def request(
    i: int, arrival: int, prompt: int | list[int], output: int, priority: int = 0,
    believed: int | None = None, *, block_hasher: Any = None,
) -> Any:  # fmt: skip
    """Return a request of vLLM."""
    from vllm.v1.request import Request

    sampling = SimpleNamespace(
        max_tokens=output, min_tokens=0, eos_token_id=None, stop_token_ids=None,
        extra_args=None if believed is None else {"output": believed},
        structured_outputs=None, repetition_detection=None, num_logprobs=None,
        skip_reading_prefix_cache=False, prompt_logprobs=None, thinking_token_budget=None,
    )  # fmt: skip
    return Request(
        request_id=f"r{i}", sampling_params=sampling, pooling_params=None,
        prompt_token_ids=prompt if isinstance(prompt, list) else [0] * prompt,
        arrival_time=arrival + i * 1e-9, priority=priority, block_hasher=block_hasher,
    )  # fmt: skip


def drive(scheduler: Any, rows: Sequence[Sequence[Any]], asynchronous: bool = False) -> None:
    """Let a scheduler serve requests to their end.

    With asynchronous scheduling a round is planned before the tokens of the last are known.
    """
    to_come = deque(sorted(enumerate(rows), key=lambda row: (row[1][0], row[0])))
    under_way: deque[tuple[Any, Any]] = deque()
    shares, time = scheduler.cache_config.enable_prefix_caching, 0
    names_blocks = hasher(scheduler.block_size) if shares else None
    while to_come or scheduler.requests or under_way:
        if not scheduler.requests and not under_way:
            time = max(time, to_come[0][1][0])
        while to_come and to_come[0][1][0] <= time:
            i, row = to_come.popleft()
            scheduler.add_request(request(i, *row, block_hasher=names_blocks))
        output = scheduler.schedule()
        names = list(output.num_scheduled_tokens)
        if names:
            time += 1
            under_way.append((output, computed(scheduler, names)))
        if under_way and (len(under_way) > asynchronous or not names):
            scheduler.update_from_output(*under_way.popleft())


def computed(scheduler: Any, names: list[str]) -> Any:
    """Return what a model would: a token of each request that is processed to its end."""
    from vllm.v1.outputs import ModelRunnerOutput

    requests = [scheduler.requests[name] for name in names]
    yields = [
        request.num_computed_tokens >= request.num_prompt_tokens + request.num_output_tokens
        for request in requests
    ]
    return ModelRunnerOutput(
        req_ids=names,
        req_id_to_index={name: k for k, name in enumerate(names)},
        sampled_token_ids=[[7] if is_there else [] for is_there in yields],
        logprobs=None,
        prompt_logprobs_dict={},
        pooler_output=[],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("requests", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--source", type=Path, help="where vLLM's Python files are unpacked")
    parser.add_argument("--blocks", type=int, required=True)
    parser.add_argument("--block", type=int, default=16)
    parser.add_argument("--budget", type=int, default=2048)
    parser.add_argument("--max-seqs", type=int, default=1024)
    parser.add_argument("--watermark", type=float, default=0.0)
    parser.add_argument("--policy", choices=("fcfs", "priority"), default="fcfs")
    parser.add_argument("--no-chunks", dest="chunked", action="store_false")
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument("--prefix-caching", action="store_true")
    parser.add_argument("--lead", metavar="POLICY", help="a policy of kvopt that admits")
    options = parser.parse_args()
    if options.source is not None:
        use_source(options.source)
    os.environ["KVOPT_RECORD"] = str(options.output)
    if options.lead is not None:
        os.environ["KVOPT_POLICY"] = options.lead
    kind = "Recorder" if options.lead is None else "KvoptScheduler"
    scheduler = make_scheduler(f"{'Async' * options.asynchronous}{kind}", options)
    drive(scheduler, json.loads(options.requests.read_text()), options.asynchronous)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader may leave
    main()
