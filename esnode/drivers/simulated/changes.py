"""What an event does to a simulated machine, and how a machine begins.

Pure, and apart from `physics` because events are instantaneous: time has passed before they are
applied. A history is replayed through `follow`, so nothing here may depend on anything but the
state and the event.
"""

import hashlib
from dataclasses import replace

from esnode.drivers.simulated.machine import (
    CLEAR,
    COUNTED_FAULTS,
    ECC_CORRECTED,
    FAULT_KINDS,
    FORGET_LIMIT,
    LOST,
    REFUSE_LIMIT,
    SENSOR_STUCK,
    XID,
    XIDS_KEPT,
    ChangeRefused,
    CoolingSet,
    Created,
    Event,
    FaultInjected,
    Gpu,
    InletSet,
    LimitSet,
    Load,
    LoadSet,
    Machine,
    PendingLimit,
    Rebooted,
    Repaired,
    StuckSensors,
    Xid,
)
from esnode.drivers.simulated.parts import CURVES, PARTS, Part, individual, parse_spec
from esnode.drivers.simulated.physics import advance, idle_celsius, operate

INLET_DEFAULT_CELSIUS = 30.0
"""Air at the heat sinks behind the front drives and fans of a machine in a 25 C aisle."""

INLET_RANGE_CELSIUS = (-20.0, 80.0)
"""Beyond this the linear thermal model says nothing."""

COOLING_RATIO_MIN = 0.05
COUNT_MAX = 1_000_000_000

XID_FELL_OFF_BUS = 79
XID_DOUBLE_BIT_ECC = 48


def uuid_text(seed: str, what: str) -> str:
    """A stable identifier in UUID form, from the machine's seed."""
    digits = hashlib.sha256(f"{seed}/{what}".encode()).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


def boot_id(machine: Machine) -> str:
    """The simulated machine's own boot id: new after each of its reboots."""
    return uuid_text(machine.seed, f"boot/{machine.boot_number}")


def create(event: Created, now_seconds: float) -> Machine:
    """Build a machine that has been idle for long, with every limit at its default."""
    gpus = tuple(
        _new_gpu(f"GPU-{uuid_text(event.seed, f'gpu/{index}')}", index, part, event.inlet_celsius)
        for index, part in enumerate(parse_spec(event.spec))
    )
    return Machine(
        spec=event.spec,
        seed=event.seed,
        boot_number=1,
        boot_seconds=now_seconds,
        host_boot_id=event.host_boot_id,
        at_seconds=now_seconds,
        inlet_celsius=event.inlet_celsius,
        keeps_limits=False,
        gpus=gpus,
    )


def _new_gpu(uuid: str, index: int, part: Part, inlet_celsius: float) -> Gpu:
    return Gpu(
        uuid=uuid,
        index=index,
        part=part.key,
        limit_requested_watts=part.limit_default_watts,
        limit_in_force_watts=part.limit_default_watts,
        temperature_celsius=idle_celsius(part, uuid, inlet_celsius),
        power_average_watts=individual(part.key, uuid).idle_watts,
    )


def follow(machine: Machine | None, event: Event, now_seconds: float) -> Machine:
    """The machine after an event: time passes up to it, then it happens.

    Raises:
        ChangeRefused: the event cannot happen to this machine.
    """
    if isinstance(event, Created):
        if machine is not None:
            raise ChangeRefused("the machine exists already")
        return create(event, now_seconds)
    if machine is None:
        raise ChangeRefused("the machine was never created")
    if isinstance(event, Rebooted) and event.is_host_reboot:
        return _reboot(machine, event, now_seconds)
    return _apply(advance(machine, now_seconds), event)


def as_of(machine: Machine, now_seconds: float, host_boot_id: str) -> Machine:
    """The machine at an instant of the given boot of the host, without anything being written.

    When the host has rebooted since, the simulated machine has too: with its loads gone and its
    limits at their defaults since second 0 of the host's new clock.
    """
    if machine.host_boot_id != host_boot_id:
        event = Rebooted(host_boot_id=host_boot_id, is_host_reboot=True)
        machine = follow(machine, event, 0.0)
    return advance(machine, now_seconds)


def find_gpu(machine: Machine, uuid: str) -> Gpu:
    """The GPU with exactly this UUID.

    Raises:
        ChangeRefused: there is none.
    """
    for gpu in machine.gpus:
        if gpu.uuid == uuid:
            return gpu
    raise ChangeRefused(f"no GPU {uuid} in this machine")


def _apply(machine: Machine, event: Event) -> Machine:
    match event:
        case LimitSet():
            gpu = find_gpu(machine, event.gpu)
            return _with_gpu(machine, _set_limit(gpu, event.watts, machine.at_seconds))
        case LoadSet():
            check_load(event.load)
            return _with_gpu(machine, replace(find_gpu(machine, event.gpu), load=event.load))
        case InletSet():
            low, high = INLET_RANGE_CELSIUS
            if not low <= event.inlet_celsius <= high:
                raise ChangeRefused(
                    f"inlet of {event.inlet_celsius:g} C is outside {low:g} to {high:g} C"
                )
            return replace(machine, inlet_celsius=event.inlet_celsius)
        case CoolingSet():
            if not COOLING_RATIO_MIN <= event.cooling_ratio <= 1.0:
                raise ChangeRefused(
                    f"a cooling ratio is {COOLING_RATIO_MIN:g} to 1, not {event.cooling_ratio:g}"
                )
            gpu = find_gpu(machine, event.gpu)
            return _with_gpu(machine, replace(gpu, cooling_ratio=event.cooling_ratio))
        case FaultInjected():
            return _with_gpu(machine, _break(machine, find_gpu(machine, event.gpu), event))
        case Rebooted():
            return _reboot(machine, event, machine.at_seconds)
        case Repaired():
            return machine
        case Created():
            raise ChangeRefused("the machine exists already")


def _with_gpu(machine: Machine, changed: Gpu) -> Machine:
    gpus = tuple(changed if gpu.uuid == changed.uuid else gpu for gpu in machine.gpus)
    return replace(machine, gpus=gpus)


def check_load(load: Load) -> None:
    """Refuse a load that no GPU could carry.

    Raises:
        ChangeRefused: one line that says which value and why.
    """
    if not 0.0 <= load.ratio <= 1.0:
        raise ChangeRefused(f"a load is a share from 0 to 1, not {load.ratio:g}")
    if load.kind not in CURVES:
        raise ChangeRefused(f"no kind of load {load.kind!r} (kinds: {', '.join(CURVES)})")
    if load.memory_bytes is not None and load.memory_bytes < 0:
        raise ChangeRefused(f"memory of {load.memory_bytes} bytes is negative")
    if load.owner_pid is not None and load.owner_pid < 1:
        raise ChangeRefused(f"{load.owner_pid} is not a process id")


def check_limit(gpu: Gpu, watts: int) -> None:
    """Refuse a power limit that this GPU would refuse.

    Raises:
        ChangeRefused: one line with the reason, as a driver would give it.
    """
    part = PARTS[gpu.part]
    if REFUSE_LIMIT in gpu.faults:
        raise ChangeRefused(f"GPU {gpu.index} refuses power limits (simulated fault)")
    if not part.limit_min_watts <= watts <= part.limit_max_watts:
        raise ChangeRefused(
            f"GPU {gpu.index} ({part.name}) takes {part.limit_min_watts} to"
            f" {part.limit_max_watts} W, not {watts} W"
        )


def _set_limit(gpu: Gpu, watts: int, now_seconds: float) -> Gpu:
    check_limit(gpu, watts)
    effect = now_seconds + PARTS[gpu.part].settle_seconds
    pending = PendingLimit(watts=watts, takes_effect_seconds=effect)
    return replace(gpu, limit_requested_watts=watts, limits_pending=(*gpu.limits_pending, pending))


def _limit_at_once(gpu: Gpu, watts: int) -> Gpu:
    return replace(gpu, limit_requested_watts=watts, limit_in_force_watts=watts, limits_pending=())


def _break(machine: Machine, gpu: Gpu, event: FaultInjected) -> Gpu:
    if event.kind not in FAULT_KINDS:
        raise ChangeRefused(f"no fault {event.kind!r} (faults: {', '.join(FAULT_KINDS)})")
    if event.kind in COUNTED_FAULTS:
        if event.count is None or not 0 < event.count <= COUNT_MAX:
            raise ChangeRefused(f"{event.kind} needs a number from 1 to {COUNT_MAX}")
        return _count_errors(machine, gpu, event.kind, event.count)
    if event.count is not None:
        raise ChangeRefused(f"{event.kind} takes no number")
    if event.kind == CLEAR:
        return replace(gpu, faults=(), stuck=None)
    if event.kind == FORGET_LIMIT:
        return _limit_at_once(gpu, PARTS[gpu.part].limit_default_watts)
    if event.kind in gpu.faults:
        return gpu
    if event.kind == SENSOR_STUCK:
        stuck = StuckSensors(
            temperature_celsius=gpu.temperature_celsius,
            power_instant_watts=operate(gpu, machine.inlet_celsius).draw_watts,
            power_average_watts=gpu.power_average_watts,
        )
        gpu = replace(gpu, stuck=stuck)
    return replace(gpu, faults=(*gpu.faults, event.kind))


def _count_errors(machine: Machine, gpu: Gpu, kind: str, count: int) -> Gpu:
    if kind == ECC_CORRECTED:
        return replace(
            gpu,
            ecc_corrected_volatile_total=gpu.ecc_corrected_volatile_total + count,
            ecc_corrected_aggregate_total=gpu.ecc_corrected_aggregate_total + count,
        )
    uncorrected = count
    if kind == XID:
        uncorrected = 1 if count == XID_DOUBLE_BIT_ECC else 0
        xid = Xid(code=count, at_seconds=machine.at_seconds)
        gpu = replace(gpu, xids=(*gpu.xids, xid)[-XIDS_KEPT:])
        if count == XID_FELL_OFF_BUS and LOST not in gpu.faults:
            gpu = replace(gpu, faults=(*gpu.faults, LOST))
    return replace(
        gpu,
        ecc_uncorrected_volatile_total=gpu.ecc_uncorrected_volatile_total + uncorrected,
        ecc_uncorrected_aggregate_total=gpu.ecc_uncorrected_aggregate_total + uncorrected,
    )


def _reboot(machine: Machine, event: Rebooted, now_seconds: float) -> Machine:
    keeps = machine.keeps_limits if event.keeps_limits is None else event.keeps_limits
    gpus = tuple(_restart(gpu, machine, event, keeps_limit=keeps) for gpu in machine.gpus)
    return replace(
        machine,
        boot_number=machine.boot_number + 1,
        boot_seconds=now_seconds,
        host_boot_id=event.host_boot_id,
        at_seconds=now_seconds,
        keeps_limits=keeps,
        gpus=gpus,
    )


def _restart(gpu: Gpu, machine: Machine, event: Rebooted, *, keeps_limit: bool) -> Gpu:
    """A GPU after power-up: what lived in the driver is gone, what lives in the board is not.

    A host's own reboot gives no idea how long it was off, so it has cooled; a simulated reboot
    takes no time, so it has not.
    """
    part = PARTS[gpu.part]
    fresh = _new_gpu(gpu.uuid, gpu.index, part, machine.inlet_celsius)
    is_cold = event.is_host_reboot or gpu.is_shut_down
    fresh = replace(
        fresh,
        temperature_celsius=fresh.temperature_celsius if is_cold else gpu.temperature_celsius,
        cooling_ratio=gpu.cooling_ratio,
        faults=tuple(fault for fault in gpu.faults if fault == REFUSE_LIMIT),
        ecc_corrected_aggregate_total=gpu.ecc_corrected_aggregate_total,
        ecc_uncorrected_aggregate_total=gpu.ecc_uncorrected_aggregate_total,
    )
    watts = gpu.limit_requested_watts if keeps_limit else part.limit_default_watts
    return _limit_at_once(fresh, watts)
