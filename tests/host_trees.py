"""Small trees of `/proc` and `/sys`, built by the tests that read them."""

from collections.abc import Mapping
from pathlib import Path

from esnode.collectors.root import HostRoot

FOLDER = None
"""In place of a file's text: a folder of that name, which nobody can read as a file."""


def write_tree(at: Path, files: Mapping[str, str | bytes | None]) -> Path:
    at.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = at / name
        if content is FOLDER:
            path.mkdir(parents=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return at


def root_of(tree: Path) -> HostRoot:
    return HostRoot(procfs=tree / "proc", sysfs=tree / "sys", rootfs=tree)


def write_chip(
    sysfs: Path, folder: str, device: str, attributes: Mapping[str, str | bytes | None]
) -> Path:
    """A hwmon chip as the kernel lays it out: the class folder links to the device's."""
    home = sysfs / "devices" / device / "hwmon" / folder
    write_tree(home, attributes)
    (home / "device").symlink_to("../..")
    listing = sysfs / "class" / "hwmon"
    listing.mkdir(parents=True, exist_ok=True)
    (listing / folder).symlink_to(home)
    return home
