"""What `esnode diagnostics` looks at besides the collectors: permissions, ports, clocks, state.

Each check answers with one line and, where something is to be done, with what. They run in the
command's own process and change nothing.
"""

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from esnode.config.values import Address

State = Literal["ok", "note", "missing", "broken"]
"""``note``: good to know. ``missing``: this machine lacks it. ``broken``: it should work."""

VOLATILE_FILESYSTEMS = frozenset({"tmpfs", "ramfs", "overlay", "devtmpfs"})
"""What is written here does not survive a reboot or a new container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the report."""

    subject: str
    state: State
    detail: str
    advice: str = ""


def system_checks(
    *, procfs: Path, sysfs: Path, state_dir: Path, listen: Address, is_agent_up: bool
) -> Iterator[Check]:
    """All checks, in the order in which they are shown."""
    yield check_user()
    yield check_energy_counters(sysfs)
    yield check_nvidia_module(procfs)
    yield check_ipmi_device()
    if not is_agent_up:
        yield check_port(listen)
    yield check_clock(sysfs)
    yield check_state_dir(state_dir, procfs)
    yield check_cgroups(procfs)


def check_user() -> Check:
    """Who runs this; nothing but energy counters and other users' processes needs more."""
    if os.geteuid() == 0:
        return Check(subject="user", state="ok", detail="root: everything can be read")
    return Check(
        subject="user",
        state="note",
        detail=f"uid {os.geteuid()}: most telemetry needs no privilege",
        advice="grant CAP_DAC_READ_SEARCH to read RAPL energy counters",
    )


def check_energy_counters(sysfs: Path) -> Check:
    """Whether RAPL is there and may be read."""
    counters = sorted(sysfs.glob("class/powercap/*/energy_uj"))
    if not counters:
        return Check(
            subject="energy counters",
            state="missing",
            detail="no RAPL zones: a virtual machine, or the module is not loaded",
            advice="modprobe intel_rapl_common (bare metal only)",
        )
    if not any(os.access(counter, os.R_OK) for counter in counters):
        return Check(
            subject="energy counters",
            state="broken",
            detail=f"{len(counters)} RAPL zones, none readable by uid {os.geteuid()}",
            advice="run as root or grant CAP_DAC_READ_SEARCH",
        )
    return Check(subject="energy counters", state="ok", detail=f"{len(counters)} RAPL zones")


def check_nvidia_module(procfs: Path) -> Check:
    """The NVIDIA kernel module and its device files."""
    version = procfs / "driver/nvidia/version"
    try:
        line = version.read_text().splitlines()[0]
    except (OSError, IndexError):
        return Check(
            subject="nvidia module",
            state="missing",
            detail="the NVIDIA kernel module is not loaded",
            advice="install the driver, or in a container expose the GPUs",
        )
    devices = [d for d in Path("/dev").glob("nvidia[0-9]*") if os.access(d, os.R_OK | os.W_OK)]
    if not devices:
        return Check(
            subject="nvidia module",
            state="broken",
            detail=f"loaded ({line}), but no /dev/nvidiaN can be opened",
            advice="check the permissions of /dev/nvidia*, or the container's device list",
        )
    return Check(subject="nvidia module", state="ok", detail=f"{line}; {len(devices)} devices")


def check_ipmi_device() -> Check:
    """The way to the baseboard controller."""
    device = next(
        (d for d in ("/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0") if Path(d).exists()), ""
    )
    if not device:
        return Check(
            subject="baseboard controller",
            state="missing",
            detail="no /dev/ipmi0: no controller, or its driver is not loaded",
            advice="modprobe ipmi_si ipmi_devintf (bare metal only)",
        )
    if shutil.which("ipmitool") is None:
        return Check(
            subject="baseboard controller",
            state="missing",
            detail=f"{device} is there, ipmitool is not",
            advice="install the package ipmitool",
        )
    if not os.access(device, os.R_OK | os.W_OK):
        return Check(
            subject="baseboard controller",
            state="broken",
            detail=f"{device} cannot be opened by uid {os.geteuid()}",
            advice="run as root, or give the agent's group access to it",
        )
    return Check(subject="baseboard controller", state="ok", detail=f"{device} and ipmitool")


def check_port(listen: Address) -> Check:
    """Whether the agent could listen where it is told to."""
    from esnode.listener import ListenError, open_sockets

    try:
        for one in open_sockets(listen):
            one.close()
    except ListenError as error:
        return Check(subject="port", state="broken", detail=str(error))
    return Check(subject="port", state="ok", detail=f"{listen} is free")


def check_clock(sysfs: Path) -> Check:
    """Whether the wall clock is kept in step, and what the kernel counts time with."""
    source = "unknown"
    try:
        name = "devices/system/clocksource/clocksource0/current_clocksource"
        source = (sysfs / name).read_text().strip()
    except OSError:
        pass
    is_synchronised = clock_is_synchronised()
    if is_synchronised is None:
        return Check(subject="clock", state="note", detail=f"source {source}; sync state unknown")
    if not is_synchronised:
        return Check(
            subject="clock",
            state="missing",
            detail=f"source {source}; no NTP client keeps the clock in step",
            advice="run chrony or systemd-timesyncd (rates do not depend on it, timestamps do)",
        )
    return Check(subject="clock", state="ok", detail=f"source {source}; synchronised")


_STA_UNSYNC = 0x0040
_TIME_ERROR = 5


def clock_is_synchronised() -> bool | None:
    """What the kernel says (adjtimex(2), STA_UNSYNC); ``None`` when it may not be asked."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        # struct timex begins with modes (int, padded) and holds status at offset 40 on 64-bit.
        timex = ctypes.create_string_buffer(256)
        code = libc.adjtimex(timex)
    except (OSError, AttributeError):
        return None
    if code < 0:
        return None
    status = int.from_bytes(timex.raw[40:44], "little")
    return code != _TIME_ERROR and not status & _STA_UNSYNC


def check_state_dir(state_dir: Path, procfs: Path) -> Check:
    """Whether state can be written, and whether it will be there after a reboot."""
    # Not Path.exists, which raises where a folder above may not be entered.
    existing = next(
        p for p in (state_dir.absolute(), *state_dir.absolute().parents) if os.path.exists(p)
    )
    try:
        with tempfile.NamedTemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Check(
            subject="state_dir",
            state="broken",
            detail=f"{state_dir}: cannot be written: {error.strerror}",
            advice="name another with --state-dir",
        )
    kind = filesystem_type(existing, procfs)
    if kind in VOLATILE_FILESYSTEMS:
        return Check(
            subject="state_dir",
            state="note",
            detail=f"{state_dir} lies on {kind}: it does not survive a reboot",
            advice="use a disk: power and jobs will not be entrusted to this place",
        )
    return Check(subject="state_dir", state="ok", detail=f"{state_dir} ({kind or 'unknown type'})")


def filesystem_type(path: Path, procfs: Path) -> str | None:
    """The type of the filesystem that holds `path`."""
    best, found = "", None
    try:
        lines = (procfs / "self/mountinfo").read_text().splitlines()
    except OSError:
        return None
    resolved = str(path.resolve())
    for line in lines:
        fields = line.split()
        try:
            mountpoint, kind = fields[4], fields[fields.index("-") + 1]
        except (IndexError, ValueError):
            continue
        is_inside = resolved == mountpoint or resolved.startswith(mountpoint.rstrip("/") + "/")
        if is_inside and len(mountpoint) >= len(best):
            best, found = mountpoint, kind
    return found


def check_cgroups(procfs: Path) -> Check:
    """Which generation of cgroups this machine has."""
    try:
        mounts = (procfs / "self/mountinfo").read_text()
    except OSError:
        return Check(subject="cgroups", state="note", detail="unknown")
    has_v1, has_v2 = " - cgroup " in mounts, " - cgroup2 " in mounts
    kind = {(0, 1): "version 2", (1, 0): "version 1", (1, 1): "version 1 and 2 (hybrid)"}.get(
        (int(has_v1), int(has_v2)), "none mounted"
    )
    return Check(subject="cgroups", state="ok" if has_v2 else "note", detail=kind)
