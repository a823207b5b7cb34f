"""From a snapshot to what is posted: the metrics and the status document of one tick.

Its own file because it changes with the configuration (alias sets, per-core series) and the node's
loops do not. It knows nothing of HTTP.
"""

import os
import platform
import socket
from collections.abc import Callable
from dataclasses import dataclass

from esnode import __version__
from esnode.board import Board, Posted
from esnode.clock import unix_seconds
from esnode.config import Config
from esnode.metrics import (
    AgentStats,
    ClusterStats,
    ControlStats,
    Exposition,
    JobStats,
    RackPowerStats,
    Renderer,
    View,
    served_metrics,
)
from esnode.snapshot import Snapshot
from esnode.status import describe

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Counts:
    """What the node's edges count."""

    tick_lateness_seconds: float = 0.0
    ticks_skipped_total: int = 0
    reloads_total: int = 0
    reload_failures_total: int = 0
    is_last_reload_successful: bool | None = None


class Serving:
    """Makes the bodies of each tick, as one configuration wants them."""

    def __init__(
        self,
        config: Config,
        counts: Counts,
        board: Board,
        count_cluster: Callable[[], ClusterStats | None] = lambda: None,
        count_power: Callable[[], RackPowerStats | None] = lambda: None,
        count_jobs: Callable[[], JobStats | None] = lambda: None,
        count_control: Callable[[], ControlStats | None] = lambda: None,
    ) -> None:
        """Prepare; those that count are asked when somebody scrapes."""
        self._count_power = count_power
        self._count_jobs = count_jobs
        self._count_control = count_control
        self._count_cluster = count_cluster
        self._config = config
        self._counts = counts
        self._board = board
        self._started_at = unix_seconds()
        self._hostname = socket.gethostname()
        self._renderer = _renderer(config)

    def change(self, config: Config) -> None:
        """Serve as another configuration wants, from the next tick on."""
        self._config = config
        self._renderer = _renderer(config)

    def post(self, snapshot: Snapshot, *, number: int) -> None:
        """Put one tick on the board; bodies are made when somebody asks for them."""
        wall = unix_seconds()
        self._board.post(
            Posted(
                number=number,
                snapshot=snapshot,
                unix_seconds=wall,
                expose=lambda: self._expose(snapshot),
                describe=lambda: describe(
                    snapshot,
                    hostname=self._hostname,
                    unix_seconds=wall,
                    uptime_seconds=wall - self._started_at,
                ),
            )
        )

    def _expose(self, snapshot: Snapshot) -> Exposition:
        return self._renderer.render(
            View(
                snapshot=snapshot,
                agent=self._stats(),
                cluster=self._count_cluster(),
                rack_power=self._count_power(),
                jobs=self._count_jobs(),
                control=self._count_control(),
                hostname=self._hostname,
                is_per_core=self._config.metrics_per_core,
                is_per_process=self._config.metrics_per_process,
            )
        )

    def _stats(self) -> AgentStats:
        times = os.times()
        counts = self._counts
        return AgentStats(
            version=__version__,
            python_version=platform.python_version(),
            start_time_seconds=self._started_at,
            resident_memory_bytes=resident_memory_bytes(),
            cpu_seconds_total=times.user + times.system,
            tick_lateness_seconds=counts.tick_lateness_seconds,
            ticks_skipped_total=counts.ticks_skipped_total,
            config_reloads_total=counts.reloads_total,
            config_reload_failures_total=counts.reload_failures_total,
            config_last_reload_successful=counts.is_last_reload_successful,
            event_clients=self._board.event_clients,
        )


def _renderer(config: Config) -> Renderer:
    return Renderer(served_metrics(config.metric_aliases, is_kubernetes=config.k8s_mode))


def resident_memory_bytes() -> int | None:
    """Of this process, from the kernel."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return None
