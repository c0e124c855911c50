"""A real Chromium without a screen, as the tests of reports use it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage",
    "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--window-size=1280,900",
)  # fmt: skip

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MISSING = "no Chromium with a driver (Debian: apt-get install chromium chromium-driver)"


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own, and end it."""
    assert CHROMIUM is not None
    options = Options()
    options.binary_location = CHROMIUM
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


class Browser:
    """What the tests ask of a browser."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, page: Path, *, width: int = 1280, **media: str) -> None:
        """Open a page at a width; what was said before is forgotten."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        features = [
            {"name": name.replace("_", "-"), "value": value} for name, value in media.items()
        ]
        self.call("Emulation.setEmulatedMedia", media="", features=features)
        self.driver.get("about:blank")
        self.messages()
        self.requests()
        self.driver.get(page.as_uri())

    def call(self, method: str, **parameters: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(method, parameters)

    def ask(self, script: str, *arguments: Any) -> Any:
        """Return what a script returns."""
        return self.driver.execute_script(script, *arguments)

    def messages(self) -> list[str]:
        """Return what the console said."""
        return [entry["message"] for entry in self._log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for."""
        events = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        sent = [event for event in events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def _log(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.driver.get_log(kind)  # type: ignore[no-untyped-call]
        return found

    def press(self, *keys: str) -> None:
        """Press keys, one after another."""
        for key in keys:
            for kind in ("keyDown", "keyUp"):
                text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
                code = {"Enter": 13, "Tab": 9}.get(key, 0)
                self.call(
                    "Input.dispatchKeyEvent",
                    type=kind,
                    key=key,
                    code=key,
                    windowsVirtualKeyCode=code,
                    **text,
                )

    def point(self, x: float, y: float, kind: str = "mouseMoved") -> None:
        """Move the mouse to a place of the window, or press it there."""
        button = "none" if kind == "mouseMoved" else "left"
        clicks = 0 if kind == "mouseMoved" else 1
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=clicks)
