"""Files that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model.files import append_line, replace_file, write_whole


def test_a_file_is_replaced_as_a_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    write_whole(file, "old")
    write_whole(file, "größer".encode(), durable=True)
    assert file.read_text(encoding="utf-8") == "größer"
    assert list(tmp_path.iterdir()) == [file]


def test_a_write_that_fails_leaves_the_old_content_and_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text("old")

    def write_half() -> None:
        with replace_file(file) as draft:
            draft.write_text("half")
            raise ValueError("the disk is full")

    with pytest.raises(ValueError, match="disk is full"):
        write_half()
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_until_it_is_whole_a_file_is_not_there_under_its_name(tmp_path: Path) -> None:
    file = tmp_path / "table.arrow"
    with replace_file(file) as draft:
        draft.write_bytes(b"1")
        assert not file.exists()
        assert draft.name.startswith(".")  # readers of a folder pass over hidden files
    assert file.read_bytes() == b"1"


def test_a_line_that_a_crash_cut_off_is_ended_before_the_next(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    append_line(file, "one")
    file.write_text("one\ntw")
    append_line(file, "three")
    assert file.read_text() == "one\ntw\nthree\n"
