"""The instants and the boot that a simulated machine's file is written in.

Its own file because this is the only place of the package that asks the operating system for the
boot's clock; everything else has it handed in, and a test hands in its own.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from esnode.clock import unix_seconds

BOOT_ID_PATH = Path("/proc/sys/kernel/random/boot_id")


def read_boottime_seconds() -> float:
    """Seconds since the host booted, suspend included: one clock for every process, never set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@cache
def read_host_boot_id() -> str:
    """The running kernel's boot id; a constant where there is no such file.

    Kept, because no process outlives a boot.
    """
    try:
        return BOOT_ID_PATH.read_text(encoding="ascii").strip()
    except OSError:
        return "unknown-boot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Where the instants come from."""

    now_seconds: Callable[[], float] = read_boottime_seconds
    wall_seconds: Callable[[], float] = unix_seconds
    host_boot_id: Callable[[], str] = read_host_boot_id
