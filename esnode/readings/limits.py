"""Power limits of devices: what may be set, what is in force, and how a write of one went.

Its own file because the driver that sets a limit, the setter that guards it and the control that
plans it share these words. All are whole watts: a range's ends and what is in force are rounded up,
since a bound that is rounded down is none. It must not know watts of a node or a rack.
"""

import math
from dataclasses import dataclass
from typing import Literal

Kind = Literal["gpu", "cpu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit that somebody wants a device to keep."""

    device: str
    """The UUID of a GPU, or the powercap zone of a processor's package (``intel-rapl:0``)."""
    watts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRange:
    """Between what a device's limit can be set."""

    device: str
    kind: Kind
    minimum_watts: int
    maximum_watts: int
    default_watts: int | None = None
    """What the device returns to when its driver is loaded; ``None`` where it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnforcedLimit:
    """What one device says of its limit at one instant."""

    device: str
    enforced_watts: int | None
    """The least of all limiters, a baseboard controller's among them; ``None`` for unknown."""
    requested_watts: int | None
    """What was last asked for in-band, by whomever. Above `enforced_watts` while another limiter
    binds; below it while the device has not yet come down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitWritten:
    """The device took the write, or had it already. What it obeys is `enforced_watts`."""

    device: str
    asked_watts: int
    before_watts: int | None
    """In force before the write."""
    enforced_watts: int | None
    """Read back after it: the old value while a device has not yet come down, ``None`` for
    unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRefused:
    """The device was not written to, did not take it, or did not say whether it did."""

    device: str
    asked_watts: int
    enforced_watts: int | None
    reason: str
    """One line: who refused, and what would help."""


LimitOutcome = LimitWritten | LimitRefused


def round_up(watts: float | None) -> int | None:
    """Whole watts that are not below these; unknown stays unknown."""
    return None if watts is None else math.ceil(watts)
