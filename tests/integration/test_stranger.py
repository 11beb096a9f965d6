"""Headrace from its wheel, in an environment made from nothing: what a stranger does first."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUIET = ("--quiet", "--disable-pip-version-check")
WALK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.DOTALL)
TAKES_PANDAS = "find_spec"  # a block of the walk that prints nothing without pandas


@dataclass(frozen=True)
class Stranger:
    """An environment with Headrace and the example plug-in, without extras, and a folder in it."""

    bin: Path
    folder: Path

    def call(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment."""
        kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
        return subprocess.run(
            [str(self.bin / program), *words],
            cwd=self.folder,
            env={**kept, "PATH": f"{self.bin}:/usr/bin:/bin", "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )

    def answer(self, *words: str) -> str:
        """What a command prints."""
        done = self.call("headrace", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refusal(self, *words: str) -> str:
        """The line in which a command is refused, and the one with what would help."""
        done = self.call("headrace", *words)
        refused, help_line = done.stderr.splitlines()
        assert (done.returncode, refused[:10]) == (1, "headrace: "), done.stdout + done.stderr
        return help_line


def pip(python: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-m", "pip", *words, *QUIET], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    """Build the wheel, install it and the plug-in into an empty environment, write a first file."""
    folder = tmp_path_factory.mktemp("stranger")
    probe = pip(sys.executable, "download", "--no-deps", "--dest", str(folder), "click")
    if probe.returncode:
        pytest.skip(f"no package registry answers: {probe.stderr.strip().splitlines()[-1]}")
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", str(folder))
    built = pip(sys.executable, "wheel", *options, str(ROOT), str(ROOT / "examples/my_scheduler"))
    assert built.returncode == 0, built.stderr
    venv.create(folder / "empty", with_pip=True)
    found = Stranger(folder / "empty" / "bin", folder)
    wheels = map(str, [*folder.glob("headrace-*.whl"), *folder.glob("my_scheduler-*.whl")])
    installed = pip(str(found.bin / "python"), "install", *wheels)
    assert installed.returncode == 0, installed.stderr
    assert "wrote app.yaml" in found.answer("init", "app.yaml")
    return found


def test_only_what_planning_needs_is_installed(stranger: Stranger) -> None:
    heavy = ["pyspark", "pandas", "pyarrow", "pymetis"]
    script = f"import importlib.util as u; print([m for m in {heavy} if u.find_spec(m)])"
    assert stranger.call("python", "-c", script).stdout.strip() == "[]"


def test_a_first_file_is_placed(stranger: Stranger) -> None:
    first = stranger.call("headrace", "place", "app.yaml")
    assert "compiling its kernels, once" in first.stderr
    assert first.stdout.startswith("Proven optimal: ")
    again = stranger.call("headrace", "place", "app.yaml")
    assert (again.stdout, again.stderr) == (first.stdout, "")


@pytest.mark.parametrize("words", [["run", "word-count"], ["observe", "."], ["demo"]])
def test_a_command_that_needs_spark_says_so(stranger: Stranger, words: list[str]) -> None:
    assert "headrace[spark]" in stranger.refusal(*words)


def test_a_scheduler_that_needs_metis_says_so(stranger: Stranger) -> None:
    assert "headrace[metis]" in stranger.refusal("place", "app.yaml", "--by", "p-scheduler")


def test_the_walk_in_python_runs_from_top_to_bottom(stranger: Stranger) -> None:
    blocks = WALK.findall((ROOT / "docs" / "guides" / "python.md").read_text(encoding="utf-8"))
    (stranger.folder / "walk.py").write_text("".join(code for code, _ in blocks))
    done = stranger.call("python", "walk.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(out for code, out in blocks if TAKES_PANDAS not in code)


def test_a_frame_without_pandas_is_refused_in_words(stranger: Stranger) -> None:
    script = (
        "import headrace as hr\n"
        "try:\n    hr.place('app.yaml', by='storm-even').to_frame()\n"
        "except hr.HeadraceError as refusal:\n    print(refusal)"
    )
    done = stranger.call("python", "-c", script)
    assert "pandas" in done.stdout, done.stderr


def test_a_plug_in_is_listed_compared_and_checked(stranger: Stranger) -> None:
    assert "most-room" in stranger.answer("schedulers")
    compared = stranger.answer("compare", "app.yaml", "--by", "headrace", "--by", "most-room")
    assert "most-room" in compared
    assert stranger.answer("check-scheduler", "most-room").count("holds") == 8
