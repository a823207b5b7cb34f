"""Builds rack power for this machine from the configuration: devices, setter, terms.

Its own file because it is where it is decided that a machine never trades: no permission, no
device, an operator's wish, or a disk that forgets. It must not know the cluster.
"""

import contextlib
import os
import random
import secrets
from collections.abc import Callable
from pathlib import Path

from esnode.clock import boottime_seconds, unix_seconds
from esnode.config import Config
from esnode.drivers.base import DriverUnavailable
from esnode.gate import FOLDER, Gate
from esnode.plan import Hardware
from esnode.powering.audit import PowerAudit
from esnode.powering.devices import Devices
from esnode.powering.driver import Powering
from esnode.powering.hardware import PowerHardware, Told
from esnode.powering.logs import PowerLogs
from esnode.powering.means import Hardwareless, MachineHardware, Means, PowerTerms
from esnode.powering.mounts import fleeting_line
from esnode.powering.wishes import Wishes
from esnode.setter import Journal, PowerSetter

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def make_powering(
    config: Config, hardware: Hardware, state_folder: Path, tell: Callable[[str], None]
) -> Powering:
    """Rack power at this machine; nothing is opened or written before it runs."""
    audit = PowerAudit(state_folder / FOLDER, unix_seconds)
    means = Means(
        terms=PowerTerms(
            settle_seconds=config.power_settle,
            priority=config.power_priority,
            limit_watts=None if config.power_limit_watts is None else int(config.power_limit_watts),
            static_reason=_static_reason(config, hardware, state_folder),
            is_observing=config.power_control != "enforce",
        ),
        gate=Gate(),
        logs=PowerLogs(state_folder, lambda line: means.alarm(line)),
        audit=audit,
        clock=boottime_seconds,
        rng=random.Random(secrets.randbits(64)),
        read_boot_id=_boot_id_reader(hardware),
        tell=tell,
        wishes=Wishes(priority=config.power_priority),
    )
    return Powering(means, _make_hardware(config, hardware, state_folder, means))


def _static_reason(config: Config, hardware: Hardware, state_folder: Path) -> str:
    """Why this machine never trades; empty where it may."""
    if config.power_control != "enforce":
        return f"power_control = {config.power_control}: nothing is written to the hardware"
    if not config.enable_gpu:
        return "enable_gpu is off: no device is opened"
    if hardware.is_simulated:
        return ""  # a simulated machine is forgotten with the disk that it lies on
    if os.geteuid() != 0:
        return "this agent may not set power limits: run it as root"
    return fleeting_line(state_folder) or ""


def _make_hardware(
    config: Config, hardware: Hardware, state_folder: Path, means: Means
) -> MachineHardware:
    from esnode.drivers.limits.gpu import GpuLimits
    from esnode.drivers.limits.rapl import RaplLimits

    if not config.enable_gpu:
        return Hardwareless("enable_gpu is off: no device is opened")
    gpus = GpuLimits(hardware.another_driver())
    setter = PowerSetter(
        (gpus,) if hardware.is_simulated else (gpus, RaplLimits(config.sysfs_path)),
        Journal(state_folder / FOLDER),
    )
    rest = config.power_rest_watts
    devices = Devices(
        settle_seconds=config.power_settle, rest_watts=None if rest is None else int(rest)
    )

    def tell(told: Told) -> None:
        if told.is_alarm:
            means.alarm(told.line)
        else:
            means.audit.add("device", line=told.line)

    return PowerHardware(setter, devices, clock=boottime_seconds, tell=tell)


def _boot_id_reader(hardware: Hardware) -> Callable[[], str]:
    """The boot of the machine whose power it is; of a simulated one, its own."""
    if not hardware.is_simulated:
        return _read_boot_id
    from esnode.drivers.simulated.driver import SimulatedGpus

    driver = hardware.another_driver()
    assert isinstance(driver, SimulatedGpus)
    last = ""

    def read() -> str:
        nonlocal last
        with contextlib.suppress(DriverUnavailable):  # its limits are not known either then
            last = driver.boot_id()
        return last

    return read


def _read_boot_id() -> str:
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
