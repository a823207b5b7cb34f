"""Builds the work of this machine from the configuration: its journal, its adapter, its placer.

Its own file because it is where work meets rack power and the hardware: whose gate holds jobs back,
which watts they may count on, and who puts work on simulated GPUs. It must not know HTTP.
"""

import random
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path

from esnode.clock import unix_seconds
from esnode.config import Config
from esnode.heat_watch import HeatWatch
from esnode.plan import Hardware
from esnode.powering.driver import Powering
from esnode.powering.means import Hardwareless
from esnode.workloads.adapters import Adapter
from esnode.workloads.book import Job
from esnode.workloads.draining import drain
from esnode.workloads.driver import Workloads
from esnode.workloads.journal import JobJournal
from esnode.workloads.local import LocalProcesses
from esnode.workloads.means import WorkMeans
from esnode.workloads.metering import JobMeter
from esnode.workloads.places import LocalPlacer, NodeName, PowerRoom, extra_watts
from esnode.workloads.simulated import OnSimulatedGpus


def make_workloads(
    config: Config,
    hardware: Hardware,
    state_folder: Path,
    power: Powering,
    rules_line: Callable[[str], str],
    heat: HeatWatch,
    tell: Callable[[str, Job, str], None],
) -> Workloads:
    """The work of this machine; nothing is opened or written before it runs.

    `rules_line` says why a feature is not to act now.
    """
    journal = JobJournal(state_folder, unix_seconds)
    means = WorkMeans(
        journal=journal,
        adapter=_adapter(hardware, journal),
        placer=LocalPlacer(
            node=partial(_node_name, power),
            power=partial(_power_room, power),
            boot_id=power.means.read_boot_id,
            why_no_preemption=partial(rules_line, "preemption"),
            refusals=heat.refusals,
        ),
        gate=power.means.gate,
        meter=JobMeter(),
        drain=drain,
        unix_clock=unix_seconds,
        rng=random.Random(secrets.randbits(128)),
        read_boot_id=power.means.read_boot_id,
        tell=tell,
    )
    workloads = Workloads(means)
    power.means.wishes.promised_watts = lambda: extra_watts(workloads.book, workloads.snapshot)
    return workloads


def _node_name(power: Powering) -> NodeName:
    if power.host is None:
        return NodeName()
    identity = power.host.keys.identity
    return NodeName(id=identity.node_id.hex(), name=identity.name, rack=identity.rack)


def _power_room(power: Powering) -> PowerRoom:
    """Unbounded while no operator has put this rack under a budget; the gate says the rest."""
    if power.governed is None or isinstance(power.hardware, Hardwareless):
        return PowerRoom()
    devices = power.hardware.devices
    return PowerRoom(cap_watts=devices.cap_watts, lowest_watts=devices.lowest_watts)


def _adapter(hardware: Hardware, journal: JobJournal) -> Adapter:
    local = LocalProcesses(journal.folder)
    if not hardware.is_simulated:
        return local
    from esnode.drivers.simulated.driver import SimulatedGpus

    driver = hardware.another_driver()
    assert isinstance(driver, SimulatedGpus)
    return OnSimulatedGpus(local, driver)
