"""Our Java classes (`storm-plugin/`) as one jar, compiled once for each version of Storm.

Maven builds the same jar; here neither it nor a javac is needed, since the compiler is a jar too.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from headrace.errors import Unsupported
from headrace.model.files import replace_file
from headrace.spark import find_java
from headrace.storm.jars import Jars, cache_folder

STAMP = (2026, 1, 1, 0, 0, 0)  # of all entries: the same sources give the same jar


def sources() -> Path:
    """The folder of the Java sources: inside the installed package, or in the source tree."""
    package = Path(__file__).parents[1]
    for folder in (package / "storm" / "java", package.parents[1] / "storm-plugin/src/main/java"):
        if folder.is_dir():
            return folder
    raise Unsupported("the sources of the plug-in for Storm are missing; install headrace again")


def find_plugin(jars: Jars) -> Path:
    """The plug-in's jar for a version of Storm."""
    folder = sources()
    files = sorted(folder.rglob("*.java"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    name = f"headrace-storm-{version('headrace')}-{digest}.jar"
    jar = cache_folder() / "storm" / jars.version / "plugin" / name
    if not jar.exists():
        compile_jar(files, jars.class_path, jars.compiler, jar)
    return jar


def compile_jar(
    files: Sequence[Path], class_path: Sequence[Path], compiler: Path, jar: Path
) -> None:
    """Java files as a jar."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="headrace-java-") as classes:
        command = [str(find_java().home / "bin" / "java"), "-jar", str(compiler)]
        command += ["-17", "-nowarn", "-proc:none", "-encoding", "UTF-8", "-d", classes]
        command += ["-classpath", os.pathsep.join(map(str, class_path)), *map(str, files)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise Unsupported(f"the plug-in for Storm does not compile: {done.stderr[:2000]}")
        with replace_file(jar) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as out:
            for file in sorted(Path(classes).rglob("*.class")):
                entry = zipfile.ZipInfo(file.relative_to(classes).as_posix(), STAMP)
                out.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
