"""Changes that end by themselves: what was there before, and when it is put back.

Pure; `now` is handed in. Its own file because a lease outlives whatever made it. There is no kind
for power limits and clocks: nothing may raise a cap on its own way out, so nobody can lease one,
and no undo can reach it. It must not know how a change is made or put back.
Source: leases with a time to live, of the rules common to every actuator; the exemption of power
from the design's section on rack power.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class LeaseKind(StrEnum):
    """What may be lent. Words are only added to."""

    NICE = "nice"
    CPU_WEIGHT = "cpu-weight"
    IO_WEIGHT = "io-weight"
    QDISC = "qdisc"
    TAINT = "taint"
    PLACEMENT = "placement"
    """New work is kept away from a device."""
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """One change, with the way back."""

    id: str
    """The id of the ticket that made it."""
    feature: str
    kind: LeaseKind
    target: str
    original: str
    """What to put back."""
    changed: str
    """What was put there: where something else is found, somebody else has changed it since."""
    until_seconds: float

    @property
    def line(self) -> str:
        """For people."""
        return f"{self.id}: {self.kind} of {self.target} {self.original} -> {self.changed}"


class Leases:
    """The leases of one node. A lease is there until it was put back, however long that takes."""

    def __init__(self, leases: tuple[Lease, ...] = ()) -> None:
        self._leases = {lease.id: lease for lease in leases}

    @property
    def all(self) -> tuple[Lease, ...]:
        """All that are held, the oldest first."""
        return tuple(self._leases.values())

    def take(self, lease: Lease) -> None:
        """One more. The first original of a target is kept: that is what people had."""
        for one in self._leases.values():
            if (one.kind, one.target) == (lease.kind, lease.target):
                lease = replace(lease, original=one.original)
                del self._leases[one.id]
                break
        self._leases[lease.id] = lease

    def expired(self, now: float) -> tuple[Lease, ...]:
        """Those to put back now; they stay until `put_back`, so that a failure is tried again."""
        return tuple(lease for lease in self._leases.values() if now >= lease.until_seconds)

    def end(self, lease_id: str | None, now: float) -> tuple[Lease, ...]:
        """Let one (or all, for None) expire at once; returns those that were held."""
        ended = [one for one in self._leases.values() if lease_id in (None, one.id)]
        for one in ended:
            self._leases[one.id] = replace(one, until_seconds=min(now, one.until_seconds))
        return tuple(self._leases[one.id] for one in ended)

    def put_back(self, lease_id: str) -> None:
        """It is as it was."""
        self._leases.pop(lease_id, None)
