"""A node in accelerated time: real host readings, simulated GPUs, the real agent and tables.

No thread, no server and no waiting: ticks follow each other as fast as they are worked out.
"""

from pathlib import Path
from typing import Any

from esnode.agent import Agent, AgentSettings
from esnode.collectors.cpu import CpuCollector
from esnode.collectors.disk import DiskCollector
from esnode.collectors.filesystem import FilesystemCollector
from esnode.collectors.gpu import GpuCollector
from esnode.collectors.memory import MemoryCollector
from esnode.collectors.network import NetworkCollector
from esnode.collectors.numa import NumaCollector
from esnode.collectors.root import HostRoot
from esnode.drivers.simulated.clocks import Clocks
from esnode.drivers.simulated.driver import SimulatedGpus
from esnode.metrics import AgentStats, View
from esnode.readings.sample import Reading, Sample, SourceStatus

STALE_SECONDS = 17.0
HOST_INTERVAL_TICKS = 5


class ImaginedNode:
    """One node whose clock is turned by hand."""

    def __init__(self, folder: Path, spec: str) -> None:
        self.now_seconds = 1000.0
        clocks = Clocks(
            now_seconds=lambda: self.now_seconds,
            wall_seconds=lambda: 1_800_000_000.0 + self.now_seconds,
            host_boot_id=lambda: "imagined",
        )
        self._driver = SimulatedGpus(folder / "machine.json", spec, clocks=clocks)
        self._gpus = GpuCollector(self._driver)
        root = HostRoot()
        self._filesystems = FilesystemCollector(root)
        self._host = {
            one.name: one
            for one in (
                CpuCollector(root),
                MemoryCollector(root),
                DiskCollector(root),
                NetworkCollector(root),
                NumaCollector(root),
            )
        }
        self._agent = Agent(AgentSettings())
        self._read_host: dict[str, Any] = {}
        self._mounts: dict[str, Sample[Any]] = {}
        self._ticks = 0
        for number, gpu in enumerate(self._driver.discover().gpus):
            self._driver.set_load(gpu.uuid, (number % 10) / 10)

    def tick(self, seconds: float = 1.0) -> View:
        """Let time go by, read everything, and fold it."""
        self.now_seconds += seconds
        if self._ticks % HOST_INTERVAL_TICKS == 0:
            self._collect_host()
        self._ticks += 1
        tick = self._agent.tick(self._reading(), now=self.now_seconds)
        return View(
            snapshot=tick.snapshot,
            agent=AgentStats(version="0", cpu_seconds_total=self.now_seconds / 100),
            hostname="imagined",
            is_per_core=True,
        )

    def _sample(self, value: object) -> Sample[Any]:
        return Sample(
            value=value, taken_at_seconds=self.now_seconds, stale_after_seconds=STALE_SECONDS
        )

    def _collect_host(self) -> None:
        self._read_host = {name: self._sample(one.read()) for name, one in self._host.items()}
        found = self._filesystems.discover().targets
        self._mounts = {
            name: self._sample(self._filesystems.read(mount)) for name, mount in found.items()
        }

    def _reading(self) -> Reading:
        found = self._gpus.discover()
        statuses = [
            SourceStatus(
                collector=collector,
                target=target,
                state="ok",
                duration_seconds=0.001,
                last_success_at_seconds=self.now_seconds,
                interval_seconds=1.0,
            )
            for collector, target in (
                *((name, "") for name in self._host),
                *(("filesystem", name) for name in self._mounts),
                ("gpu", ""),
                *(("gpu", uuid) for uuid in found.targets),
            )
        ]
        return Reading(
            sources=tuple(statuses),
            gpu=self._sample(found.part),
            gpus={uuid: self._sample(self._gpus.read(gpu)) for uuid, gpu in found.targets.items()},
            filesystems=self._mounts,
            **self._read_host,
        )
