"""A real study, small and half open, whose folder the tests of reports read."""

from __future__ import annotations

from pathlib import Path

from registered import forgetting

from kvopt.studies import read_study, run_study

BROKEN = "<b>broken</b> & out"
"""What a scheduler of the study fails with: text that a page must not take for its own."""

_MODULE = f'''
"""A scheduler with a bug."""

from dataclasses import dataclass

import kvopt


@kvopt.register
@dataclass
class Breaks(kvopt.Policy):
    """It fails as soon as it is asked."""

    name = "breaks"
    source = "a test"

    def admit(self, view):
        raise RuntimeError("{BROKEN}")
'''

_STUDY = """
name = "half-open"
policies = ["mc-sf", "fcfs", "alpha-protect:alpha=0.2", "alpha-beta:alpha=0.1,beta=0.5"]
modules = ["breaks.py"]

[limits]
time_limit = 0.5

[[instances]]
family = "arrival-1"
draws = 3
n = [4, 12]

[[instances]]
family = "arrival-2"
draws = 1
seed = 2
policies = ["mc-sf", "fcfs", "breaks"]
"""

_SECONDS = """
name = "traffic"
title = "Conversations on a small server (stand-in lengths)"
clock = "seconds"
batch_time = { lines = [{ round_ns = 1000000, token_ns = 2000 }], kv_ns = 10, prompt_ns = 0 }
policies = [
    "mc-sf", "fcfs", "alpha-protect:alpha=0.05", "alpha-beta:alpha=0.05,beta=0.5,rounds=3000",
]

[limits]
time_limit = 0.2

[[instances]]
family = "conversation"
n = [20, 30, 40]
draws = 2
memory = 1500
parameters = { per_second = [300, 500] }
"""

RECORDS = 6 * 4 + 3


def make_study(folder: Path) -> Path:
    """Run the study; return its folder."""
    (folder / "breaks.py").write_text(_MODULE)
    (folder / "half-open.toml").write_text(_STUDY)
    with forgetting():
        run_study(read_study(folder / "half-open.toml"), folder / "out", jobs=1)
    return folder / "out"


def make_study_in_seconds(folder: Path, *, certify: bool = True) -> Path:
    """Run a study of traffic; return its folder."""
    text = _SECONDS if certify else f"certify = false{_SECONDS}"
    (folder / "traffic.toml").write_text(text)
    run_study(read_study(folder / "traffic.toml"), folder / "out", jobs=1)
    return folder / "out"
