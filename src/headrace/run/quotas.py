"""CPU quotas by Linux control groups, version 1 or 2: processes that together get so much CPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headrace.errors import Unsupported

MOUNTS = Path("/proc/self/mounts")
PERIOD_US = 100_000  # the kernel's own default
LEAST_QUOTA_US = 1_000  # it takes no less
SHARES_PER_CORE = 1024  # of version 1: a group weighs as much as a thread for each of its cores


@dataclass(frozen=True, slots=True)
class Quotas:
    """Where the machine keeps its groups."""

    root: Path
    version: int

    def make(self, name: str, cpu: float) -> Path:
        """A group that gets `cpu` (100 = one core); gives the file that takes process ids."""
        quota_us, group = max(LEAST_QUOTA_US, round(cpu / 100 * PERIOD_US)), self.root / name
        try:
            if (
                self.version == 2
                and "cpu" not in (self.root / "cgroup.subtree_control").read_text().split()
            ):
                (self.root / "cgroup.subtree_control").write_text("+cpu")
            group.mkdir()
            if self.version == 2:
                (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
                (group / "cpu.weight").write_text(str(min(10_000, max(1, round(cpu)))))
            else:
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(quota_us))
                (group / "cpu.shares").write_text(str(max(2, round(cpu * SHARES_PER_CORE / 100))))
        except OSError as error:
            raise Unsupported(
                f"no CPU quota in {group}: {error.strerror}",
                resource="cgroup",
                fix="leave the CPU limit out",
            ) from None
        return group / "cgroup.procs"

    def groups(self, prefix: str) -> list[Path]:
        """The groups whose names start so."""
        return sorted(self.root.glob(f"{prefix}*/"))


def find_quotas(mounts: Path = MOUNTS) -> Quotas:
    """The control groups of this machine that can limit CPU."""
    for line in mounts.read_text().splitlines() if mounts.exists() else ():
        _, where, kind, options = line.split()[:4]
        root = Path(where)
        if kind == "cgroup" and "cpu" in options.split(","):
            return Quotas(root, 1)
        if kind == "cgroup2" and "cpu" in _words(root / "cgroup.controllers"):
            return Quotas(root, 2)
    raise Unsupported(
        "a limited CPU needs control groups with a cpu controller, and none is mounted",
        resource="cgroup",
        fix="leave the CPU limit out",
    )


def _words(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []
