"""Which meter speaks for the node, and the joules, money and carbon that follow."""

from dataclasses import replace

import pytest

from esnode.fold.power import EnergyPrice, PowerFold, choose_node_power, supply_input_watts
from esnode.readings.power import (
    ChassisPowerReading,
    DcmiPowerReading,
    IpmiReading,
    PowerReading,
    PowerSensorReading,
)
from esnode.readings.sample import Reading
from esnode.snapshot import PowerState
from tests.samples import cpu_at, sample, zone, zones_at

NO_PRICE = EnergyPrice()
RANGE = 262_143_328_850


def dcmi(watts: float, *, is_active: bool = True) -> DcmiPowerReading:
    return DcmiPowerReading(
        power_watts=watts,
        minimum_watts=None,
        maximum_watts=None,
        average_watts=None,
        is_active=is_active,
    )


def sensor(name: str, watts: float, *, driver: str = "") -> PowerSensorReading:
    return PowerSensorReading(
        chip="bmc", sensor=name, label=name, power_watts=watts, chip_driver=driver
    )


SUPPLIES = (
    sensor("PS1 Input Power", 300.0),
    sensor("PS2 Input Power", 250.0),
    sensor("PS1 Output Power", 280.0),
)
METER = PowerReading(
    sensors=(sensor("power1", 90.0, driver="nvme"), sensor("power1", 520.0, driver="power_meter"))
)
CHASSIS = ChassisPowerReading(power_watts=8000.0)


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        pytest.param(
            Reading(
                ipmi=sample(IpmiReading(dcmi=dcmi(600.0), power_sensors=SUPPLIES), 90.0),
                power=sample(METER, 99.0),
                chassis=sample(CHASSIS, 99.0),
            ),
            (8000.0, "simulated", 1.0),
            id="a-simulated-machine-is-not-the-one-it-runs-on",
        ),
        pytest.param(
            Reading(
                ipmi=sample(IpmiReading(dcmi=dcmi(600.0), power_sensors=SUPPLIES), 90.0),
                power=sample(METER, 99.0),
            ),
            (600.0, "dcmi", 10.0),
            id="dcmi-before-all",
        ),
        pytest.param(
            Reading(
                ipmi=sample(
                    IpmiReading(dcmi=dcmi(600.0, is_active=False), power_sensors=SUPPLIES), 90.0
                ),
                power=sample(METER, 99.0),
            ),
            (550.0, "psu", 10.0),
            id="supplies-when-dcmi-does-not-measure",
        ),
        pytest.param(
            Reading(ipmi=sample(IpmiReading(dcmi=dcmi(0.0)), 90.0), power=sample(METER, 99.0)),
            (520.0, "hwmon", 1.0),
            id="the-acpi-meter-when-dcmi-says-nothing",
        ),
        pytest.param(
            Reading(
                ipmi=sample(IpmiReading(dcmi=dcmi(600.0)), 0.0),
                power=sample(METER, 99.0),
            ),
            (520.0, "hwmon", 1.0),
            id="a-stale-controller-does-not-speak",
        ),
        pytest.param(
            Reading(
                power=sample(PowerReading(sensors=(sensor("power1", 90.0, driver="nvme"),)), 99.0),
                chassis=sample(CHASSIS, 98.0),
            ),
            (8000.0, "simulated", 2.0),
            id="a-drives-meter-is-not-the-machines",
        ),
        pytest.param(Reading(power=sample(METER, 50.0)), None, id="stale-meter"),
        pytest.param(Reading(), None, id="no-meter"),
    ],
)
def test_the_best_meter_that_answered_lately_speaks_for_the_node(
    reading: Reading, expected: tuple[float, str, float] | None
) -> None:
    node = choose_node_power(reading, now=100.0)

    assert expected == (node and (node.power_watts, node.source, node.age_seconds))
    assert node is None or not node.is_estimated


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["PS1 Input Power", "PS2 Input Power"], 30.0, id="spelled-out"),
        pytest.param(["PSU1_PIN", "PSU1_POUT"], 10.0, id="pmbus-names"),
        pytest.param(["PSU1_PIN", "GPU0_PIN", "HSC_PIN"], 10.0, id="inputs-of-other-parts"),
        pytest.param(["PSU1 Power In", "PSU2 Power In"], 30.0, id="power-in"),
        pytest.param(["Power Supply 1 Input"], 10.0, id="in-words"),
        pytest.param(["PSU 1 AC-In Pwr", "PSU 1 DC-Out Pwr"], 10.0, id="ac-in"),
        pytest.param(["Total PSU Input", "PSU1 Input"], 20.0, id="a-total-holds-the-others"),
        pytest.param(["PS1 Output Power", "CPU Power", "Inlet"], None, id="no-input-at-all"),
    ],
)
def test_the_inputs_of_supplies_are_summed_and_nothing_else(
    names: list[str], expected: float | None
) -> None:
    sensors = tuple(sensor(name, 10.0 * (i + 1)) for i, name in enumerate(names))

    assert supply_input_watts(sensors) == expected


def fold_once(
    fold: PowerFold,
    reading: Reading,
    now: float,
    *,
    cpu_ratio: float | None = None,
    gpu_watts: float | None = 0.0,
    price: EnergyPrice = NO_PRICE,
    envelope: float | None = None,
) -> PowerState:
    return fold.fold(
        reading,
        cpu_utilization_ratio=cpu_ratio,
        gpu_watts=gpu_watts,
        price=price,
        envelope_watts=envelope,
        now=now,
    )


def test_without_a_meter_a_model_estimates_and_says_so() -> None:
    reading = Reading(cpu=cpu_at(0.0, 0.0, 0.0, cpus=10))

    node = fold_once(PowerFold(), reading, 1.0, cpu_ratio=0.5, gpu_watts=500.0).node

    assert node is not None
    assert (node.source, node.is_estimated) == ("model", True)
    assert node.power_watts == pytest.approx((60.0 + 10 * 3.25 + 500.0) / 0.92)


def test_the_model_takes_measured_processors_when_there_are_any() -> None:
    fold = PowerFold()
    zones = [
        zone(0),
        zone(0, path="intel-rapl:0:0", name="core"),
        zone(0, path="intel-rapl:0:1", name="dram"),
    ]
    fold_once(fold, Reading(cpu=cpu_at(0.0, 0.0, 0.0), power=zones_at(0.0, *zones)), 0.0)
    later = [replace(one, energy_microjoules=500_000_000) for one in zones]

    node = fold_once(
        fold, Reading(cpu=cpu_at(5.0, 1.0, 4.0), power=zones_at(5.0, *later)), 5.0, cpu_ratio=0.2
    ).node

    assert node is not None
    assert node.power_watts == pytest.approx((60.0 + 200.0) / 0.92)


def test_before_the_load_is_known_the_model_says_nothing() -> None:
    state = fold_once(PowerFold(), Reading(cpu=cpu_at(0.0, 0.0, 0.0)), 0.0)

    assert state.node is None


def test_the_model_does_not_pass_the_machine_without_its_gpus_for_the_whole() -> None:
    reading = Reading(cpu=cpu_at(0.0, 0.0, 0.0))

    state = fold_once(PowerFold(), reading, 0.0, cpu_ratio=0.5, gpu_watts=None, envelope=9.0)

    assert (state.node, state.is_envelope_exceeded) == (None, None)
    assert state.node_energy_joules_total is None


def test_two_sockets_with_the_same_zone_names_are_counted_apart() -> None:
    fold = PowerFold()
    first = [zone(0), zone(0, path="intel-rapl:1", socket=1)]
    second = [zone(500_000_000), zone(1_000_000_000, path="intel-rapl:1", socket=1)]

    fold_once(fold, Reading(power=zones_at(0.0, *first)), 0.0)
    state = fold_once(fold, Reading(power=zones_at(5.0, *second)), 5.0)

    assert [(one.socket, one.zone, one.power_watts) for one in state.zones] == [
        (0, "package", 100.0),
        (1, "package", 200.0),
    ]


def test_a_zone_that_was_away_goes_on_from_its_total() -> None:
    fold = PowerFold()
    fold_once(fold, Reading(power=zones_at(0.0, zone(0))), 0.0)
    fold_once(fold, Reading(power=zones_at(5.0, zone(500_000_000))), 5.0)
    fold_once(fold, Reading(power=zones_at(10.0)), 10.0)

    state = fold_once(fold, Reading(power=zones_at(15.0, zone(700_000_000))), 15.0)

    assert [one.energy_joules_total for one in state.zones] == [700.0]


def test_stale_zones_are_not_shown() -> None:
    assert fold_once(PowerFold(), Reading(power=zones_at(0.0, zone(0))), 60.0).zones == ()


def metered(at: float, watts: float) -> Reading:
    return Reading(ipmi=sample(IpmiReading(dcmi=dcmi(watts)), at, stale=60.0))


def test_energy_is_the_area_under_the_meters_own_samples() -> None:
    fold = PowerFold()
    totals = [
        fold_once(fold, metered(taken, watts), now).node_energy_joules_total
        for now, taken, watts in [
            (0.0, 0.0, 100.0),
            (1.0, 0.0, 100.0),
            (10.0, 10.0, 300.0),
            (11.0, 10.0, 300.0),
            (200.0, 200.0, 300.0),
            (210.0, 210.0, 300.0),
        ]
    ]

    assert totals == [0.0, 0.0, 2000.0, 2000.0, 2000.0, 5000.0]


def test_each_joule_is_charged_at_the_tariff_of_its_moment() -> None:
    fold = PowerFold()
    kilowatt_hour = 3_600_000.0
    cheap = EnergyPrice(
        price_per_kilowatt_hour=0.1, currency="EUR", carbon_grams_per_kilowatt_hour=400.0
    )
    dear = replace(cheap, price_per_kilowatt_hour=0.5)

    fold_once(fold, metered(0.0, kilowatt_hour / 10), 0.0, price=cheap)
    first = fold_once(fold, metered(10.0, kilowatt_hour / 10), 10.0, price=cheap)
    second = fold_once(fold, metered(20.0, kilowatt_hour / 10), 20.0, price=dear)

    assert (first.energy_cost_total, first.energy_cost_currency) == (0.1, "EUR")
    assert second.energy_cost_total == pytest.approx(0.6)
    assert second.carbon_grams_total == pytest.approx(800.0)


def test_without_a_tariff_there_is_no_cost_and_with_one_it_starts_at_nothing() -> None:
    fold = PowerFold()
    fold_once(fold, metered(0.0, 1000.0), 0.0)
    without = fold_once(fold, metered(10.0, 1000.0), 10.0)
    priced = fold_once(
        fold, metered(10.0, 1000.0), 11.0, price=EnergyPrice(price_per_kilowatt_hour=0.2)
    )

    assert (without.energy_cost_total, without.carbon_grams_total) == (None, None)
    assert (priced.energy_cost_total, priced.carbon_grams_total) == (0.0, None)


@pytest.mark.parametrize(
    ("watts", "envelope", "exceeded"),
    [
        pytest.param(501.0, 500.0, True, id="above"),
        pytest.param(500.0, 500.0, False, id="exactly"),
        pytest.param(499.0, None, None, id="no-envelope"),
        pytest.param(None, 500.0, None, id="no-power"),
    ],
)
def test_an_envelope_is_exceeded_only_when_both_are_known(
    watts: float | None, envelope: float | None, exceeded: bool | None
) -> None:
    reading = Reading() if watts is None else metered(0.0, watts)

    state = fold_once(PowerFold(), reading, 0.0, envelope=envelope)

    assert state.is_envelope_exceeded is exceeded
