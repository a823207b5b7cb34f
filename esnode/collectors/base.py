"""The two shapes of a collector. Both block; `esnode.collect` gives each call a worker.

A collector says what it could not read in its reading's `absent`; it raises only when it has
nothing at all to say, and then `CollectFailed` with one line for the operator. It keeps no
history: rates are made in `esnode.fold`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Part = TypeVar("Part", covariant=True)
Target = TypeVar("Target")


class CollectFailed(Exception):
    """Nothing could be read. The text is one line: what was tried, what happened."""


class CollectUnavailable(CollectFailed):
    """The subject does not exist on this machine: no such tool, driver or device.

    Not an error to be counted: it is reported once, shown in the capability map with what would
    help, and tried again, because a driver may be loaded later.
    """


class Collector(Protocol[Part]):
    """One subject, one blocking read, one worker."""

    @property
    def name(self) -> str:
        """The subject: ``cpu``, ``memory`` ... as in `esnode_agent_collector_*` labels."""
        ...

    def read(self) -> Part:
        """Read everything once.

        Raises:
            CollectFailed: there is nothing to return.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery(Generic[Part, Target]):
    """What a fan-out collector found: a part of its own, and the targets to read one by one."""

    part: Part
    targets: Mapping[str, Target]
    """Key (a mount point, a GPU's UUID, a URL) to whatever `read` needs."""


class FanOutCollector(Protocol[Part, Target]):
    """A subject of many devices, each of which may hang alone: one worker per target."""

    @property
    def name(self) -> str:
        """The subject: ``filesystem``, ``gpu``, ``app``."""
        ...

    def discover(self) -> Discovery[object, Target]:
        """List the targets. Called at each interval, in the collector's own worker.

        Raises:
            CollectFailed: the targets cannot be listed; those known are still read.
        """
        ...

    def read(self, target: Target) -> Part:
        """Read one target, in that target's own worker.

        Raises:
            CollectFailed: this target has nothing to say.
        """
        ...
