"""The live page in a real browser: every view, three sizes, light and dark, keys and readers."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.control.history import keep
from headrace.control.verdicts import LOOP, verdicts
from headrace.run.journal import Journal
from headrace.serve.saved import save_page
from headrace.serve.server import Where, beside
from tests.integration.browsers import SIZES, keep_picture, open_browser, open_page
from tests.serve.journals import (
    COUNTS,
    NODES,
    SPREAD,
    START_S,
    WORDS,
    batch,
    decision,
    write_large_run,
    write_run,
)

VIEWS = ("now", "time", "decisions", "what-if", "new")
SMALLEST_TAP = 24  # pixels: WCAG 2.2, target size
HOSTILE = "<script>document.title='taken'</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Three runs: one with a decision that waits, one with many tasks, one with many nodes."""
    folder = tmp_path_factory.mktemp("runs")
    words = write_run(folder / "words", batches=240, moved_at=120, ended=False)
    (words / LOOP).write_text(json.dumps({"pid": os.getpid(), "advise": True}))
    keep(words, decision(START_S + 200, applied=False, plan="b" * 16, left="b" * 16,
                         proposed="a" * 16))  # fmt: skip
    write_large_run(folder / "twenty", nodes=20, tasks=1000, racks=4)
    write_large_run(folder / "thousand", nodes=1000, tasks=4000, racks=20, batches=10)
    with beside(folder, Where(port=0), lambda message: None) as address:
        yield address


def choose_run(page: Any, name: str) -> None:
    page.select_option("#run", name)
    wanted = "plan-1" if name == "words" else "spread"
    page.wait_for_selector(f"#plan-name:has-text('{wanted}')", state="attached")
    page.wait_for_selector("html[data-ready=yes]", state="attached")


def show(page: Any, view: str) -> None:
    page.click(f"[data-view='{view}']")
    page.wait_for_selector(f"[data-view='{view}'][aria-current=page]")
    page.wait_for_timeout(300)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_every_view_fits_every_size(browser: Any, served: str, size: str, scheme: str) -> None:
    with open_page(browser, served, size=size, scheme=scheme) as page:
        choose_run(page, "words")
        for view in VIEWS:
            show(page, view)
            keep_picture(page, f"words-{view}-{size}-{scheme}")
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{view} is {wide} pixels too wide"
        show(page, "now")
        for run in ("twenty", "thousand"):
            choose_run(page, run)
            keep_picture(page, f"{run}-now-{size}-{scheme}")
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_is_wrong_for_readers(browser: Any, served: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    with open_page(browser, served, scheme=scheme) as page:
        choose_run(page, "words")
        for run, view in (*(("words", view) for view in VIEWS), ("thousand", "now")):
            choose_run(page, run)
            show(page, view)
            found = axe.Axe().run(page).response["violations"]
            serious = [
                f"{run}, {view}: {one['id']}: {node['html'][:160]}"
                for one in found
                if one["impact"] in ("serious", "critical")
                for node in one["nodes"]
            ]
            assert serious == []


def test_what_can_be_tapped_is_large_enough(browser: Any, served: str) -> None:
    with open_page(browser, served, size="phone") as page:
        choose_run(page, "words")
        for view in VIEWS:
            show(page, view)
            small = page.evaluate(
                """(least) => [...document.querySelectorAll(
                    "button, [role=button], nav a, select, input, summary")]
                  .filter((one) => one.checkVisibility())
                  .map((one) => [one.outerHTML.slice(0, 80), one.getBoundingClientRect()])
                  .filter(([, box]) => Math.min(box.width, box.height) < least)
                  .map(([name, box]) => `${name}: ${box.width} x ${box.height}`)""",
                SMALLEST_TAP,
            )
            assert small == []


def test_scrubbing_back_shows_that_moment(browser: Any, served: str) -> None:
    with open_page(browser, served) as page:
        choose_run(page, "words")
        show(page, "time")
        late = page.inner_text("[data-node=large] [data-meter=cpu]")
        page.focus("#moment")
        for _ in range(3):
            page.keyboard.press("Home")
        page.wait_for_selector("#plan-name:has-text('storm-even')")
        assert page.get_attribute("#live", "aria-pressed") == "false"
        assert page.inner_text("[data-node=large] [data-meter=cpu]") != late
        assert len(page.query_selector_all("#cards .worker .task")) == 10
        page.click("#live")
        page.wait_for_selector("#plan-name:has-text('plan-1')")
        page.wait_for_timeout(200)
        assert page.inner_text("[data-node=large] [data-meter=cpu]") == late


def test_a_batch_that_ends_is_drawn_within_a_second(browser: Any, tmp_path: Path) -> None:
    folder = tmp_path / "live"
    journal = Journal(folder)
    journal.begin({"topology": WORDS, "cluster": {"nodes": NODES}}, telemetry=None)
    journal.add_plan("first", COUNTS, SPREAD)
    for number in range(5):
        journal.add(batch(number, time.time() - 5 + number, "first"))
    with (
        beside(folder, Where(port=0), lambda message: None) as address,
        open_page(browser, address) as page,
    ):
        page.wait_for_selector("#state:has-text('5 batches')")
        for number in range(5, 8):
            journal.add(batch(number, time.time(), "first"))
            began = time.monotonic()
            page.wait_for_selector(f"#state:has-text('{number + 1} batches')", timeout=1000)
            assert time.monotonic() - began < 1.0
        journal.end()
        page.wait_for_selector("#state:has-text('ended')")


def test_a_task_is_reached_by_keys_and_says_what_it_does(browser: Any, served: str) -> None:
    with open_page(browser, served) as page:
        choose_run(page, "words")
        page.focus("#cards .worker .task")
        page.wait_for_selector("#detail:not([hidden]) h3:has-text('sentence.1')")
        page.keyboard.press("ArrowRight")
        page.wait_for_selector("#detail h3:has-text('sentence.2')")
        page.keyboard.press("Escape")
        page.wait_for_selector("#detail", state="hidden")


def test_a_rack_of_the_map_can_be_entered(browser: Any, served: str) -> None:
    with open_page(browser, served) as page:
        choose_run(page, "thousand")
        assert len(page.query_selector_all("#map rect")) == 1000
        page.click("[data-rack=r7]")
        page.wait_for_selector("#cards article")
        assert len(page.query_selector_all("#cards article")) == 50
        assert page.inner_text("#cards article:first-child [data-meter=cpu]").count("400") == 1


def test_a_plan_that_waits_is_looked_at_and_accepted(browser: Any, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "words", batches=30, moved_at=None, ended=False)
    (folder / LOOP).write_text(json.dumps({"pid": os.getpid(), "advise": True}))
    keep(folder, decision(START_S + 10, applied=False, plan="a" * 16, proposed="b" * 16))
    with (
        beside(folder, Where(port=0), lambda message: None) as address,
        open_page(browser, address) as page,
    ):
        assert "token" not in page.url
        show(page, "decisions")
        page.click("text=What moves")
        page.wait_for_selector("text=Tasks that move")
        keep_picture(page, "decision-waits")
        page.click("text=Accept this plan")
        page.wait_for_selector(".badge.accepted")
    assert [verdict.accept for verdict in verdicts(folder)] == [True]


def test_without_the_token_the_page_shows_and_does_nothing(browser: Any, served: str) -> None:
    with open_page(browser, served.split("#")[0]) as page:
        choose_run(page, "words")
        show(page, "decisions")
        assert page.is_disabled("text=Accept this plan")
        show(page, "new")
        assert page.is_disabled("text=Plan it")


def test_a_file_is_pasted_and_planned(browser: Any, served: str) -> None:
    with open_page(browser, served) as page:
        show(page, "new")
        page.select_option("[name=example]", "quickstart")
        page.wait_for_selector("text=quickstart.yaml")
        page.select_option("[name=by]", "storm-even")
        page.click("text=Plan it")
        page.wait_for_selector(".result h2:has-text('Placement')", timeout=180_000)
        keep_picture(page, "new-plan")
        page.fill("textarea", "format: headrace/1\ntopology: [")
        page.click("text=Plan it")
        page.wait_for_selector(".result .alarm", timeout=180_000)


def test_what_if_is_tried_on_the_live_problem(browser: Any, served: str) -> None:
    with open_page(browser, served) as page:
        choose_run(page, "words")
        show(page, "what-if")
        page.fill("[name=rate]", "1.5")
        page.select_option("[name=by]", "storm-even")
        page.click("text=Try it")
        page.wait_for_selector("h2:has-text('In force, and what if')", timeout=180_000)
        keep_picture(page, "what-if")
        page.click("text=Put the plan of storm-even in force")
        page.wait_for_selector("text=Handed to the run")


def test_names_of_files_never_become_script(browser: Any, tmp_path: Path) -> None:
    folder = tmp_path / "hostile"
    journal = Journal(folder)
    topology = {"name": "evil <img src=x onerror=alert(1)>", "components": WORDS["components"]}
    journal.begin({"topology": topology, "cluster": {"nodes": NODES}}, telemetry=None)
    journal.add_plan(HOSTILE, COUNTS, SPREAD)
    for number in range(3):
        journal.add(batch(number, START_S + number, HOSTILE) | {"failure": HOSTILE})
    journal.end(HOSTILE)
    keep(folder, decision(START_S, reason=HOSTILE, by=HOSTILE))
    saved = save_page(folder, tmp_path / "saved.html")
    with beside(folder, Where(port=0), lambda message: None) as address:
        for shown in (address, saved.as_uri()):
            with open_page(browser, shown) as page:
                for view in ("now", "time", "decisions"):
                    show(page, view)
                    assert HOSTILE in page.inner_text("body")
                assert page.title().startswith("evil <img")
                assert page.query_selector("main img, header img") is None


def test_a_saved_page_needs_no_server(browser: Any, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "words")
    saved = save_page(folder, tmp_path / "saved.html")
    with open_page(browser, saved.as_uri()) as page:
        page.wait_for_selector("#plan-name:has-text('plan-1')")
        show(page, "time")
        page.focus("#moment")
        page.keyboard.press("Home")
        page.wait_for_selector("#plan-name:has-text('storm-even')")
        show(page, "decisions")
        assert "gains 31 %" in page.inner_text("#view-decisions")
        assert page.is_hidden("[data-view=what-if]")


def test_what_is_printed_has_no_buttons(browser: Any, served: str) -> None:
    with open_page(browser, served) as page:
        choose_run(page, "words")
        page.emulate_media(media="print")
        assert page.is_hidden("nav")
        assert page.is_hidden("#scrubber")
        assert page.is_visible("#cards article")
        keep_picture(page, "words-print")
