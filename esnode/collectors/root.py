"""Where the observed host's `/proc`, `/sys` and `/` lie, and how a collector reads a part of them.

It is its own file because all host collectors share it: in a container the host's trees are
mounted elsewhere, and in tests they are recorded ones. It must not know what any file means.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from esnode.collectors.base import CollectFailed
from esnode.drivers.files import Unreadable, list_folder, read_text
from esnode.readings.host import Absence

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRoot:
    """The three trees of one host, as this process sees them."""

    procfs: str | os.PathLike[str] = "/proc"
    sysfs: str | os.PathLike[str] = "/sys"
    rootfs: str | os.PathLike[str] = "/"

    def proc(self, name: str) -> str:
        """Path of a file below the host's `/proc`."""
        return f"{os.fspath(self.procfs)}/{name}"

    def sys(self, name: str) -> str:
        """Path of a file below the host's `/sys`."""
        return f"{os.fspath(self.sysfs)}/{name}"

    def within(self, mountpoint: str) -> str:
        """Path at which this process reaches an absolute path of the host."""
        return f"{os.fspath(self.rootfs).rstrip('/')}{mountpoint}" or "/"


def read_section(
    path: str, parse: Callable[[str], Value | None], *, what: str, absent: list[Absence]
) -> Value | None:
    """Read and parse one file, or add to `absent` why it gave nothing."""
    text = read_text(path)
    if isinstance(text, Unreadable):
        absent.append(Absence(what=what, reason=text.reason))
        return None
    value = parse(text)
    if value is None:
        state = "holds nothing of the form the kernel documents" if text.strip() else "is empty"
        absent.append(Absence(what=what, reason=f"{path} {state}"))
    return value


def note_missing(names: dict[str, str], found: object, *, path: str, absent: list[Absence]) -> None:
    """Add to `absent` each field of `found` that is ``None``.

    `names` maps the field to the kernel's own word for it, which the operator can look for.
    """
    for field, word in names.items():
        if getattr(found, field) is None:
            absent.append(Absence(what=field, reason=f"{path} has no usable value for {word}"))


def require_sysfs(root: HostRoot) -> None:
    """Check that there is a sysfs at all, so that an absence can be told from a wrong path.

    Raises:
        CollectFailed: the folder cannot be listed or is empty.
    """
    listed = list_folder(os.fspath(root.sysfs))
    if isinstance(listed, Unreadable):
        raise CollectFailed(f"no sysfs: {listed.reason}")
    if not listed:
        raise CollectFailed(f"no sysfs: {os.fspath(root.sysfs)} is empty; is it mounted there?")
