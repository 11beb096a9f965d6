"""The blocks of README and guides that need Spark run as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents.blocks import DOCUMENTS, ROOT, Reader, blocks, check_output

NEEDING_SPARK = [
    document for document in DOCUMENTS if any(b.needs == "spark" for b in blocks(document))
]


@pytest.mark.parametrize("document", NEEDING_SPARK, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_blocks_that_need_spark_run(document: Path, tmp_path: Path) -> None:
    reader = Reader(tmp_path, in_process=False)
    for block in blocks(document):
        if block.needs == "spark":
            printed = reader.run(block)
            if block.output is not None:
                check_output(block.output, printed)
