"""Jars by name and version, with checksums; no network here."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from headrace.errors import InvalidInput, Unsupported
from headrace.storm import jars
from headrace.storm.jars import VERSION, checksum, file_name, find_jars, wrong_jars
from headrace.storm.plugin import sources

ROOT = Path(__file__).parents[2]


def test_the_lock_names_storm_a_compiler_and_a_checksum_for_each() -> None:
    lock = jars.locked(VERSION)
    assert f"org.apache.storm:storm-server:{VERSION}" in lock
    assert jars.COMPILER in lock
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in lock.values())
    assert not any("rocksdb" in name for name in lock)


def test_a_jar_of_another_content_or_none_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "a-1.jar").write_bytes(b"one")
    known = {"g:a:1": checksum(tmp_path / "a-1.jar"), "g:b:2": "0" * 64}
    assert wrong_jars(tmp_path, known) == ["b-2.jar"]
    (tmp_path / "a-1.jar").write_bytes(b"two")
    assert wrong_jars(tmp_path, known) == ["a-1.jar", "b-2.jar"]
    assert file_name("g:a:1") == "a-1.jar"


def fake_ways(monkeypatch: pytest.MonkeyPatch, *contents: bytes | None) -> None:
    """Ivy and Maven that write one jar, or fail."""

    def way(content: bytes | None):
        def fetch(wanted: object, whole: bool, folder: Path) -> None:
            if content is None:
                raise Unsupported("not today")
            (folder / "jars").mkdir()
            (folder / "jars" / "a-1.jar").write_bytes(content)

        return fetch

    monkeypatch.setattr(jars, "by_ivy", way(contents[0]))
    monkeypatch.setattr(jars, "by_maven", way(contents[1]))


def test_maven_is_tried_where_ivy_fails_and_the_cache_is_used_after(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    fake_ways(monkeypatch, None, b"jar")
    assert (find_jars("2.6.4").folder / "a-1.jar").read_bytes() == b"jar"
    fake_ways(monkeypatch, None, None)
    assert find_jars("2.6.4").version == "2.6.4"  # from the cache
    (tmp_path / "storm" / "2.6.4" / "jars" / "a-1.jar").write_bytes(b"torn")
    with pytest.raises(Unsupported, match="Ivy: not today; Maven: not today"):
        find_jars("2.6.4")


def test_a_jar_that_is_not_the_known_one_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))

    def locked(version: str) -> dict[str, str]:
        return {"g:a:1": "0" * 64}

    monkeypatch.setattr(jars, "locked", locked)
    fake_ways(monkeypatch, b"jar", None)
    with pytest.raises(Unsupported, match=re.escape("a-1.jar")):
        find_jars(VERSION)


@pytest.mark.parametrize("version", ["", "2", "latest", "2.8", "../2.8.3"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(InvalidInput, match="version of Storm"):
        find_jars(version)


def test_storm_1_is_not_supported() -> None:
    with pytest.raises(Unsupported, match=r"1\.2\.4"):
        find_jars("1.2.4")


def test_the_plugin_has_the_version_of_headrace() -> None:
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    pom = (ROOT / "storm-plugin" / "pom.xml").read_text()
    found = re.search(r"headrace-storm</artifactId>.*?<version>([^<]+)<", pom, re.DOTALL)
    assert found is not None
    assert found[1] == ours
    assert f"<storm.version>{VERSION}<" in pom


def test_the_sources_of_the_plugin_are_found() -> None:
    assert (sources() / "org/headrace/storm/HeadraceScheduler.java").exists()
