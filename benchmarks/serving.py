"""The live page: how soon a batch is seen, what viewers cost a run, how a day loads and scrubs.

python benchmarks/serving.py seen       batches written, and seen by a viewer's event stream
python benchmarks/serving.py viewers    a run on Spark with no viewer and with 50, in turns
python benchmarks/serving.py day        24 h at one batch a second: loaded, and scrubbed through
python benchmarks/serving.py fuzz       10,000 requests that the description allows, or does not
"""

from __future__ import annotations

import http.client
import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))

from measure import Row

from headrace.run.journal import Journal
from headrace.serve.server import Where, beside
from tests.serve.journals import COUNTS, NODES, SPREAD, WORDS, batch, write_run

SEEN_S, COST, LOAD_S, FRAMES_PER_S = 1.0, 0.02, 2.0, 30.0  # the targets
VIEWERS = 50
ROUNDS = 3  # pairs of runs without and with viewers
RUN = (
    "run word-count --master local[2] --batches 40 --option sentences=40000 --option tasks=4 --json"
)


def quiet(message: str) -> None:
    """Say nothing."""


def listen(address: str, run: str, heard: list[float], stop: threading.Event) -> None:
    """Note when each batch is heard of, until told to stop."""
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(address).port or 0, timeout=60)
    try:
        connection.request("GET", f"/api/v1/runs/{run}/events")
        answer = connection.getresponse()
        while not stop.is_set() and (line := answer.readline()):
            if line.startswith(b"event: batch"):
                heard.append(time.time())
    except OSError:
        return
    finally:
        connection.close()


def seen(folder: Path) -> dict[str, Any]:
    """Seconds from the end of a batch to a viewer that hears of it."""
    journal = Journal(folder)
    journal.begin({"topology": WORDS, "cluster": {"nodes": NODES}}, telemetry=None)
    journal.add_plan("first", COUNTS, SPREAD)
    written: list[float] = []
    heard: list[float] = []
    stop = threading.Event()
    with beside(folder, Where(port=0), quiet) as address:
        threading.Thread(
            target=listen, args=(address, folder.name, heard, stop), daemon=True
        ).start()
        time.sleep(1.5)
        for number in range(50):
            journal.add(batch(number, time.time(), "first"))
            written.append(time.time())
            time.sleep(0.2)
        time.sleep(1.0)
        stop.set()
    delays = [b - a for a, b in zip(written, heard, strict=True)]
    return {
        "batches": len(delays),
        "median_s": round(statistics.median(delays), 3),
        "most_s": round(max(delays), 3),
        "target_s": SEEN_S,
        "met": max(delays) < SEEN_S,
    }


def tuples_per_s(folder: Path, viewers: int) -> float:
    """What a run on Spark takes in, with so many looking."""
    command = [sys.executable, "-m", "headrace.cli", *RUN.split(), "--checkpoint", str(folder)]
    process = subprocess.Popen(
        [*command, "--serve", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    address = ""
    for line in process.stderr:
        if found := re.search(r"look at it: (\S+)", line):
            address = found[1]
            break
    stop = threading.Event()
    threads = [
        threading.Thread(target=listen, args=(address, folder.name, [], stop), daemon=True)
        for _ in range(viewers)
    ]
    for thread in threads:
        thread.start()
    drain = threading.Thread(target=process.stderr.read, daemon=True)
    drain.start()
    said, _ = process.communicate()
    stop.set()
    done = json.loads(said)["run"]
    warm = done["seconds"][len(done["seconds"]) // 2 :]
    return (done["tuples"] / done["batches"]) / statistics.median(warm)


def cost_of_viewers(folder: Path) -> dict[str, Any]:
    """Throughput without viewers and with 50, in turns."""
    rates: dict[int, list[float]] = {0: [], VIEWERS: []}
    for turn in range(ROUNDS):
        for viewers in (0, VIEWERS) if turn % 2 == 0 else (VIEWERS, 0):
            rates[viewers].append(tuples_per_s(folder / f"run-{turn}-{viewers}", viewers))
    without, along = (statistics.median(rates[n]) for n in (0, VIEWERS))
    return {
        "without": [round(rate) for rate in rates[0]],
        "with_50": [round(rate) for rate in rates[VIEWERS]],
        "cost": round(1 - along / without, 4),
        "target": COST,
        "met": 1 - along / without < COST,
    }


def day(folder: Path) -> dict[str, Any]:
    """24 h of a small run: the server's start, the page's load, and frames while scrubbing."""
    from playwright.sync_api import sync_playwright

    from tests.integration.browsers import find_chromium

    run = write_run(folder / "day", batches=86_400, moved_at=43_200)
    began = time.monotonic()
    with beside(run, Where(port=0), quiet) as address:
        started_s = time.monotonic() - began
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(address)
            page.wait_for_selector("html[data-ready=yes]", state="attached", timeout=60_000)
            loads: list[float] = []
            for _ in range(5):
                began = time.monotonic()
                page.reload()
                page.wait_for_selector("html[data-ready=yes]", state="attached", timeout=60_000)
                loads.append(time.monotonic() - began)
            page.click("[data-view=time]")
            page.wait_for_timeout(500)
            frames = page.evaluate(SCRUB)
            browser.close()
    return {
        "batches": 86_400,
        "start_of_server_s": round(started_s, 2),
        "load_s": round(statistics.median(loads), 2),
        "frames_per_s": round(frames, 1),
        "targets": {"load_s": LOAD_S, "frames_per_s": FRAMES_PER_S},
        "met": statistics.median(loads) < LOAD_S and frames >= FRAMES_PER_S,
    }


# Moves the slider at every frame for three seconds; gives the frames in a second.
SCRUB = """async () => {
  const slider = document.getElementById("moment");
  const most = Number(slider.max);
  const began = performance.now();
  let frames = 0;
  while (performance.now() - began < 3000) {
    slider.value = String(Math.round(most * (0.5 + 0.5 * Math.sin(frames / 9))));
    slider.dispatchEvent(new Event("input"));
    await new Promise((resolve) => requestAnimationFrame(resolve));
    frames += 1;
  }
  return frames / ((performance.now() - began) / 1000);
}"""


def fuzz_all(folder: Path) -> dict[str, Any]:
    """10,000 requests."""
    from headrace.serve import jobs
    from tests.serve.apps import client_of
    from tests.serve.fuzzing import fuzz
    from tests.serve.test_fuzz import answer_nothing

    jobs.answer_of = answer_nothing
    with client_of(write_run(folder / "words", batches=30, moved_at=10)) as client:
        first = fuzz(client, 200)
        tally = fuzz(client, 11_000, start=1)
    return {
        "requests": tally.requests,
        "statuses": dict(sorted(tally.statuses.items())),
        "strange": tally.strange[:5],
        "slowest_s": round(tally.slowest_s, 2),
        "grown_mb": round(tally.grown_mb, 1),
        "met": not tally.strange and not first.strange and tally.requests >= 10_000,
    }


PARTS = {"seen": seen, "viewers": cost_of_viewers, "day": day, "fuzz": fuzz_all}


def measure(name: str) -> dict[str, Any]:
    """One part, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="headrace-serving-") as folder:
        return PARTS[name](Path(folder) / name)


def rows(quick: bool) -> Iterator[Row]:
    """One row per target; a quick run leaves out Spark and most of the requests."""
    found = measure("seen")
    yield Row("serve: a batch is seen by a viewer, longest of 50", f"{found['most_s']} s",
              f"< {SEEN_S} s", found["met"])  # fmt: skip
    found = measure("day")
    yield Row("serve: 24 h at a batch a second, page loaded", f"{found['load_s']} s",
              f"< {LOAD_S} s", found["load_s"] < LOAD_S)  # fmt: skip
    yield Row("serve: the same scrubbed through", f"{found['frames_per_s']} frames/s",
              f">= {FRAMES_PER_S:g}", found["frames_per_s"] >= FRAMES_PER_S)  # fmt: skip
    if quick:
        return
    found = measure("viewers")
    yield Row("serve: throughput that 50 viewers cost a run", f"{found['cost']:.1%}",
              f"< {COST:.0%}", found["met"])  # fmt: skip
    found = measure("fuzz")
    yield Row("serve: requests of all kinds, without a failure", f"{found['requests']:,}",
              ">= 10,000", found["met"])  # fmt: skip


def main() -> None:
    """Print what is asked for, or everything, with all figures."""
    for name in sys.argv[1:] or PARTS:
        print(json.dumps({name: measure(name)}), flush=True)


if __name__ == "__main__":
    main()
