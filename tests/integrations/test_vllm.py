"""What runs inside vLLM; where vLLM is not, only that it is not needed before it is used."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import kvopt.integrations.vllm as integration
from kvopt import run
from kvopt.timetable.server_records import read_record

SOURCE = os.environ.get("KVOPT_VLLM_SOURCE")
"""Folder with the Python files of vLLM's wheel."""
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "vllm_record.py"
PYTHON = os.environ.get("KVOPT_VLLM_PYTHON", sys.executable)
"""An interpreter that has what vLLM's scheduler needs."""


def test_the_module_is_imported_without_vllm() -> None:
    assert "vllm" not in sys.modules
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        integration.Nothing  # noqa: B018


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_a_scheduler_needs_vllm() -> None:
    with pytest.raises(ModuleNotFoundError, match="vllm"):
        integration.Recorder  # noqa: B018


@pytest.mark.slow
@pytest.mark.skipif(SOURCE is None, reason="KVOPT_VLLM_SOURCE says where vLLM's files are")
@pytest.mark.parametrize("options", [[], ["--policy", "priority", "--budget", "40"]])
def test_vllm_decides_what_its_record_and_the_simulator_say(
    options: list[str], tmp_path: Path
) -> None:
    rows = [[i // 3, 3 + i % 7, 5 + i * 7 % 11, i % 4] for i in range(40)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    record = tmp_path / "record.jsonl"
    where = ["--source", str(SOURCE), "--blocks", "12", "--block", "4", "--max-seqs", "8"]
    command = [PYTHON, str(BENCHMARK), str(tmp_path / "rows.json"), "-o", str(record)]
    subprocess.run([*command, *where, *options], check=True)
    found = read_record(record)
    limits = "block=4,max_seqs=8,budget=40" if options else "block=4,max_seqs=8"
    policy = "vllm-priority:by=priority," if options else "vllm-fcfs:"
    made = run(found.instance, policy + limits)
    if options and "vllm 0.32" in found.policy:  # a request that preempts itself ends the round
        assert found.schedule.pauses > made.pauses
        return
    assert found.schedule.segments == made.segments


@pytest.mark.slow
@pytest.mark.skipif(SOURCE is None, reason="KVOPT_VLLM_SOURCE says where vLLM's files are")
@pytest.mark.parametrize("options", [[], ["--asynchronous"], ["--budget", "12"]])
def test_what_vllm_shares_is_replayed(options: list[str], tmp_path: Path) -> None:
    """Prompts of 10 equal tokens and up to 8 others, so many at once that vLLM has to share."""
    prompts = [[i % 3] * 10 + [100 + i] * (1 + i * 7 % 8) for i in range(60)]
    rows = [[i // 4, prompt, 1 + i * 5 % 13] for i, prompt in enumerate(prompts)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    record = tmp_path / "record.jsonl"
    where = ["--source", str(SOURCE), "--blocks", "24", "--block", "4", "--prefix-caching"]
    command = [PYTHON, str(BENCHMARK), str(tmp_path / "rows.json"), "-o", str(record)]
    subprocess.run([*command, *where, *options], check=True)
    found = read_record(record)
    assert found.notes["cached_tokens"] > 0
    assert all(len(request.prefix) == 2 for request in found.instance)
    assert replace(found.schedule, instance=found.instance.without_prefixes()).violations()


@pytest.mark.slow
@pytest.mark.skipif(SOURCE is None, reason="KVOPT_VLLM_SOURCE says where vLLM's files are")
def test_a_policy_admits_inside_vllm(tmp_path: Path) -> None:
    """With true lengths and enough slack nothing is preempted, and short ones go first.

    With prefix caching all prompts share two blocks, and more requests run.
    """
    rows = [[0, 9, 30 - 2 * (i % 12), 0, 30 - 2 * (i % 12)] for i in range(36)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    where = ["--source", str(SOURCE), "--blocks", "30", "--block", "4", "--lead", "svf"]
    latencies = []
    for options in ([], ["--asynchronous"], ["--prefix-caching"]):
        record = tmp_path / "record.jsonl"
        command = [PYTHON, str(BENCHMARK), str(tmp_path / "rows.json"), "-o", str(record)]
        environment = {**os.environ, "KVOPT_SLACK": "3"}
        subprocess.run([*command, *where, *options], check=True, env=environment)
        found = read_record(record)
        assert found.policy.endswith(", fcfs, admission svf, slack 3")
        assert found.schedule.pauses == 0
        latencies.append(found.schedule.objective)
    assert latencies[2] < latencies[0]
    assert latencies[0] < run(found.instance.without_prefixes(), "vllm-fcfs:block=4").objective


@pytest.mark.slow
@pytest.mark.skipif(SOURCE is None, reason="KVOPT_VLLM_SOURCE says where vLLM's files are")
def test_what_a_client_gave_up_is_forgotten(tmp_path: Path) -> None:
    code = f"""
import argparse, sys
sys.path.insert(0, {str(BENCHMARK.parent)!r})
from pathlib import Path
import vllm_record
vllm_record.use_source(Path({SOURCE!r}))
options = argparse.Namespace(block=1, blocks=9, budget=99, max_seqs=9, watermark=0, policy="fcfs",
                             chunked=True, asynchronous=False, prefix_caching=False)
scheduler = vllm_record.make_scheduler("KvoptScheduler", options)
for i in range(4):
    scheduler.add_request(vllm_record.request(i, 0, 4, 6, 0, 6))
scheduler.schedule()
from vllm.v1.request import RequestStatus
scheduler.finish_requests(["r0", "r2"], RequestStatus.FINISHED_ABORTED)
vllm_record.drive(scheduler, [])
assert not scheduler.requests
"""
    environment = {**os.environ, "KVOPT_SLACK": "0"}
    subprocess.run([PYTHON, "-c", code], check=True, env=environment, cwd=tmp_path)
