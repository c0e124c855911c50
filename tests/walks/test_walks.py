"""The first hours of a researcher and of an engineer, step by step, and their page in a browser."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import engineer
import pytest
import researcher
from browsing import CHROMIUM, DRIVER, MISSING, chromium
from commands import Run
from first_hours import installed
from package import ROOT, build, wrong_in_wheel
from walking import Walk

BROWSER = CHROMIUM is not None and DRIVER is not None


class InProcess(Walk):
    """A walk whose steps run in this process, where kvopt and its machine code are loaded."""

    def __init__(self, folder: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(Path(sys.executable), folder)
        self._run, self._capsys = run, capsys

    def _step(self, title: str, *arguments: str) -> str:
        kind, *rest = arguments
        if kind == "-c":
            exec(rest[0], {})
            return self._capsys.readouterr().out
        code, out, err = self._run(*rest[1:])
        assert code == 0, f"{title}: {out}{err}"
        return out


@pytest.fixture
def here(
    tmp_path: Path,
    run: Run,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    own_things: None,  # noqa: ARG001
) -> Walk:
    """Return a walk in a folder of its own, with the kvopt of this checkout."""
    monkeypatch.chdir(tmp_path)
    return InProcess(tmp_path, run, capsys)


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment that holds the wheel and nothing of this checkout."""
    return installed(tmp_path_factory.mktemp("installed"))


def look_at(page: Path, profile: Path) -> None:
    """Open a page in a browser: it says something, on its own and without a complaint."""
    if not BROWSER:
        pytest.skip(MISSING)
    with chromium(profile) as browser:
        browser.open(page)
        text = browser.ask("return document.body.innerText")
        assert "Is a better scheduler worth building?" in text
        assert "fcfs" in text
        assert "svf" in text
        assert browser.ask("return document.querySelectorAll('svg').length") > 0
        assert browser.messages() == []
        assert {url.partition(":")[0] for url in browser.requests()} <= {"file", "data", "about"}


@pytest.mark.slow
def test_a_researcher_gets_from_an_instance_to_a_solver_and_back(here: Walk) -> None:
    researcher.first_hour(here)


@pytest.mark.slow
def test_an_engineer_gets_from_a_log_to_a_verdict(here: Walk, tmp_path: Path) -> None:
    look_at(engineer.first_hour(here), tmp_path / "profile")


@pytest.mark.thorough
def test_both_walk_from_an_installed_wheel(clean: Path, tmp_path: Path) -> None:
    for kind in (researcher, engineer):
        (tmp_path / kind.__name__).mkdir()
        walk = Walk(clean, tmp_path / kind.__name__)
        assert str(ROOT) not in walk.script("where it is", "import kvopt; print(kvopt.__file__)")
        kind.first_hour(walk)
    look_at(tmp_path / "engineer" / "study" / "report.html", tmp_path / "profile")


@pytest.mark.thorough
def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    build(tmp_path, "wheel")
    [wheel] = tmp_path.glob("*.whl")
    assert wrong_in_wheel(zipfile.ZipFile(wheel).namelist()) == []
