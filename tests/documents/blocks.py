"""Code blocks of documents: found, and run as a reader would run them.

- `sh`: every line is a command, in one folder per document, beside `examples/`.
- `python`: one script per document, from top to bottom.
- `yaml`: a file where its first line is a comment with a file name; else a piece of one.
- `toml`: it is read.
- `text` right after one of these is what it prints; a line `..` stands for lines left out.

A comment `<!-- needs: WHAT -->` before a block says that it runs elsewhere: `spark` in
tests/integration, `storm` where its commands are checked (tests/storm), `a fresh machine` where
installation is tested.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from click.testing import CliRunner

from headrace.cli import main

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    ROOT / "README.md",
    ROOT / "docs" / "start.md",
    ROOT / "docs" / "concepts" / "choices.md",
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
)
NEEDS = ("spark", "storm", "a fresh machine")
COLUMNS = "88"
# `python` is the one that runs the tests.
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
BLOCK = re.compile(
    r"(?:<!-- needs: (?P<needs>[^>]*?) -->\n)?```(?P<language>\w*)\n(?P<code>.*?)```\n"
    r"(?:\n```text\n(?P<output>.*?)```\n)?",
    re.DOTALL,
)
HEADRACE = f'headrace() {{ {shlex.quote(sys.executable)} -m headrace.cli "$@"; }}; '


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, and what the document says that it prints."""

    language: str
    code: str
    output: str | None
    needs: str | None


def blocks(document: Path) -> Iterator[Block]:
    """The blocks of a document in their order; what is shown as output belongs to its block."""
    for match in BLOCK.finditer(document.read_text(encoding="utf-8")):
        yield Block(match["language"], match["code"], match["output"], match["needs"])


class Reader:
    """Someone who follows a document in a folder of their own."""

    def __init__(self, folder: Path, *, in_process: bool = True) -> None:
        self.folder, self.in_process = folder, in_process
        self.names: dict[str, object] = {"__name__": "document"}
        for name in ("examples", "papers"):
            (folder / name).symlink_to(ROOT / name)

    def run(self, block: Block) -> str:
        """What a block prints."""
        if block.language == "sh":
            return "".join(map(self.command, commands(block.code)))
        if block.language == "python":
            printed = io.StringIO()
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
                exec(compile(block.code, "document", "exec"), self.names)  # noqa: S102 - our own
            return printed.getvalue()
        if block.language == "toml":
            assert tomllib.loads(block.code)
            return ""
        assert block.language == "yaml", f"a block of {block.language!r} is never run"
        assert isinstance(yaml.safe_load(block.code), dict | list)
        name = re.match(r"# (\S+\.yaml)\b", block.code)
        if name is not None:
            (self.folder / name[1]).write_text(block.code, encoding="utf-8")
        return ""

    def command(self, line: str) -> str:
        """What a command prints; ours run in this process where the shell has nothing to add."""
        words = shlex.split(line, comments=True)
        plain = self.in_process and words[0] == "headrace"
        if plain and not re.search(r"[|<>$*&;]", line.split(" #")[0]):
            with contextlib.chdir(self.folder):
                result = CliRunner().invoke(main, words[1:], env={"COLUMNS": COLUMNS})
            assert result.exit_code == 0, f"{line}\n{result.output}{result.exception!r}"
            return result.stdout
        found = subprocess.run(
            ["bash", "-c", HEADRACE + line],
            cwd=self.folder,
            env={**os.environ, "COLUMNS": COLUMNS, "PATH": PATH},
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, f"{line}\n{found.stdout}{found.stderr}"
        return found.stdout


def commands(code: str) -> Iterator[str]:
    """The lines of a shell block that are commands; a backslash joins two of them."""
    for line in code.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line


def check_output(shown: str, printed: str) -> None:
    """Insist that what is shown was printed, line by line; `..` stands for any lines."""
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    at = 0
    pieces = re.split(r"^\.\.$", shown.strip("\n"), flags=re.MULTILINE)
    for i, piece in enumerate(pieces):
        wanted = [line.rstrip() for line in piece.strip("\n").splitlines()]
        starts = range(at, len(lines) - len(wanted) + 1) if i else range(1)
        found = [start for start in starts if lines[start : start + len(wanted)] == wanted]
        assert found, f"the document shows\n{piece}\nprinted was\n{printed}"
        at = found[0] + len(wanted)
    assert at == len(lines) or shown.rstrip().endswith(".."), f"more was printed:\n{printed}"
