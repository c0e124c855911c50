"""The adapter in front of a server in the place of vLLM, which runs all that it sees."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kvopt.integrations.admission import Admission

BLOCK, BLOCKS = 4, 10


class Server:
    """A server without a budget: what waits runs, and yields a token in every round."""

    block_size = hash_block_size = BLOCK

    def __init__(self, shares: bool) -> None:
        self.policy = SimpleNamespace(value="fcfs")
        pool = SimpleNamespace(num_gpu_blocks=BLOCKS + 1)
        self.kv_cache_manager = SimpleNamespace(block_pool=pool)
        self.cache_config = SimpleNamespace(enable_prefix_caching=shares)
        self.requests: dict[str, Any] = {}
        self.waiting: list[Any] = []
        self.running: list[Any] = []

    def add_request(self, request: Any) -> None:
        self.requests[request.request_id] = request
        self.waiting.append(request)

    def schedule(self) -> Any:
        self.running += self.waiting
        self.waiting.clear()
        return SimpleNamespace(num_scheduled_tokens={r.request_id: 1 for r in self.running})

    def step(self) -> int:
        """Run a round; return the tokens that it holds, each block of a prompt once."""
        self.schedule()
        whole = {(r.block_hashes[place], place) for r in self.running for place in range(r.whole)}
        held = len(whole) * BLOCK
        for r in self.running:
            r.made += 1
            held += r.num_prompt_tokens - 1 - r.whole * BLOCK + r.made
            if r.made == r.max_tokens:
                del self.requests[r.request_id]
        self.running = [r for r in self.running if r.made < r.max_tokens]
        return held


class Adapter(Admission, Server):
    """What `kvopt.integrations.vllm` builds of vLLM's scheduler."""


def request(name: str, blocks: str, own: int, output: int) -> Any:
    """Return a request of blocks with a letter each, and tokens of its own."""
    return SimpleNamespace(
        request_id=name, sampling_params=SimpleNamespace(extra_args=None), max_tokens=output,
        num_prompt_tokens=len(blocks) * BLOCK + own + 1, block_hashes=list(blocks),
        whole=len(blocks), made=0,
    )  # fmt: skip


def all_held(adapter: Any) -> list[int]:
    """Return the tokens that each round holds, until no request is left."""
    held = []
    while adapter.requests:
        held.append(adapter.step())
        assert len(held) < 500
    return held


@pytest.mark.parametrize("policy", ["svf", "patient", "lpm"])
def test_a_block_that_several_requests_name_is_promised_once(
    monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """A request has 8 blocks, a token of its own and two outputs: 35 of 40 tokens at its end.

    Where nothing is shared one runs at a time.  Where blocks are, the first still counts them as
    its own, and of the others 2, 1, 2, 1 and 2 start in five rounds: two in their last round and
    one in its first hold 32 + 3 + 3 + 2 = 40.
    """
    monkeypatch.setenv("KVOPT_POLICY", policy)
    monkeypatch.setenv("KVOPT_SLACK", "0")
    rounds = []
    for shares in (False, True):
        adapter = Adapter(shares)
        for i in range(9):
            adapter.add_request(request(f"r{i}", "abcdefgh", 1, 2))
        held = all_held(adapter)
        assert max(held) <= BLOCK * BLOCKS
        rounds.append(len(held))
    assert rounds == [9 * 2, 2 + 6]


def test_promises_of_shared_blocks_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of a tree of blocks come while others run."""
    monkeypatch.setenv("KVOPT_SLACK", "0")
    adapter: Any = Adapter(True)
    held = []
    for i in range(120):
        path = "ABC"[i % 3] + "def"[i // 3 % 3] + f"{i % 2}"
        adapter.add_request(request(f"r{i}", path[: 1 + i * 5 % 3], i * 7 % 6, 1 + i * 11 % 9))
        if i % 4:
            held.append(adapter.step())
    held += all_held(adapter)
    assert 34 <= max(held) <= BLOCK * BLOCKS


def test_blocks_that_nobody_names_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVOPT_SLACK", "0")
    adapter: Any = Adapter(True)
    for i in range(50):
        for k in range(3):
            adapter.add_request(request(f"r{i},{k}", chr(200 + i) * 2, k, 2))
        adapter.requests.pop(f"r{i},1")  # its client gave it up
        adapter.waiting = [r for r in adapter.waiting if r.request_id in adapter.requests]
        all_held(adapter)
    assert len(adapter._view._weights) <= 8
