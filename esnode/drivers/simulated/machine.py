"""The state of a simulated machine, and the things that can happen to it.

These are the nouns alone: what time does to a state is in `physics`, what an event does is in
`changes`. Seconds are the host's clock since boot (CLOCK_BOOTTIME), the one clock that an agent,
a command line and a checker on the same host share and that no operator can turn back.
"""

from dataclasses import dataclass

LOST = "lost"
HANG = "hang"
REFUSE_LIMIT = "refuse-limit"
FORGET_LIMIT = "forget-limit"
SENSOR_STUCK = "sensor-stuck"
XID = "xid"
ECC_CORRECTED = "ecc-corrected"
ECC_UNCORRECTED = "ecc-uncorrected"
CLEAR = "clear"

STANDING_FAULTS = (LOST, HANG, REFUSE_LIMIT, SENSOR_STUCK)
"""Faults that last until they are cleared."""

COUNTED_FAULTS = (XID, ECC_CORRECTED, ECC_UNCORRECTED)
"""Faults that happen once and carry a number."""

FAULT_KINDS = (*STANDING_FAULTS, *COUNTED_FAULTS, FORGET_LIMIT, CLEAR)

XIDS_KEPT = 16


class ChangeRefused(ValueError):
    """The machine cannot do that. The text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The work that is asked of one GPU."""

    ratio: float = 0.0
    """Share of the GPU's full throughput that the work would take if nothing held it."""
    kind: str = "compute"
    """Which curve: ``compute``, ``mixed`` or ``decode``."""
    owner_pid: int | None = None
    memory_bytes: int | None = None
    """``None`` lets memory follow the ratio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingLimit:
    """A limit that was accepted and is not yet obeyed."""

    watts: int
    takes_effect_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """One error report of the driver."""

    code: int
    at_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckSensors:
    """What a GPU goes on saying after its sensors stopped following it."""

    temperature_celsius: float
    power_instant_watts: float
    power_average_watts: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One simulated GPU at the machine's `at_seconds`."""

    uuid: str
    index: int
    part: str
    limit_requested_watts: int
    limit_in_force_watts: int
    limits_pending: tuple[PendingLimit, ...] = ()
    """In the order of their instants; the last one is what was requested."""
    load: Load = Load()
    cooling_ratio: float = 1.0
    """1 is clean; 0.5 lets half as much heat out at the same temperature."""
    temperature_celsius: float
    power_average_watts: float
    energy_joules: float = 0.0
    power_violation_seconds: float = 0.0
    thermal_violation_seconds: float = 0.0
    faults: tuple[str, ...] = ()
    is_shut_down: bool = False
    """It reached its shutdown temperature and stays off until a reboot."""
    stuck: StuckSensors | None = None
    ecc_corrected_volatile_total: int = 0
    ecc_uncorrected_volatile_total: int = 0
    ecc_corrected_aggregate_total: int = 0
    ecc_uncorrected_aggregate_total: int = 0
    xids: tuple[Xid, ...] = ()
    """The last `XIDS_KEPT`, oldest first."""

    @property
    def is_lost(self) -> bool:
        """Whether the device has left the bus, by a fault or by its own thermal shutdown."""
        return self.is_shut_down or LOST in self.faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The whole machine at one instant; everything later follows from it by `physics`."""

    spec: str
    seed: str
    """Makes the UUIDs, serial numbers and boot ids."""
    boot_number: int
    boot_seconds: float
    """When the simulated machine came up, on the host's clock."""
    host_boot_id: str
    """The boot of the real host that `at_seconds` belongs to."""
    at_seconds: float
    inlet_celsius: float
    keeps_limits: bool
    """Whether power limits outlive a reboot, as where a baseboard controller holds them."""
    gpus: tuple[Gpu, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """The machine was built: the first event of every history."""

    spec: str
    seed: str
    host_boot_id: str
    inlet_celsius: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSet:
    """Someone asked for a power limit, and the GPU took it."""

    gpu: str
    watts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSet:
    """Work came or went."""

    gpu: str
    load: Load


@dataclass(frozen=True, slots=True, kw_only=True)
class InletSet:
    """The air that reaches the machine changed."""

    inlet_celsius: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CoolingSet:
    """One GPU's cooling got worse or better."""

    gpu: str
    cooling_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultInjected:
    """Something broke, or was mended (`CLEAR`)."""

    gpu: str
    kind: str
    count: int | None = None
    """The Xid code, or how many ECC errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebooted:
    """The machine came up again."""

    host_boot_id: str
    is_host_reboot: bool
    """The real host rebooted, so its clock started again from zero."""
    keeps_limits: bool | None = None
    """Changes `Machine.keeps_limits`, for this reboot and those after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """The store mended its files; the machine itself did not change."""

    what: str


Event = Created | LimitSet | LoadSet | InletSet | CoolingSet | FaultInjected | Rebooted | Repaired

EVENT_NAMES: dict[str, type[Event]] = {
    "created": Created,
    "limit": LimitSet,
    "load": LoadSet,
    "inlet": InletSet,
    "cooling": CoolingSet,
    "fault": FaultInjected,
    "reboot": Rebooted,
    "repair": Repaired,
}
"""How each event is called in the file: never renamed, only added to."""
