"""From a configuration to the collectors that it wants, and the hardware behind them.

Imports of drivers are made where they are wanted, so that a subject that is off costs no memory and
opens no device file.
"""

from collections.abc import Callable, Mapping
from functools import partial

from esnode.agent import AgentSettings
from esnode.clock import monotonic_seconds
from esnode.collect import Plan, Planned
from esnode.collectors.cpu import CpuCollector
from esnode.collectors.disk import DiskCollector
from esnode.collectors.filesystem import FilesystemCollector
from esnode.collectors.ipmi import IpmiCollector
from esnode.collectors.memory import MemoryCollector
from esnode.collectors.network import NetworkCollector
from esnode.collectors.numa import NumaCollector
from esnode.collectors.power import PowerCollector
from esnode.collectors.root import HostRoot
from esnode.config import Config, simulated_hardware_file
from esnode.diagnose import Thresholds
from esnode.drivers.base import GpuDriver
from esnode.drivers.ipmi import ProcessRunner
from esnode.fold.power import EnergyPrice

APP_DEADLINE_SECONDS = 2.0
POWER_INTERVAL_SECONDS_MAX = 60.0
"""However seldom the rest is collected: RAPL's counters go round, those of 65 kJ in 65 s at the
highest draw, and an interval with an unknown number of rounds counts for nothing."""
QUICK_INTERVAL_SECONDS = 1.0
"""Demand that is heard of late is served late, and so is a GPU that is free again."""
KILL_GRACE_SECONDS = 1.0
"""ipmitool is run twice, and killed at its own deadline each time; the worker waits this much
longer for its thread."""


class Hardware:
    """What outlives a plan: the GPU back end that the configuration names, opened when first
    asked, and the one runner of outside programs, so that a reload starts no second beside one.
    """

    def __init__(self, config: Config, environment: Mapping[str, str]) -> None:
        self._config = config
        self._environment = environment
        self._driver: GpuDriver | None = None
        self.programs = ProcessRunner()

    @property
    def is_simulated(self) -> bool:
        """Whether the GPUs are a file."""
        return self._config.hardware.startswith("simulated:")

    def driver(self) -> GpuDriver:
        """The driver, made once; nothing is opened before its first discovery."""
        if self._driver is None:
            self._driver = self._make()
        return self._driver

    def another_driver(self) -> GpuDriver:
        """One more session of the same back end: a driver takes one call per device at a time."""
        return self._make()

    def _make(self) -> GpuDriver:
        from pathlib import Path

        if self.is_simulated:
            from esnode.drivers.simulated.driver import SimulatedGpus

            path = simulated_hardware_file(self._config, self._environment)
            return SimulatedGpus(path, self._config.hardware.removeprefix("simulated:"))
        from esnode.drivers.nvml import NvmlDriver

        return NvmlDriver(procfs_path=Path(self._config.procfs_path))

    def release(self) -> None:
        """Close the session, if one was opened."""
        if self._driver is not None:
            self._driver.release()


def make_plan(config: Config, hardware: Hardware, *, is_quick: bool = False) -> Plan:
    """The collectors that are on; draws are read each second while `is_quick`."""
    every = min(config.scrape_interval, QUICK_INTERVAL_SECONDS if is_quick else 3600)
    root = HostRoot(procfs=config.procfs_path, sysfs=config.sysfs_path, rootfs=config.rootfs_path)
    planned: list[Planned] = []
    disabled: list[str] = []

    def plan(
        name: str,
        is_on: bool,
        make: Callable[[], object],
        *,
        interval_seconds: float = config.scrape_interval,
        deadline_seconds: float = config.collect_deadline,
        is_slow: bool = False,
    ) -> None:
        if not is_on:
            disabled.append(name)
            return
        planned.append(
            Planned(
                collector=make(),  # type: ignore[arg-type]  # a collector of either shape
                interval_seconds=interval_seconds,
                deadline_seconds=deadline_seconds,
                is_slow=is_slow,
            )
        )

    plan("cpu", config.enable_cpu, lambda: CpuCollector(root))
    plan("memory", config.enable_memory, lambda: MemoryCollector(root))
    plan("disk", config.enable_disk, lambda: DiskCollector(root))
    plan("filesystem", config.enable_disk, lambda: FilesystemCollector(root))
    plan("network", config.enable_network, lambda: NetworkCollector(root))
    plan("numa", config.enable_numa, lambda: NumaCollector(root))
    plan(
        "power",
        config.enable_power,
        lambda: PowerCollector(root),
        interval_seconds=min(every, POWER_INTERVAL_SECONDS_MAX),
    )
    plan(
        "ipmi",
        config.enable_power and config.enable_ipmi,
        lambda: IpmiCollector(deadline_seconds=config.ipmi_deadline, run=hardware.programs),
        interval_seconds=config.ipmi_interval,
        deadline_seconds=2 * config.ipmi_deadline + KILL_GRACE_SECONDS,
        is_slow=True,
    )
    gpu = partial(plan, interval_seconds=every)
    gpu("gpu", config.enable_gpu, lambda: _gpu_collector(config, hardware))
    if hardware.is_simulated:
        gpu("chassis", config.enable_gpu and config.enable_power, lambda: _chassis(hardware))
    plan(
        "app",
        config.enable_app,
        lambda: _app_collector(config),
        deadline_seconds=APP_DEADLINE_SECONDS,
        is_slow=True,
    )
    return Plan(collectors=tuple(planned), disabled=tuple(disabled))


def _gpu_collector(config: Config, hardware: Hardware) -> object:
    from esnode.collectors.gpu import GpuCollector

    return GpuCollector(
        hardware.driver(),
        visible_devices=config.gpu_visible_devices,
        process_count_max=config.gpu_process_count,
    )


def _chassis(hardware: Hardware) -> object:
    from esnode.collectors.chassis import ChassisCollector

    return ChassisCollector(hardware.driver())  # type: ignore[arg-type]  # the simulated one


def _app_collector(config: Config) -> object:
    from esnode.collectors.app import AppCollector

    return AppCollector(config.app_metrics_url, clock=monotonic_seconds)


def settings_of(config: Config) -> AgentSettings:
    """The part of the configuration that the agent's judgement depends on."""
    return AgentSettings(
        thresholds=Thresholds(
            disk_busy_ratio=config.degradation_disk_busy_ratio,
            disk_latency_seconds=config.degradation_disk_latency,
            network_drops_per_second=config.degradation_network_drops_per_second,
            tcp_retransmission_ratio=config.degradation_tcp_retransmission_ratio,
            swap_pages_per_second=config.degradation_swap_pages_per_second,
        ),
        price=EnergyPrice(
            price_per_kilowatt_hour=config.energy_price_per_kilowatt_hour,
            currency=config.energy_price_currency,
            carbon_grams_per_kilowatt_hour=config.carbon_intensity_grams_per_kilowatt_hour,
        ),
        envelope_watts=config.node_power_envelope_watts,
        tags=config.tags,
    )
