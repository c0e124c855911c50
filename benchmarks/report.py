"""How long a report takes, and how large it is.

    kvopt study benchmarks/report.toml --out DIR       # once, some ten minutes on one core
    python benchmarks/report.py DIR [--repeat 5]

Prints one row: records, seconds of processor time for page and table (the median), their sizes, and
seconds to verify all certificates.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from kvopt.experiments.report import write_report
from kvopt.kernels.pipes import ended_by_reader


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        seconds = [timed(options.folder, page, verify=False) for _ in range(options.repeat)]
        verifying = timed(options.folder, page, verify=True)
        sizes = [path.stat().st_size / 1e6 for path in (page, page.with_suffix(".csv"))]
        count = len(page.with_suffix(".csv").read_text(encoding="utf-8").splitlines()) - 1
    print("| records | s | page MB | table MB | s with --verify |")
    print("|---|---|---|---|---|")
    usual = statistics.median(seconds)
    print(f"| {count:,} | {usual:.2f} | {sizes[0]:.2f} | {sizes[1]:.2f} | {verifying:.1f} |")


def timed(folder: Path, page: Path, *, verify: bool) -> float:
    begin = time.process_time()
    write_report(folder, page, verify=verify)
    return time.process_time() - begin


if __name__ == "__main__":
    with ended_by_reader():
        main()
