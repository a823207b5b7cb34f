"""Wall time, for people and journals only. Durations and deadlines use monotonic time."""

import time


def unix_seconds() -> float:
    """Seconds since 1970, as the operating system believes."""
    return time.time()  # noqa: TID251  # this is the door
