"""The agent's clocks. Cores are handed `now`; only edges read these.

Wall time is for people and journals. Everything that is measured uses `monotonic_seconds`, which
worker threads may read as well as the event loop.
"""

import time


def unix_seconds() -> float:
    """Seconds since 1970, as the operating system believes."""
    return time.time()  # noqa: TID251  # this is the door


def monotonic_seconds() -> float:
    """Seconds since some point in the past; never goes back, stands still while suspended."""
    return time.monotonic()  # noqa: TID251  # this is the door


def boottime_seconds() -> float:
    """The same, but goes on while the machine is suspended: peers have waited all the time."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
