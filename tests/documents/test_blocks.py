"""Every code block of README and guides runs, and prints what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents.blocks import DOCUMENTS, NEEDS, ROOT, Reader, blocks, check_output


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_blocks_of_a_document_run_from_top_to_bottom(document: Path, tmp_path: Path) -> None:
    reader, ran = Reader(tmp_path), 0
    for block in blocks(document):
        if block.needs is not None:
            assert block.needs in NEEDS
            continue
        printed = reader.run(block)
        ran += 1
        if block.output is not None:
            check_output(block.output, printed)
    assert ran > 0


def test_a_shown_output_may_leave_lines_out_and_nothing_else() -> None:
    printed = "one\ntwo  \nthree\nfour\n"
    for right in ("one\ntwo\nthree\nfour", "one\n..\nfour", "..\nthree\n..", "one\n.."):
        check_output(right, printed)
    for wrong in ("one\nthree\n..", "one\ntwo\nthree", "two\n..", "..\nfour\n..\ntwo", "..\nfive"):
        with pytest.raises(AssertionError):
            check_output(wrong, printed)
