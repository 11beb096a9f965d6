"""Storm's jars from Maven Central, fetched once into a cache by version, with their checksums.

Two tools can fetch them: Ivy, which is inside the pip package of Spark, and Maven. Neither has to
be there, and one of them may fail behind a proxy, so the second is tried after the first. For the
version that is tried (`jars-2.8.3.lock`) both get the same list and no choice, and every jar must
have the checksum of that list; of other versions the checksums of the first time are kept.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from headrace.errors import InvalidInput, Unsupported
from headrace.model.files import write_whole
from headrace.spark import find_java, package_folder

VERSION = "2.8.3"  # the newest that is complete on Maven Central
COMPILER = "org.eclipse.jdt:ecj:3.37.0"  # runs on any Java, also one without javac
LEFT_OUT = ("org.rocksdb", "rocksdbjni")  # 70 MB for a store of metrics that is switched off
WITHIN_S = 900
Coordinate = tuple[str, str, str]  # group, artifact, version


@dataclass(frozen=True, slots=True)
class Jars:
    """Storm's jars of one version, and a compiler."""

    version: str
    folder: Path

    @property
    def class_path(self) -> list[Path]:
        """Storm's own jars."""
        return sorted(file for file in self.folder.glob("*.jar") if not is_compiler(file))

    @property
    def compiler(self) -> Path:
        return next(file for file in self.folder.glob("*.jar") if is_compiler(file))


def is_compiler(file: Path) -> bool:
    return file.name.startswith("ecj-")


def cache_folder() -> Path:
    """Where downloads are kept: HEADRACE_CACHE, else the user's cache folder."""
    if own := os.environ.get("HEADRACE_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"


def find_jars(version: str = VERSION, say: Callable[[str], None] = lambda _: None) -> Jars:
    """The jars of a version, from the cache, else from Maven Central."""
    if not all(word.isdecimal() for word in version.split(".")) or version.count(".") != 2:
        raise InvalidInput(f"`{version}` is no version of Storm; one looks like {VERSION}")
    if version.split(".")[0] != "2":
        raise Unsupported(f"Storm {version} is not supported; 2.4 and later of version 2 are")
    folder = cache_folder() / "storm" / version / "jars"
    lock = folder.parent / "jars.lock"
    if lock.exists() and not wrong_jars(folder, read_lock(lock)):
        return Jars(version, folder)
    say(f"fetching Storm {version} from Maven Central (70 MB, once) ..")
    known = locked(version)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetch-") as scratch:
        fetched = fetch(version, list(known), Path(scratch))
        if known and (wrong := wrong_jars(fetched, known)):
            raise Unsupported(
                f"{wrong[0]} from Maven Central has not the checksum that Headrace knows",
                resource="jars",
            )
        for file in fetched.glob("*.jar"):
            file.replace(folder / file.name)
    found = known or {file_name(file): checksum(file) for file in sorted(folder.glob("*.jar"))}
    write_whole(lock, "".join(f"{name} {digest}\n" for name, digest in found.items()))
    return Jars(version, folder)


def locked(version: str) -> dict[str, str]:
    """The checksums that come with Headrace; none for versions that were not tried."""
    file = Path(__file__).parent / f"jars-{version}.lock"
    return read_lock(file) if file.exists() else {}


def read_lock(file: Path) -> dict[str, str]:
    """Coordinate or file -> checksum."""
    lines = (line.split() for line in file.read_text().splitlines() if line[:1] not in ("", "#"))
    return {words[0]: words[1] for words in lines}


def file_name(name: str | Path) -> str:
    """The file of a coordinate group:artifact:version; of a file, its name."""
    if isinstance(name, Path) or ":" not in name:
        return Path(name).name
    _, artifact, version = name.split(":")
    return f"{artifact}-{version}.jar"


def wrong_jars(folder: Path, known: Mapping[str, str]) -> list[str]:
    """The jars that are not there or have another content."""
    return [
        file_name(name)
        for name, digest in known.items()
        if not (folder / file_name(name)).exists() or checksum(folder / file_name(name)) != digest
    ]


def checksum(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def fetch(version: str, names: list[str], scratch: Path) -> Path:
    """The jars in a folder below `scratch`; without names, whatever storm-server needs."""
    wanted = [split_name(name) for name in names]
    whole = not wanted
    wanted = wanted or [("org.apache.storm", "storm-server", version), split_name(COMPILER)]
    refusals: list[str] = []
    for tool, way in (("Ivy", by_ivy), ("Maven", by_maven)):
        folder = scratch / tool
        folder.mkdir()
        try:
            way(wanted, whole, folder)
            return folder / "jars"
        except Unsupported as refusal:
            refusals.append(f"{tool}: {refusal.message}")
    raise Unsupported(
        f"Storm {version} cannot be fetched from Maven Central ({'; '.join(refusals)})",
        resource="jars",
        fix="pip install 'headrace[spark]', which brings Ivy, or install Maven",
    )


def split_name(name: str) -> Coordinate:
    group, artifact, version = name.split(":")
    return group, artifact, version


def by_ivy(wanted: list[Coordinate], whole: bool, folder: Path) -> None:
    """Fetch with the Ivy that is inside the pip package of Spark."""
    if importlib.util.find_spec("pyspark") is None:
        raise Unsupported("the package pyspark, which brings it, is not installed")
    spark = package_folder("pyspark")
    ivy = next(iter(sorted((spark / "jars").glob("ivy-*.jar"))), None) if spark else None
    if ivy is None:
        raise Unsupported("the package pyspark has no ivy-*.jar")
    conf = "default->runtime(*),master(*)" if whole else "default->master(*)"
    lines = [
        f"<dependency org={quoteattr(g)} name={quoteattr(a)} rev={quoteattr(v)} "
        f"conf={quoteattr(conf)} transitive={quoteattr(str(whole).lower())}/>"
        for g, a, v in wanted
    ]
    (folder / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="headrace" module="storm"/>'
        '<configurations><conf name="default"/></configurations><dependencies>'
        + "".join(lines)
        + f'<exclude org="{LEFT_OUT[0]}" module="{LEFT_OUT[1]}"/></dependencies></ivy-module>'
    )
    pattern = f"{folder}/jars/[artifact]-[revision].[ext]"
    command = [str(find_java().home / "bin" / "java"), "-jar", str(ivy), "-ivy"]
    command += [str(folder / "ivy.xml"), "-cache", str(folder / "cache"), "-confs", "default"]
    run([*command, "-types", "jar", "bundle", "-retrieve", pattern], folder)


def by_maven(wanted: list[Coordinate], whole: bool, folder: Path) -> None:
    """Fetch with the Maven of this machine."""
    maven = shutil.which("mvn")
    if maven is None:
        raise Unsupported("there is no mvn")
    group, artifact = LEFT_OUT if whole else ("*", "*")
    without = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
    lines = "".join(
        f"<dependency><groupId>{g}</groupId><artifactId>{a}</artifactId><version>{v}</version>"
        f"<exclusions><exclusion>{without}</exclusion></exclusions></dependency>"
        for g, a, v in wanted
    )
    (folder / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>headrace</groupId>"
        "<artifactId>storm</artifactId><version>1</version>"
        f"<dependencies>{lines}</dependencies></project>"
    )
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    run([maven, "-B", "-q", *goal, f"-DoutputDirectory={folder}/jars"], folder)


def run(command: list[str], folder: Path) -> None:
    """Run a tool; what it says at the end is the reason if it fails."""
    try:
        done = subprocess.run(
            command, check=False, cwd=folder, capture_output=True, text=True, timeout=WITHIN_S
        )
    except subprocess.TimeoutExpired:
        raise Unsupported(f"it took longer than {WITHIN_S} s") from None
    found = list((folder / "jars").glob("*.jar"))
    if done.returncode or not found:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if "ERROR" in line or "not found" in line] or lines
        raise Unsupported(errors[0] if errors else f"it ended with status {done.returncode}")
