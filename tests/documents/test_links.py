"""Links between our documents lead somewhere, and generated documents are as the code has them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from tests.documents.blocks import ROOT

PAGES = sorted(
    path
    for folder in ("", "docs", "examples", "papers")
    for path in (ROOT / folder).glob("**/*.md" if folder else "*.md")
)
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)")
FENCED = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def anchors(path: Path) -> set[str]:
    """What the headings of a page are called in links."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub(code, path.read_text("utf-8")), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


def code(match: re.Match[str]) -> str:
    """Code in a heading counts, a block of code does not."""
    return "" if match[0].startswith("```") else match[0].strip("`")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target, anchor in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(found), f"{page.name} links to {target}#{anchor}"


def test_the_site_has_every_document_once() -> None:
    def pages(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        values = entry.values() if isinstance(entry, dict) else entry
        return [page for value in values for page in pages(value)]  # pyright: ignore[reportGeneralTypeIssues]

    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    documents = ROOT / "docs"
    found = (str(path.relative_to(documents)) for path in documents.glob("**/*.md"))
    listed_elsewhere = site["not_in_nav"].split(" ")[0]
    assert sorted(pages(site["nav"])) == sorted(
        p for p in found if not fnmatch(p, listed_elsewhere)
    )


def test_generated_documents_are_as_the_code_has_them() -> None:
    # In a process of its own, as `make docs` is: what other tests have loaded does not count.
    script = (
        "import json, runpy; made = runpy.run_path('docs/generate.py')['documents']()\n"
        "print(json.dumps({str(path): text for path, text in made.items()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made: dict[str, str] = json.loads(done.stdout)
    assert made
    for path, text in made.items():
        assert Path(path).read_text(encoding="utf-8") == text, f"{path} is old: run make docs"
