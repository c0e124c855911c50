"""Pages of the library in a browser: the table, and the checker, which Pyodide runs on the spot."""

from __future__ import annotations

import json
import lzma
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from browsing import CHROMIUM, DRIVER, MISSING, Browser
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from kvopt.verify import verify

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "instances"
KEPT = LIBRARY / "certificates"
VALID = ("arrival-1-n12", "seconds-conversation-n40", "fleet2-azure-n80")
PATIENCE = 300.0
"""Seconds after which a page without a verdict is taken to have none."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=MISSING),
    pytest.mark.skipif(shutil.which("npm") is None, reason="no npm, from which Pyodide comes"),
]


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that writes no log."""

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    fetched = subprocess.run(["make", "browser"], cwd=ROOT, capture_output=True, check=False)
    if fetched.returncode and not (LIBRARY / "pyodide" / "pyodide.mjs").exists():
        pytest.skip("npm cannot be reached, from which Pyodide comes")
    assert fetched.returncode == 0, fetched.stderr
    handler = partial(Quiet, directory=LIBRARY)
    with ThreadingHTTPServer(("localhost", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def checker(browser: Browser, address: str) -> Browser:
    browser.driver.get(f"{address}/check.html")
    return browser


def verdict(browser: Browser) -> tuple[str, list[str]]:
    """Return the verdict that the page shows, and its lines."""
    wait = WebDriverWait(browser.driver, PATIENCE)
    status = "return document.getElementById('verdict').dataset.status"
    wait.until(lambda _: browser.ask(status))
    lines = browser.ask("return document.getElementById('lines').textContent").split("\n")
    return browser.ask("return document.getElementById('verdict').textContent"), lines


def checked(browser: Browser, path: Path) -> tuple[str, list[str]]:
    """Choose a file on the page, and return the verdict."""
    browser.driver.find_element(By.ID, "file").send_keys(str(path))
    return verdict(browser)


def unpacked(name: str, folder: Path) -> Path:
    """Return a certificate of the library as a file that is not compressed."""
    path = folder / f"{name}.json"
    path.write_bytes(lzma.decompress((KEPT / f"{name}.json.xz").read_bytes()))
    return path


@pytest.mark.parametrize("name", VALID)
def test_valid_certificates_are_valid_in_the_browser(
    checker: Browser, tmp_path: Path, name: str
) -> None:
    heading, lines = checked(checker, KEPT / f"{name}.json.xz")
    assert heading == f"{name}.json.xz: VALID"
    assert lines == list(verify(unpacked(name, tmp_path)).lines)


def _raise_bound(certificate: Any) -> None:
    certificate["lower"]["value"] = certificate["upper"]["value"] + 1


def _begin_earlier(certificate: Any) -> None:
    certificate["upper"]["starts"][0] = -1


def _leave_out_memory(certificate: Any) -> None:
    del certificate["instance"]["memory"]


@pytest.mark.parametrize(
    ("spoil", "word"),
    [(_raise_bound, "INVALID"), (_begin_earlier, "INVALID"), (_leave_out_memory, "UNREADABLE")],
)
def test_spoiled_certificates_are_refused_in_the_browser(
    checker: Browser, tmp_path: Path, spoil: Callable[[Any], None], word: str
) -> None:
    certificate = json.loads(unpacked(VALID[0], tmp_path).read_text())
    spoil(certificate)
    path = tmp_path / "spoiled.json"
    path.write_text(json.dumps(certificate))
    heading, lines = checked(checker, path)
    assert heading.startswith(f"spoiled.json: {word}")
    assert lines == list(verify(path).lines)


def test_a_link_of_the_library_checks_its_certificate(browser: Browser, address: str) -> None:
    browser.driver.get(f"{address}/library.html")
    link = browser.driver.find_element(By.CSS_SELECTOR, f"tr[data-name='{VALID[0]}'] td a + a")
    link.click()
    heading, _ = verdict(browser)
    assert heading == f"{VALID[0]}.json.xz: VALID"


@pytest.mark.parametrize("width", [360, 1300, 1700])
@pytest.mark.parametrize("page", ["library.html", "check.html"])
def test_pages_of_the_library_overflow_at_no_width(browser: Browser, page: str, width: int) -> None:
    browser.open(LIBRARY / page, width=width)
    assert browser.ask("return document.documentElement.scrollWidth") <= width


def test_rows_of_the_library_have_a_line_and_end_with_the_certificate(browser: Browser) -> None:
    browser.open(LIBRARY / "library.html", width=1300)
    rows = "[...document.querySelectorAll('table.known tr')]"
    heights = browser.ask(f"return {rows}.map(row => row.getBoundingClientRect().height)")
    assert max(heights) < 2 * min(heights)
    ends = browser.ask(f"return {rows}.map(row => row.lastChild.getBoundingClientRect().right)")
    assert max(ends) <= 1300


def test_points_of_the_picture_name_open_instances(browser: Browser) -> None:
    browser.open(LIBRARY / "library.html")
    named = browser.ask(
        "return [...document.querySelectorAll('svg circle')].map(c => c.textContent)"
    )
    assert sorted(text.split(":")[0] for text in named) == sorted(
        name
        for name, entry in json.loads((LIBRARY / "best-known.json").read_text()).items()
        if entry["objective"] != entry["lower_bound"]
    )


def test_a_link_leads_to_no_other_place(browser: Browser, address: str) -> None:
    browser.driver.get(f"{address}/check.html?file=../secret.json")
    shown = "return document.getElementById('verdict').textContent"
    assert browser.ask(shown) == "no certificate of this library: ../secret.json"
