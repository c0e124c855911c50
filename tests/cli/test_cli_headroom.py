"""``kvopt headroom``: the answers in their order, the files, what is refused, and the page."""

from __future__ import annotations

import hashlib
import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from browsing import CHROMIUM, DRIVER, MISSING, Browser
from commands import Run
from known import known
from pages import Page
from shapes import faults

import kvopt
from kvopt import headroom, read_certificate
from kvopt.fleets.loads import Loads
from kvopt.verify import verify

ROOT = Path(__file__).parents[2]
HEADS = ("today: ", "at best: ", "covered: ", "simulated, ", "machines: ", "what limits: ")
QUICK = ("-m", "2048", "-t", "1")

pytestmark = pytest.mark.usefixtures("processor_clock")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a log of twelve requests that hardly fit together, in the current folder."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{i / 4},{90 + 37 * i % 400},{30 + 53 * i % 200}" for i in range(12)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(("arrival_seconds,prompt_tokens,output_tokens", *rows)))
    return path


@pytest.mark.slow
def test_answers_come_in_order_with_their_proofs(run: Run, log: Path, tmp_path: Path) -> None:
    slo = ("--slo", "ttft=20s,tpot=90ms", "--attain", "75%")
    code, printed, _ = run("headroom", log, *QUICK[:3], "3", *slo)
    out = tmp_path / "log.headroom"
    lines = [line for line in printed.splitlines() if not line.startswith("Not decided: ")]
    assert code == 0
    assert list(
        dict.fromkeys(head for line in lines for head in HEADS if line.startswith(head))
    ) == [*HEADS]
    said = json.loads((out / "headroom.json").read_text())
    assert faults("headroom", said) == []
    assert said["lower_ns"] <= said["upper_ns"] <= said["today"]["value_ns"]
    assert [row["proved"] for row in said["simulated"]] == [False] * len(said["simulated"])
    # No simulated server is better than the best schedule known.
    means = [row["mean_seconds"] for row in said["simulated"]]
    assert min(means) >= said["upper_ns"] / 12e9
    assert said["today"]["policy"] == "vllm-fcfs:preset=serve-a100"
    # Every certificate is valid, has the hash that is printed, and says the same.
    for name, value in said["certificates"].items():
        assert value == f"sha256:{hashlib.sha256((out / name).read_bytes()).hexdigest()}"
        assert verify(out / name).valid
        assert value in (out / "headroom.md").read_text()
    found = read_certificate(out / "pauses+chunks.cert.json")
    assert (found.lower_bound, found.objective) == (said["lower_ns"], said["upper_ns"])
    assert found.runs[0].objective == said["today"]["value_ns"]
    # The other commands find the same.
    again = ("import", log, "-f", "csv", "-m", "2048", "-o", tmp_path / "log.json")
    assert run(*again)[0] == 0
    ran = run("run", tmp_path / "log.json", "--seconds", "-P", said["today"]["policy"], "--json")
    seconds = json.loads(ran[1])["policies"][0]["objective_seconds"]
    assert seconds == said["today"]["value_ns"] / 1e9
    policies = [row["policy"] for row in said["simulated"] if row["name"] == "settings"]
    tried = [item for name in (said["today"]["policy"], *policies) for item in ("-P", name)]
    fleet = ("fleet", tmp_path / "log.json", "--seconds", *slo, *tried, "--out", out / "machines")
    counts = ",".join(str(band["workers"]) for band in said["machines"]["fleets"])
    assert json.loads(run(*fleet, "--counts", counts, "--json")[1])["answer"] in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sample", "options"),
    [
        ("documents.jsonl", ("--model", "llama-3-8b", "--gpu", "h100")),
        ("vllm.jsonl", ("--batch-time", "llama-3-8b@h100")),
        ("lengths.csv", (*QUICK[:2], "--prompt-column", "question_tokens",
                         "--output-column", "answer_tokens")),
    ],
)  # fmt: skip
def test_formats_are_recognised(
    run: Run, sample: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    args = ("headroom", ROOT / "samples" / sample, *options, "--out", tmp_path / "out", "-t", "1")
    said = run.json(*args)
    assert said["lower_ns"] <= said["today"]["value_ns"]
    recorded = sample == "vllm.jsonl"
    assert any("the server measured" in note for note in said["notes"]) == recorded
    assert said["today"]["policy"].startswith("vllm-fcfs:block=16" if recorded else "vllm-fcfs:pre")


def test_what_no_time_would_help_is_refused_at_once(run: Run, log: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.csv"
    text.write_text("timestamp,prompt_tokens\n1,2\n")
    other = tmp_path / "other.jsonl"
    other.write_text('{"foo": 1}\n')
    for args, reason in (
        ((tmp_path / "none.csv",), "cannot be read"),
        ((text,), "--output-column"),
        ((other,), "name its --format; its fields are foo"),
        (("-",), "must be a file"),
        ((log, "--slo", "ttft=1ms"), "cannot be met by any number of machines"),
        ((log, "--attain", "99%"), "goes with --slo"),
        ((log, "--gpu", "h100", "--batch-time", "llama-3-8b@h100"), "goes without --batch-time"),
        ((log, "--scheduler", "foo"), "must be one of"),
        ((ROOT / "samples" / "vllm.jsonl", "-m", "99"), "goes without a recorded run"),
        ((log, "--batch-time", ROOT / "none.json"), "cannot be read"),
    ):
        code, printed, err = run("headroom", *args, "-t", "1")
        assert (code, printed) == (2, "")
        assert reason in err.splitlines()[-1]
        assert err.count("kvopt:") == 1
    assert not [*tmp_path.glob("*.headroom")]


@pytest.mark.slow
def test_an_interrupt_keeps_what_is_there(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate = kvopt.run

    def interrupted(*arguments: Any, **options: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return simulate(*arguments, **{**options, "should_stop": lambda: False})

    monkeypatch.setattr("kvopt.fleets.analysis.run", interrupted)
    code, printed, _ = run("headroom", log, *QUICK)
    assert code == 130
    assert printed.startswith("Not decided: a side is unknown.")
    assert "\ntoday: " in printed
    assert "\nat best: not known" in printed
    assert {path.name for path in (tmp_path / "log.headroom").iterdir()} == {
        "headroom.html", "headroom.json", "headroom.md",
    }  # fmt: skip


@pytest.mark.slow
def test_a_wide_interval_comes_first_and_is_drawn_as_unknown(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvopt.fleets.gains.far_apart", lambda _: "the bound is far away")
    out = tmp_path / "out"
    code, printed, _ = run("headroom", log, *QUICK, "--scheduler", "fcfs", "--out", out)
    assert code == 0
    assert printed.startswith("Not decided: the bound is far away. What would: a longer run (-t)")
    text = (out / "headroom.html").read_text()
    page = Page(text)
    assert page.loads == page.handlers == []
    assert re.findall('<p class="answer">(.*?)</p>', text)[0].startswith("Not decided")
    assert "<pattern" in text, "the range of the optimum is hatched"
    assert "the optimum, unknown in this range" in text


def test_measures_of_a_run_name_what_limits_it() -> None:
    requests = [kvopt.Request(0, 90, 9, arrival_seconds=i / 1000) for i in range(8)]
    clock = kvopt.Seconds(kvopt.BatchTime([kvopt.Line(10_000_000, 0)]))
    roomy = kvopt.run(kvopt.Instance(9_999, requests), "fcfs", clock=clock)
    for memory, limit in ((99, "memory"), (9_999, "arrivals")):
        made = kvopt.run(kvopt.Instance(memory, requests), "fcfs", clock=clock)
        loads = Loads.of(made, 1, roomy)
        assert loads.limit == limit
        assert loads.alone == pytest.approx(0.09)
        assert (loads.roomy, loads.latency) == (roomy.objective / 8e9, made.objective / 8e9)
        assert limit in loads.sentence
    # One at a time: of 99 tokens each holds 91 to 99, more than 95% of them in five rounds of nine.
    made = kvopt.run(kvopt.Instance(99, requests), "fcfs", clock=clock)
    assert Loads.of(made, 1, None).full == pytest.approx(5 / 9, abs=0.1)
    # Rounds that a batch makes longer are machine time.
    slow = kvopt.Seconds(kvopt.BatchTime([kvopt.Line(1_000_000, 9_000_000)]))
    made = kvopt.run(kvopt.Instance(9_999, requests), "fcfs", clock=slow)
    assert Loads.of(made, 1, made).limit == "machine time"


@pytest.mark.slow
def test_python_has_the_same_answers(log: Path) -> None:
    instance = kvopt.import_trace(log, "csv", 2048)
    found = headroom(instance, "fcfs", time_limit=1)
    assert found.today is not None
    assert found.today.objective == kvopt.run(instance, "fcfs", clock="seconds").objective
    less, most = found.gains
    assert 0 <= known(less) <= known(most)
    assert "today" in str(found)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=MISSING)
def test_the_page_fits_every_window(run: Run, log: Path, tmp_path: Path, browser: Browser) -> None:
    assert run("headroom", log, *QUICK, "--slo", "ttft=20s,tpot=90ms")[0] == 0
    page = tmp_path / "log.headroom" / "headroom.html"
    for width in (360, 1300, 1700):
        browser.open(page, width=width)
        assert browser.messages() == []
        assert [url for url in browser.requests() if not url.startswith("data:")] == [page.as_uri()]
        assert browser.ask("return document.documentElement.scrollWidth") <= width
