"""The control groups of jobs: where this machine lets us make them, and what is done with them.

Its own file because there are two kinds, and machines that have neither for us. On version 2 a
group is ended at once by the kernel; on version 1 it is frozen and its processes are killed one by
one. Weights and limits are set where a controller is there for it. It must not know what a job is.
Source: kernel documentation, cgroup-v2 and cgroup-v1.
"""

import contextlib
import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PARENT = "esnode-jobs"
V1_CONTROLLERS = ("freezer", "cpu", "cpuacct", "memory")
V2_CONTROLLERS = ("cpu", "memory")
_SHARES_PER_CPU = 1024
_GONE = (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP)
"""A group that went away, or one of threads, whose processes are those of its parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupUse:
    """What a group has used and holds."""

    cpu_seconds: float | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cgroups:
    """Where groups can be made."""

    kind: str
    """``v2`` (ended by the kernel), ``v1`` (by its freezer) or ``none``."""
    parents: tuple[Path, ...] = ()
    """Folders in which a job's groups are made: one on version 2, one a controller on version 1,
    and both where version 2 has no controllers."""
    reason: str = ""
    """Why there are none, or what they cannot do."""

    def make(self, name: str, *, memory_bytes: int = 0, cpu_count: int = 0) -> tuple[str, ...]:
        """The groups of one job; a limit that no controller takes is left out.

        Raises:
            OSError: one cannot be made.
        """
        paths = []
        for parent in self.parents:
            path = parent / name
            path.mkdir(parents=True, exist_ok=True)
            paths.append(str(path))
            if memory_bytes:
                _try_write(path / "memory.max", str(memory_bytes))
                _try_write(path / "memory.limit_in_bytes", str(memory_bytes))
            if cpu_count:
                _try_write(path / "cpu.weight", str(min(10_000, 100 * cpu_count)))
                _try_write(path / "cpu.shares", str(_SHARES_PER_CPU * cpu_count))
        return tuple(paths)

    def paths_of(self, name: str) -> tuple[Path, ...]:
        """The groups of one job that are there."""
        return tuple(path for parent in self.parents if (path := parent / name).is_dir())

    def names(self) -> tuple[str, ...]:
        """All groups of jobs that are there.

        Raises:
            OSError: it cannot be seen.
        """
        found: dict[str, None] = {}
        for parent in self.parents:
            with contextlib.suppress(FileNotFoundError):
                found.update((one.name, None) for one in sorted(parent.iterdir()) if one.is_dir())
        return tuple(found)


def probe(root: Path = ROOT, own: str | None = None) -> Cgroups:
    """Where this process may make groups.

    Under systemd that is below its own unit's group, which must be delegated (Delegate=yes); else a
    group of ours beside all others.
    """
    own = _own_groups() if own is None else own
    for mount in (root, root / "unified"):
        parent = mount / _below(own, "")
        if (mount / "cgroup.controllers").exists() and _can_make(parent):
            _pass_controllers_on(mount, parent)
            passed = _read(parent / "cgroup.subtree_control").split()
            missing = [name for name in V2_CONTROLLERS if name not in passed]
            others = _v1_parents(root, own, ("cpu", "cpuacct", "memory")) if missing else ()
            lines = "" if others or not missing else f"no limits: {parent} has no {missing[0]}"
            return Cgroups(kind="v2", parents=(parent, *others), reason=lines)
    parents = _v1_parents(root, own, V1_CONTROLLERS)
    if any((parent / "freezer.state").exists() for parent in parents):
        return Cgroups(kind="v1", parents=parents)
    return Cgroups(kind="none", reason=f"no control group can be made below {root}")


def _v1_parents(root: Path, own: str, names: Sequence[str]) -> tuple[Path, ...]:
    """One a mount: some controllers are mounted together, under each of their names."""
    found: dict[Path, None] = {}
    for name in names:
        mount = root / name
        if (mount / "cgroup.procs").exists():
            parent = mount.resolve() / _below(own, name)
            if _can_make(parent):
                found[parent] = None
    return tuple(found)


def _pass_controllers_on(mount: Path, parent: Path) -> None:
    """Groups have the controllers that their parent passes on.

    Not below a unit: its own group would have to be empty of processes for that, and systemd could
    not start it anew. Source: cgroup-v2, "No Internal Process Constraint".
    """
    if parent.parent == mount:
        for folder in (mount, parent):
            setting = folder / "cgroup.subtree_control"
            for name in V2_CONTROLLERS:
                if name not in _read(setting).split():
                    _try_write(setting, f"+{name}")


def _below(own: str, controller: str) -> str:
    """Below the own unit where systemd made one, else beside everything."""
    for line in own.splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(",") and path.endswith(".service"):
            return f"{path.lstrip('/')}/{PARENT}"
    return PARENT


def _own_groups() -> str:
    try:
        return Path("/proc/self/cgroup").read_text(encoding="utf-8")
    except OSError:
        return ""


def _can_make(parent: Path) -> bool:
    try:
        parent.mkdir(parents=True, exist_ok=True)
        probe_path = parent / f".probe-{os.getpid()}"
        probe_path.mkdir()
        probe_path.rmdir()
    except OSError:
        return False
    return True


def pids_in(paths: Sequence[Path]) -> tuple[int, ...]:
    """Everyone in these groups and below them.

    Raises:
        OSError: that cannot be seen; a group that is gone has nobody.
    """
    found: dict[int, None] = {}
    for path in paths:
        for folder, _, _ in os.walk(path):
            try:
                text = Path(folder, "cgroup.procs").read_text(encoding="ascii")
            except OSError as error:
                if error.errno in _GONE:
                    continue
                raise
            found.update(dict.fromkeys(pid for pid in map(int, text.split()) if pid))
    return tuple(found)


def kill_groups(paths: Sequence[Path]) -> bool:
    """End everyone in these groups where the kernel can do it at once; whether it can."""
    written = [_try_write(path / "cgroup.kill", "1") for path in paths]
    return any(written)


def freeze(paths: Sequence[Path], *, is_frozen: bool) -> None:
    """Let nobody in these groups run, or let them go on."""
    for path in paths:
        _try_write(path / "cgroup.freeze", "1" if is_frozen else "0")
        _try_write(path / "freezer.state", "FROZEN" if is_frozen else "THAWED")


def remove(paths: Sequence[Path]) -> None:
    """Take empty groups away; one that is not empty stays."""
    for path in paths:
        for folder, _, _ in os.walk(path, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()


def use_of(paths: Sequence[Path]) -> CgroupUse:
    """What these groups have used, as far as a controller counts it."""
    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    for path in paths:
        usage = _read(path / "cpuacct.usage")
        if usage.isdecimal():
            cpu_seconds = int(usage) / 1e9
        for line in _read(path / "cpu.stat").splitlines():
            name, _, value = line.partition(" ")
            if name == "usage_usec" and value.isdecimal():
                cpu_seconds = int(value) / 1e6
        for name in ("memory.current", "memory.usage_in_bytes"):
            held = _read(path / name)
            if held.isdecimal():
                memory_bytes = int(held)
    return CgroupUse(cpu_seconds=cpu_seconds, memory_bytes=memory_bytes)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _try_write(path: Path, text: str) -> bool:
    """Write a setting that may not be there; never makes a file."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(descriptor, text.encode())
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
