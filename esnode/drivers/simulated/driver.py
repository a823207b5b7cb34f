"""The simulated machine as a `GpuDriver`: what the agent sees of it, and all that it may do to it.

Its own file because it is the one place where the machine's own words become the driver protocol's:
its failures, its identities, its blocking. It must not decide anything physical. Besides the
protocol it has the door through which jobs put work on a GPU, since no real kernel runs here.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from esnode.drivers.base import DeviceFault, DriverUnavailable, PowerLimitRefused
from esnode.drivers.simulated.changes import as_of, boot_id, check_limit, find_gpu
from esnode.drivers.simulated.clocks import Clocks
from esnode.drivers.simulated.machine import (
    HANG,
    ChangeRefused,
    Event,
    Gpu,
    LimitSet,
    Load,
    LoadSet,
    Machine,
    Xid,
)
from esnode.drivers.simulated.parts import canonical_spec
from esnode.drivers.simulated.physics import (
    advance_gpu,
    chassis_power_watts,
    operate,
    performance_ratio,
)
from esnode.drivers.simulated.readout import identify, read_out
from esnode.drivers.simulated.store import NoMachine, Store, StoreFailed
from esnode.readings.gpu import GpuIdentity, GpuInventory, GpuReading
from esnode.readings.host import Absence
from esnode.readings.limits import EnforcedLimit, round_up

HANG_POLL_SECONDS = 0.05
"""How soon a call that hangs notices that the fault was cleared."""

DRIVER_VERSION = "590.48.01"
LIBRARY_VERSION = "12.590.48.01"
CUDA_VERSION = "13.1"
"""Those of the capture that the parts are taken from."""


def read_process_name(pid: int) -> str | None:
    """The short name of a process, or ``None`` when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


class SimulatedGpus:
    """The GPUs of one simulated machine. Safe to use from one thread per GPU.

    Raises:
        UnknownSpec: `spec` is not a machine that can be built.
    """

    name = "simulated"

    def __init__(
        self,
        path: Path,
        spec: str,
        *,
        clocks: Clocks | None = None,
        process_name: Callable[[int], str | None] = read_process_name,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._spec = canonical_spec(spec)
        self._store = Store(path, clocks=clocks)
        self._process_name = process_name
        self._sleep = sleep
        self._identities: dict[str, GpuIdentity] = {}

    @property
    def repairs(self) -> tuple[str, ...]:
        """What was found broken in the machine's files and mended, one line each."""
        return self._store.repairs

    def discover(self) -> GpuInventory:
        """List the GPUs, building the machine at the first call if its file is absent.

        Raises:
            DriverUnavailable: the file cannot be used, or holds another machine.
        """
        if not self._identities:
            self._open()
        machine = self._now()
        self._identities = {gpu.uuid: identify(machine, gpu) for gpu in machine.gpus}
        answering = tuple(gpu for gpu in machine.gpus if not gpu.is_lost)
        lost = tuple(
            Absence(what=f"gpu:{gpu.index}", reason=_why_lost(gpu))
            for gpu in machine.gpus
            if gpu.is_lost
        )
        return GpuInventory(
            driver=self.name,
            driver_version=DRIVER_VERSION,
            library_version=LIBRARY_VERSION,
            cuda_version=CUDA_VERSION,
            gpus=tuple(self._identities[gpu.uuid] for gpu in answering),
            lost=lost,
            absent=tuple(Absence(what="simulated hardware", reason=r) for r in self.repairs),
            found_count=len(machine.gpus),
        )

    def read(self, gpu: GpuIdentity) -> GpuReading:
        """Read one GPU. Blocks while the GPU has the fault ``hang``.

        Raises:
            DeviceFault: the GPU is lost, or not one of this machine.
            DriverUnavailable: the machine's file cannot be used.
        """
        state, inlet_celsius = self._answering(gpu)
        return read_out(
            state, gpu, inlet_celsius=inlet_celsius, read_process_name=self._process_name
        )

    def read_power_limit(self, gpu: GpuIdentity) -> EnforcedLimit:
        """Read the limits of one GPU, and nothing else. Blocks as `read` does.

        Raises:
            DeviceFault: the GPU is lost, or not one of this machine.
            DriverUnavailable: the machine's file cannot be used.
        """
        state, _ = self._answering(gpu)
        return EnforcedLimit(
            device=gpu.uuid,
            enforced_watts=round_up(float(state.limit_in_force_watts)),
            requested_watts=state.limit_requested_watts,
        )

    def set_power_limit(self, gpu: GpuIdentity, watts: int) -> None:
        """Ask for a limit. It is in force once the part's settle time has passed.

        Raises:
            PowerLimitRefused: the GPU, or the file it lives in, did not take it.
            DeviceFault: the GPU is lost, not one of this machine, or its file is unreadable.
        """
        try:
            self._answering(gpu)
        except DriverUnavailable as error:
            raise DeviceFault(str(error)) from None

        def plan(machine: Machine) -> Sequence[Event]:
            state = find_gpu(machine, gpu.uuid)
            check_limit(state, watts)
            if state.limit_requested_watts == watts:
                return ()
            return (LimitSet(gpu=gpu.uuid, watts=watts),)

        try:
            self._store.change(plan, cause=f"power limit {watts} W")
        except (ChangeRefused, StoreFailed) as error:
            raise PowerLimitRefused(str(error)) from None

    def release(self) -> None:
        """Nothing is held open between calls; the next `discover` opens the file anew."""
        self._identities = {}

    def set_load(
        self,
        gpu_uuid: str,
        ratio: float,
        kind: str = "compute",
        *,
        owner_pid: int | None = None,
        memory_bytes: int | None = None,
    ) -> None:
        """Put work on a GPU, in place of what it did; a ratio of 0 takes it away.

        Raises:
            ChangeRefused: no such GPU, or no such load.
            DriverUnavailable: the machine's file cannot be used.
        """
        load = Load(ratio=ratio, kind=kind, owner_pid=owner_pid, memory_bytes=memory_bytes)

        def plan(machine: Machine) -> Sequence[Event]:
            if find_gpu(machine, gpu_uuid).load == load:
                return ()
            return (LoadSet(gpu=gpu_uuid, load=load),)

        try:
            self._store.change(plan, cause=f"load {ratio:g} {kind}")
        except StoreFailed as error:
            raise DriverUnavailable(str(error)) from None

    def load(self, gpu_uuid: str) -> Load:
        """The work that is on a GPU now.

        Raises:
            ChangeRefused: no such GPU.
            DriverUnavailable: the machine's file cannot be used.
        """
        return find_gpu(self._now(), gpu_uuid).load

    def performance_ratio(self, gpu_uuid: str) -> float | None:
        """Throughput of a GPU's work relative to unhindered; ``None`` without work.

        Raises:
            ChangeRefused: no such GPU.
            DriverUnavailable: the machine's file cannot be used.
        """
        machine = self._now()
        gpu = find_gpu(machine, gpu_uuid)
        return performance_ratio(gpu, operate(gpu, machine.inlet_celsius))

    def xids(self, gpu_uuid: str) -> tuple[Xid, ...]:
        """The latest error reports of a GPU, oldest first.

        Raises:
            ChangeRefused: no such GPU.
            DriverUnavailable: the machine's file cannot be used.
        """
        return find_gpu(self._now(), gpu_uuid).xids

    def chassis_power_watts(self) -> float:
        """What the machine's own meter reads at the wall.

        Raises:
            DriverUnavailable: the machine's file cannot be used.
        """
        return chassis_power_watts(self._now())

    def boot_id(self) -> str:
        """The simulated machine's boot: another one after each of its reboots.

        Raises:
            DriverUnavailable: the machine's file cannot be used.
        """
        return boot_id(self._now())

    def _open(self) -> None:
        try:
            self._store.create(self._spec)
        except StoreFailed as error:
            raise DriverUnavailable(str(error)) from None

    def _now(self) -> Machine:
        """The machine at this instant, built if there is none: any call may be the first."""
        try:
            return self._store.read_now()
        except NoMachine:
            self._open()
            return self._now()
        except StoreFailed as error:
            raise DriverUnavailable(str(error)) from None

    def _answering(self, identity: GpuIdentity) -> tuple[Gpu, float]:
        """The GPU as it is once it answers, and the inlet air it runs in."""
        while True:
            gpu, inlet_celsius = self._look(identity.uuid)
            if gpu.is_lost:
                raise DeviceFault(_why_lost(gpu), is_lost=True)
            if HANG not in gpu.faults:
                return gpu, inlet_celsius
            self._sleep(HANG_POLL_SECONDS)

    def _look(self, uuid: str) -> tuple[Gpu, float]:
        """One GPU carried to now, without the others: reading eight costs eight, not 64."""
        clocks = self._store.clocks
        host_boot_id = clocks.host_boot_id()
        try:
            machine = self._store.read()
        except StoreFailed as error:
            raise DriverUnavailable(str(error)) from None
        if machine.host_boot_id != host_boot_id:
            machine = as_of(machine, 0.0, host_boot_id)
        try:
            gpu = find_gpu(machine, uuid)
        except ChangeRefused as error:
            raise DeviceFault(str(error), is_lost=True) from None
        inlet = machine.inlet_celsius
        return advance_gpu(gpu, inlet, machine.at_seconds, clocks.now_seconds()), inlet


def _why_lost(gpu: Gpu) -> str:
    if gpu.is_shut_down:
        return f"GPU {gpu.index} shut down by heat (simulated): reboot the simulated machine"
    return f"GPU {gpu.index} has fallen off the bus (simulated fault)"
