"""A real browser, if the machine has one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SIZES = {"phone": (390, 844), "middle": (1100, 900), "wide": (1920, 1080)}
PICTURES = Path(os.environ.get("HEADRACE_SCREENSHOTS", "build/screenshots"))


def find_chromium() -> str | None:
    """Debian's Chromium, or what the environment names."""
    named = os.environ.get("HEADRACE_CHROMIUM")
    names = ("chromium", "chromium-browser", "google-chrome")
    return named or next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def open_browser() -> Generator[Any]:
    """A browser without a window; skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = find_chromium()
    if path is None:
        pytest.skip("there is no chromium; apt-get install chromium brings one")
    with playwright.sync_playwright() as driver:
        # A container has no user namespaces, which Chromium's own sandbox needs.
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def open_page(
    browser: Any, address: str, *, size: str = "middle", scheme: str = "light"
) -> Generator[Any]:
    """A page that is loaded, and on which no script has failed when it is left."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    faults: list[str] = []

    def hear(said: Any) -> None:
        if said.type == "error":
            faults.append(said.text)

    def note(error: Any) -> None:
        faults.append(str(error))

    page.on("pageerror", note)
    page.on("console", hear)
    page.goto(address)
    page.wait_for_selector("html[data-ready=yes]", state="attached", timeout=60_000)
    yield page
    context.close()
    assert faults == []


def keep_picture(page: Any, name: str) -> None:
    """A screenshot for whoever looks at the test run."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(PICTURES / f"{name}.png"), full_page=True)
