"""Which meter speaks for the node, and the joules that follow.

The order of trust: a simulated machine's own meter where there is one (the real meters measure
another machine), the baseboard controller's DCMI reading (the whole chassis, at the supply), the
sum of its power supplies' input sensors, an ACPI power meter of the whole machine under hwmon, and
last a model that is marked as an estimate. Sources are never mixed and never averaged: users found
10 W between DCMI and sensors and wanted to know which (prometheus-community/ipmi_exporter#242).
"""

import re
from dataclasses import dataclass

from esnode.fold.counters import Integral, WrappingEnergy
from esnode.readings.power import PowerReading, PowerSensorReading, RaplZoneReading
from esnode.readings.sample import Reading, Sample
from esnode.snapshot import NodePower, PowerState, RaplZoneState

ZONE_CEILING_WATTS = 5000.0
"""No processor package draws this much: a larger step is a counter that jumped (kepler#897)."""

MODEL_BASE_WATTS = 60.0
"""Model: fans, board, disks and idle memory of a plain server without its processors."""
MODEL_LOSS_RATIO = 0.08
"""Model: what power supplies lose, between 80 PLUS Gold at half load (8 %) and Titanium (4 %)."""
MODEL_IDLE_WATTS_PER_CPU = 1.5
MODEL_BUSY_WATTS_PER_CPU = 5.0
"""Model, where RAPL cannot be read: a server processor of 64 threads idles near 100 W and draws
near 320 W, so 1.5 W and 5 W a thread."""

WHOLE_MACHINE_CHIPS = frozenset({"power_meter", "acpi_power_meter"})
"""hwmon drivers whose `power1` is the machine; other chips measure a rail, a card or a drive."""

_SUPPLY_WORDS = frozenset({"ps", "psu", "pws", "supply", "powersupply"})
_INPUT_WORDS = frozenset({"in", "input", "pin"})
_TOTAL_WORDS = frozenset({"total", "sum", "all"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyPrice:
    """What a kilowatt-hour costs, in money and in carbon; ``None`` where not configured."""

    price_per_kilowatt_hour: float | None = None
    currency: str = ""
    carbon_grams_per_kilowatt_hour: float | None = None


class PowerFold:
    """The node's power and energy from successive readings."""

    def __init__(self) -> None:
        self._zones: dict[str, WrappingEnergy] = {}
        self._energy = Integral()
        self._cost: float | None = None
        self._carbon: float | None = None

    def fold(
        self,
        reading: Reading,
        *,
        cpu_utilization_ratio: float | None,
        gpu_watts: float | None,
        price: EnergyPrice,
        envelope_watts: float | None,
        now: float,
    ) -> PowerState:
        """The state at `now`. `gpu_watts` is what all GPUs draw; ``None`` when unknown."""
        zones = self._fold_zones(reading.power, now=now)
        node = choose_node_power(reading, now=now)
        if node is None:
            node = model_node_power(
                reading,
                zones,
                cpu_utilization_ratio=cpu_utilization_ratio,
                gpu_watts=gpu_watts,
                now=now,
            )
        if node is not None:
            joules = self._energy.fold(
                node.power_watts, now - node.age_seconds, gap_seconds=max(10.0, _gap(reading))
            )
            self._charge(joules, price)
        exceeded = None
        if node is not None and envelope_watts is not None:
            exceeded = node.power_watts > envelope_watts
        return PowerState(
            node=node,
            node_energy_joules_total=self._energy.total,
            zones=zones,
            energy_cost_total=self._cost if price.price_per_kilowatt_hour is not None else None,
            energy_cost_currency=price.currency,
            carbon_grams_total=(
                self._carbon if price.carbon_grams_per_kilowatt_hour is not None else None
            ),
            envelope_watts=envelope_watts,
            is_envelope_exceeded=exceeded,
        )

    def _charge(self, joules: float, price: EnergyPrice) -> None:
        # Each joule is charged at the tariff of its moment, so a reload never rewrites the past.
        kilowatt_hours = joules / 3.6e6
        if price.price_per_kilowatt_hour is not None:
            self._cost = (self._cost or 0.0) + kilowatt_hours * price.price_per_kilowatt_hour
        if price.carbon_grams_per_kilowatt_hour is not None:
            grams = kilowatt_hours * price.carbon_grams_per_kilowatt_hour
            self._carbon = (self._carbon or 0.0) + grams

    def _fold_zones(
        self, sample: Sample[PowerReading] | None, *, now: float
    ) -> tuple[RaplZoneState, ...]:
        power = sample.fresh(now) if sample else None
        if sample is None or power is None:
            return ()
        return tuple(self._fold_zone(zone, sample.taken_at_seconds) for zone in power.zones)

    def _fold_zone(self, zone: RaplZoneReading, taken_at: float) -> RaplZoneState:
        energy = self._zones.setdefault(zone.path, WrappingEnergy(ceiling_watts=ZONE_CEILING_WATTS))
        energy.fold(zone.energy_microjoules, zone.energy_range_microjoules, taken_at)
        return RaplZoneState(
            path=zone.path,
            zone=zone.zone,
            socket=zone.socket,
            power_watts=energy.power_watts,
            energy_joules_total=energy.total_joules,
        )


def _gap(reading: Reading) -> float:
    samples = (reading.ipmi, reading.power, reading.chassis, reading.cpu)
    return max((sample.stale_after_seconds for sample in samples if sample), default=10.0)


def choose_node_power(reading: Reading, *, now: float) -> NodePower | None:
    """The best meter that answered recently; ``None`` when the machine has none."""
    chassis = reading.chassis.fresh(now) if reading.chassis else None
    if chassis is not None and reading.chassis is not None:
        return NodePower(
            power_watts=chassis.power_watts,
            source="simulated",
            is_estimated=False,
            age_seconds=now - reading.chassis.taken_at_seconds,
        )
    ipmi = reading.ipmi.fresh(now) if reading.ipmi else None
    if ipmi is not None and reading.ipmi is not None:
        age = now - reading.ipmi.taken_at_seconds
        if ipmi.dcmi is not None and ipmi.dcmi.is_active and ipmi.dcmi.power_watts > 0:
            return NodePower(
                power_watts=ipmi.dcmi.power_watts,
                source="dcmi",
                is_estimated=False,
                age_seconds=age,
            )
        supplies = supply_input_watts(ipmi.power_sensors)
        if supplies is not None:
            return NodePower(
                power_watts=supplies, source="psu", is_estimated=False, age_seconds=age
            )
    power = reading.power.fresh(now) if reading.power else None
    if power is not None and reading.power is not None:
        meters = [s for s in power.sensors if s.chip_driver in WHOLE_MACHINE_CHIPS]
        if meters:
            return NodePower(
                power_watts=meters[0].power_watts,
                source="hwmon",
                is_estimated=False,
                age_seconds=now - reading.power.taken_at_seconds,
            )
    return None


def supply_input_watts(sensors: tuple[PowerSensorReading, ...]) -> float | None:
    """The sum over power supplies of what each takes from the wall; outputs are not counted."""
    inputs = [s.power_watts for s in sensors if _is_supply_input(f"{s.sensor} {s.label}")]
    return sum(inputs) if inputs else None


def _is_supply_input(name: str) -> bool:
    """Whether a sensor is the input of one supply: ``PS1 Input Power``, ``PSU2_PIN``."""
    words = set(re.findall(r"[a-z]+", name.lower()))
    if words & _TOTAL_WORDS:  # the others are in it already
        return False
    return bool(words & _SUPPLY_WORDS) and bool(words & _INPUT_WORDS)


def model_node_power(
    reading: Reading,
    zones: tuple[RaplZoneState, ...],
    *,
    cpu_utilization_ratio: float | None,
    gpu_watts: float | None,
    now: float,
) -> NodePower | None:
    """An estimate: board, processors (RAPL, else by their load) and GPUs, plus supply losses.

    ``None`` before the processors' load is known, and while the draw of a GPU is not: the rest
    would pass for the whole machine. The constants are at the top of this file.
    """
    cpu = reading.cpu.fresh(now) if reading.cpu else None
    if cpu is None or reading.cpu is None or gpu_watts is None:
        return None
    measured = [
        zone.power_watts
        for zone in zones
        if zone.power_watts is not None and (zone.zone in ("package", "dram"))
    ]
    if measured:
        processors = sum(measured)
    elif cpu_utilization_ratio is not None and cpu.cpu_mode_seconds:
        count = len(cpu.cpu_mode_seconds)
        span = MODEL_BUSY_WATTS_PER_CPU - MODEL_IDLE_WATTS_PER_CPU
        processors = count * (MODEL_IDLE_WATTS_PER_CPU + span * cpu_utilization_ratio)
    else:
        return None
    inside = MODEL_BASE_WATTS + processors + gpu_watts
    return NodePower(
        power_watts=inside / (1 - MODEL_LOSS_RATIO),
        source="model",
        is_estimated=True,
        age_seconds=now - reading.cpu.taken_at_seconds,
    )
