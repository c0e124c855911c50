"""The first hour of a serving engineer: from a log to a verdict, with a page to show."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from walking import ROOT, Walk

STUDY = """
title = "Is a better scheduler worth building?"
policies = ["fcfs", "svf"]
clock = "seconds"

[limits]
time_limit = 1

[[instances]]
file = "log.json"
"""


def write_log(folder: Path) -> None:
    """Write the log of a server: seconds, prompt and answer of each request."""
    with (ROOT / "samples" / "documents.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    with (folder / "log.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["timestamp", "prompt_tokens", "output_tokens"])
        for row in rows:
            table.writerow([row["timestamp"] / 1000, row["input_length"], row["output_length"]])


def first_hour(walk: Walk) -> Path:
    """Do what an engineer tries first; return the page."""
    write_log(walk.folder)
    fits = walk.asked(
        "how much fits", "hardware capacity --model llama-3-8b --gpu l4-24gb --gpus 1"
    )
    memory = fits["memory"]
    walk.kvopt("read the log", f"import log.csv --format csv --memory {memory} -o log.json")
    ran = walk.asked(
        "what users wait",
        "run log.json --seconds --batch-time llama-3-8b@h100 --policy vllm-fcfs --policy svf",
    )
    assert all(row["outcome"] == "completed" for row in ran["policies"])
    said = walk.kvopt(
        "certify",
        "certify log.json --seconds --policy fcfs --policy svf --time-limit 1 -o log.cert.json",
    )
    assert "x optimum" in said
    assert "VALID" in walk.kvopt("verify", "verify log.cert.json")
    walk.write("study.toml", STUDY)
    walk.kvopt("a study of it", "study study.toml --out study")
    walk.kvopt("its report", "report study")

    walk.write("record.jsonl", (ROOT / "samples" / "vllm.jsonl").read_text(encoding="utf-8"))
    walk.kvopt("what vLLM decided", "import-run record.jsonl -o run.json")
    judged = walk.asked("judge it", "certify --run run.json --time-limit 1 -o run.cert.json")
    assert judged["lower"] <= judged["upper"] <= judged["policies"][0]["value"]
    return walk.folder / "study" / "report.html"
