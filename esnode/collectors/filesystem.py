"""Sizes of the mounted filesystems, one worker a mount.

It is its own file, and fans out, because statfs(2) on a dead network filesystem never returns:
one such mount must not hide the others. It must not know deadlines; `esnode.collect` has them.
"""

import os
import re
from collections.abc import Callable

from esnode.collectors.base import CollectFailed, Discovery
from esnode.collectors.root import HostRoot
from esnode.drivers.files import Unreadable, explain_error, read_text
from esnode.readings.host import FilesystemReading, Mount

PSEUDO_TYPES = frozenset(
    [
        "autofs",
        "binfmt_misc",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "efivarfs",
        "erofs",
        "fusectl",
        "fuse.gvfsd-fuse",
        "fuse.lxcfs",
        "fuse.portal",
        "hugetlbfs",
        "iso9660",
        "mqueue",
        "nsfs",
        "overlay",
        "proc",
        "procfs",
        "pstore",
        "rootfs",
        "rpc_pipefs",
        "securityfs",
        "selinuxfs",
        "squashfs",
        "sysfs",
        "tracefs",
    ]
)
"""Filesystems without a size worth watching, and the overlays of containers, which repeat the
size of the disk below. Source: node_exporter, collector/filesystem_linux.go; efivarfs, rootfs
and three FUSE services are ours."""

IGNORED_MOUNTPOINTS = re.compile(
    r"/(dev|proc|sys|run/credentials/.+|run/containerd/.+|run/docker/.+"
    r"|var/lib/(docker|containerd|containers/storage)/.+"
    r"|var/lib/kubelet/pods/.+/volumes/kubernetes\.io~(projected|secret|configmap|downward-api)/.+"
    r")($|/.*)",
    re.DOTALL,
)
"""Mount points of the system itself and of container layers. Source: as above; the last two
lines are ours: they are made and removed with every container."""

_OCTAL = re.compile(r"\\([0-7]{3})")

StatFilesystem = Callable[[str], os.statvfs_result]


def _unescape(text: str) -> str:
    r"""Undo the kernel's ``\040`` for a space and the like."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text) if "\\" in text else text


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """The mounts worth watching, sorted by mount point; of two on one point the later, visible.

    Source: kernel documentation, filesystems/proc (mountinfo).
    """
    mounts: dict[str, Mount] = {}
    for line in text.split("\n"):
        # ID parent major:minor root mountpoint options [optional fields] - type source super
        before, separator, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if not separator or len(left) < 6 or len(right) < 2:
            continue
        mountpoint, kind = _unescape(left[4]), right[0]
        if not mountpoint.startswith("/") or "\0" in mountpoint:
            continue
        mounts.pop(mountpoint, None)
        if kind not in PSEUDO_TYPES and not IGNORED_MOUNTPOINTS.fullmatch(mountpoint):
            # Read-only can be set on the mount, or on the filesystem (after a disk error).
            options = left[5].split(",") + (right[2].split(",") if len(right) > 2 else [])
            mounts[mountpoint] = Mount(
                mountpoint=mountpoint,
                device=_unescape(right[1]),
                filesystem_type=kind,
                read_only="ro" in options,
            )
    return tuple(sorted(mounts.values(), key=lambda mount: mount.mountpoint))


class FilesystemCollector:
    """Lists the mounts of one host and reads each alone."""

    name = "filesystem"

    def __init__(self, root: HostRoot, *, statfs: StatFilesystem = os.statvfs) -> None:
        self._root = root
        self._statfs = statfs

    def discover(self) -> Discovery[tuple[Mount, ...], Mount]:
        """List the mounts as process 1 sees them, else as this process does.

        Raises:
            CollectFailed: neither list could be read.
        """
        text = read_text(self._root.proc("1/mountinfo"))
        if isinstance(text, Unreadable):
            own = read_text(self._root.proc("self/mountinfo"))
            if isinstance(own, Unreadable):
                raise CollectFailed(f"{text.reason}; {own.reason}")
            mounts = self._as_host_sees(parse_mountinfo(own))
        else:
            mounts = parse_mountinfo(text)
        return Discovery(part=mounts, targets={mount.mountpoint: mount for mount in mounts})

    def _as_host_sees(self, mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
        """In a container, our own list names the host's mounts below `rootfs`: cut it off."""
        prefix = os.fspath(self._root.rootfs).rstrip("/")
        if not prefix:
            return mounts
        return tuple(
            Mount(
                mountpoint=mount.mountpoint.removeprefix(prefix) or "/",
                device=mount.device,
                filesystem_type=mount.filesystem_type,
                read_only=mount.read_only,
            )
            for mount in mounts
            if mount.mountpoint == prefix or mount.mountpoint.startswith(f"{prefix}/")
        )

    def read(self, target: Mount) -> FilesystemReading:
        """Ask one filesystem for its sizes. Blocks for as long as the filesystem does.

        Raises:
            CollectFailed: statfs failed.
        """
        path = self._root.within(target.mountpoint)
        try:
            status = self._statfs(path)
        except OSError as error:
            # A name may hold a line break; the reason must stay one line.
            raise CollectFailed(f"statfs: {explain_error(repr(path), error).reason}") from None
        except ValueError:
            raise CollectFailed(f"statfs: {path!r} is not a possible file name") from None
        return FilesystemReading(
            mount=target,
            size_bytes=status.f_blocks * status.f_frsize,
            free_bytes=status.f_bfree * status.f_frsize,
            available_bytes=status.f_bavail * status.f_frsize,
            # Filesystems that make inodes as they need them (btrfs, FAT) say 0 of both.
            inodes_total=status.f_files or None,
            inodes_free=status.f_ffree if status.f_files else None,
        )
