"""Random stories of a node: what its meters truly did, and what the agent gets to read of it.

A story is a list of steps. In each, time passes, hardware works, and some sources are read while
others stall, fail, restart or step back. `Story` keeps the truth beside the readings.
"""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from esnode.fold.power import ZONE_CEILING_WATTS
from esnode.readings.app import AppReading, TokenCount
from esnode.readings.gpu import GpuReading
from esnode.readings.host import CpuReading
from esnode.readings.power import DcmiPowerReading, IpmiReading, PowerReading
from esnode.readings.sample import Reading, Sample, SourceStatus
from tests.samples import bare_gpu, sample, source, zone
from tests.snapshots import gpu_uuid

RANGE_MICROJOULES = 65_532_610_987
"""A zone that wraps every two minutes at 500 W."""
URL = "http://127.0.0.1:8000/metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What happens, and what is read of it."""

    seconds: float
    is_cpu_read: bool
    cpu_step_back_seconds: float
    is_cpu_reset: bool
    is_zone_read: bool
    zone_watts: float
    does_zone_jump: bool
    gpu_state: str
    """``ok``, ``uncounted``, ``stalled`` or ``gone``."""
    gpu_watts: float | None
    is_driver_reloaded: bool
    is_throttled: bool
    chassis_watts: float | None
    tokens: int
    is_server_restarted: bool
    is_priced: bool
    is_plan_changed: bool
    """Every source is away for one tick."""


def rarely() -> st.SearchStrategy[bool]:
    return st.sampled_from([False] * 9 + [True])


STEPS = st.builds(
    Step,
    seconds=st.sampled_from([0.5, 1.0, 4.9, 5.0, 5.1, 12.0, 40.0, 300.0]),
    is_cpu_read=st.booleans(),
    cpu_step_back_seconds=st.sampled_from([0.0, 0.0, 0.01, 0.9]),
    is_cpu_reset=rarely(),
    is_zone_read=st.booleans(),
    zone_watts=st.floats(0.0, 500.0),
    does_zone_jump=rarely(),
    gpu_state=st.sampled_from(["ok", "ok", "ok", "uncounted", "stalled", "gone"]),
    gpu_watts=st.none() | st.floats(0.0, 700.0),
    is_driver_reloaded=rarely(),
    is_throttled=st.booleans(),
    chassis_watts=st.none() | st.floats(1.0, 8000.0),
    tokens=st.integers(0, 10_000),
    is_server_restarted=rarely(),
    is_priced=st.booleans(),
    is_plan_changed=rarely(),
)


@dataclass(slots=True)
class Story:
    """The truth so far, and the latest sample of each source."""

    now: float = 1000.0
    reset: set[str] = field(default_factory=set)
    """Sources whose new beginning was read in the last step: ``cpu``, ``gpu``, ``app``."""
    _restarted: set[str] = field(default_factory=set)
    zone_joules: float = 0.0
    _zone_raw: float = 12_345_678_901.0
    _zone_read_at: float = 0.0
    _user_seconds: float = 5e6
    _gpu_joules: float = 9e9
    _tokens: float = 1e9
    _cpu: Sample[CpuReading] | None = None
    _power: Sample[PowerReading] | None = None
    _gpu: Sample[GpuReading] | None = None
    _ipmi: Sample[IpmiReading] | None = None
    _app: Sample[AppReading] | None = None

    def live(self, step: Step) -> Reading:
        """One step further, and the reading that the agent gets at its end."""
        self.reset.clear()
        self.now += step.seconds
        self._work(step)
        self._read(step)
        if step.is_plan_changed:
            return Reading()
        return Reading(
            sources=self._sources(step),
            cpu=self._cpu,
            power=self._power,
            ipmi=self._ipmi,
            gpus={} if step.gpu_state == "gone" or not self._gpu else {gpu_uuid(0): self._gpu},
            apps={URL: self._app} if self._app else {},
        )

    def _work(self, step: Step) -> None:
        joules = step.zone_watts * step.seconds
        self.zone_joules += joules
        self._zone_raw += joules * 1e6
        if step.does_zone_jump and step.is_zone_read and not step.is_plan_changed:
            # Further than any zone can have gone since it was last read, as kepler#897 saw.
            jump = 2e6 * ZONE_CEILING_WATTS * (self.now - self._zone_read_at)
            if jump < RANGE_MICROJOULES / 2:
                self._zone_raw += jump
        self._user_seconds += step.seconds
        if step.is_cpu_reset:
            self._user_seconds = 0.0
            self._restarted.add("cpu")
        self._gpu_joules += (step.gpu_watts or 0.0) * step.seconds
        if step.is_driver_reloaded:
            self._gpu_joules = 0.0
            self._restarted.add("gpu")
        self._tokens += step.tokens
        if step.is_server_restarted:
            self._tokens = 0.0
            self._restarted.add("app")

    def _read(self, step: Step) -> None:
        if step.is_cpu_read:
            times = (self._user_seconds - step.cpu_step_back_seconds, *[0.0] * 9)
            self._cpu = sample(CpuReading(mode_seconds=times), self.now)
            self._was_read("cpu")
        if step.is_zone_read:
            raw = int(self._zone_raw % RANGE_MICROJOULES)
            zones = (zone(raw, span=RANGE_MICROJOULES),)
            self._power = sample(PowerReading(zones=zones), self.now)
            if not step.is_plan_changed:
                self._zone_read_at = self.now
        if step.chassis_watts is not None:
            dcmi = DcmiPowerReading(
                power_watts=step.chassis_watts,
                minimum_watts=None,
                maximum_watts=None,
                average_watts=None,
                is_active=True,
            )
            self._ipmi = sample(IpmiReading(dcmi=dcmi), self.now)
        if step.gpu_state in ("ok", "uncounted"):
            counted = self._gpu_joules if step.gpu_state == "ok" else None
            reading = bare_gpu(
                0,
                power_average_watts=step.gpu_watts,
                energy_joules_total=counted,
                throttle_reasons=("sw_power_cap",) if step.is_throttled else (),
            )
            self._gpu = sample(reading, self.now)
            if counted is not None:
                self._was_read("gpu")
        tokens = TokenCount(model="m", kind="generation", tokens_total=self._tokens)
        self._app = sample(AppReading(endpoint=URL, engine="vllm", tokens=(tokens,)), self.now)
        self._was_read("app")

    def _was_read(self, name: str) -> None:
        if name in self._restarted:
            self._restarted.remove(name)
            self.reset.add(name)

    def _sources(self, step: Step) -> tuple[SourceStatus, ...]:
        names = [source("cpu"), source("power"), source("gpu")]
        if step.gpu_state == "stalled":
            names.append(source(f"gpu:{gpu_uuid(0)}", "stalled"))
        elif step.gpu_state != "gone":
            names.append(source(f"gpu:{gpu_uuid(0)}"))
        return tuple(names)
