import math
from dataclasses import replace

import pytest

from esnode.drivers.simulated.changes import as_of, boot_id, create, follow
from esnode.drivers.simulated.machine import (
    ChangeRefused,
    CoolingSet,
    Created,
    Event,
    FaultInjected,
    InletSet,
    LimitSet,
    Load,
    LoadSet,
    Machine,
    PendingLimit,
    Rebooted,
)
from esnode.drivers.simulated.parts import individual
from esnode.drivers.simulated.physics import (
    advance,
    chassis_power_watts,
    operate,
    performance_ratio,
    throttle_reasons,
)
from esnode.drivers.simulated.truth import caps_in_force_watts, truth_at


def new_machine(spec: str = "h100x1") -> Machine:
    event = Created(spec=spec, seed="seed", host_boot_id="boot-a", inlet_celsius=30.0)
    return create(event, 0.0)


def after(machine: Machine, *steps: tuple[float, Event]) -> Machine:
    for at_seconds, event in steps:
        machine = follow(machine, event, at_seconds)
    return machine


MACHINE = new_machine()
UUID = MACHINE.gpus[0].uuid
BOARD = individual("h100", UUID)
FULL_LOAD = LoadSet(gpu=UUID, load=Load(ratio=1.0))
FULL_WATTS = 700 * BOARD.demand_ratio


def test_a_new_machine_is_idle_at_default_limits_and_stays_so() -> None:
    later = truth_at(advance(MACHINE, 3600.0), 3600.0).gpus[0]

    assert later.draw_watts == BOARD.idle_watts
    assert later.cap_in_force_watts == later.cap_requested_watts == 700
    assert later.throttle_reasons == ("gpu_idle",)
    assert later.temperature_celsius == pytest.approx(MACHINE.gpus[0].temperature_celsius)
    assert later.energy_joules == pytest.approx(3600 * BOARD.idle_watts)
    assert later.performance_ratio is None


def test_work_draws_at_once_and_heats_with_the_parts_time_constant() -> None:
    machine = after(MACHINE, (0.0, FULL_LOAD))

    start = machine.gpus[0].temperature_celsius
    settled = 30.0 + FULL_WATTS * BOARD.thermal_resistance_celsius_per_watt
    assert operate(machine.gpus[0], 30.0).draw_watts == FULL_WATTS
    assert advance(machine, 20.0).gpus[0].temperature_celsius == pytest.approx(
        settled + (start - settled) * math.exp(-1)
    )


def test_a_load_of_a_part_draws_its_part_above_idle() -> None:
    machine = after(MACHINE, (0.0, LoadSet(gpu=UUID, load=Load(ratio=0.25))))

    expected = BOARD.idle_watts + 0.25 * (FULL_WATTS - BOARD.idle_watts)
    assert operate(machine.gpus[0], 30.0).draw_watts == pytest.approx(expected)


@pytest.mark.parametrize(
    ("watts_before", "watts_after"),
    [pytest.param(700, 300, id="a lowered cap"), pytest.param(300, 700, id="a raised cap")],
)
def test_a_new_cap_is_in_force_only_after_the_settle_time(watts_before, watts_after) -> None:
    machine = after(
        MACHINE,
        (0.0, FULL_LOAD),
        (0.0, LimitSet(gpu=UUID, watts=watts_before)),
        (10.0, LimitSet(gpu=UUID, watts=watts_after)),
    )

    assert machine.gpus[0].limit_requested_watts == watts_after
    assert caps_in_force_watts(machine, 11.19) == {UUID: watts_before}
    assert caps_in_force_watts(machine, 11.2) == {UUID: watts_after}


def test_caps_that_follow_each_other_within_the_settle_time_take_effect_in_turn() -> None:
    machine = after(
        MACHINE,
        (10.0, LimitSet(gpu=UUID, watts=300)),
        (10.5, LimitSet(gpu=UUID, watts=500)),
    )

    caps = [caps_in_force_watts(machine, at)[UUID] for at in (11.1, 11.3, 11.6, 11.8)]
    assert machine.gpus[0].limits_pending == (
        PendingLimit(watts=300, takes_effect_seconds=11.2),
        PendingLimit(watts=500, takes_effect_seconds=11.7),
    )
    assert caps == [700, 300, 300, 500]


def test_work_that_wants_more_than_the_cap_says_sw_power_cap_and_slows_down() -> None:
    machine = after(MACHINE, (0.0, FULL_LOAD), (0.0, LimitSet(gpu=UUID, watts=350)))

    gpu = truth_at(machine, 11.2).gpus[0]
    assert gpu.draw_watts == 350
    assert gpu.throttle_reasons == ("sw_power_cap",)
    assert gpu.performance_ratio == pytest.approx(0.48, abs=0.03)
    assert gpu.clock_sm_hertz < 0.6 * 1980e6
    assert advance(machine, 11.2).gpus[0].power_violation_seconds == pytest.approx(10.0)


def test_decode_work_is_not_slowed_by_a_cap_above_its_knee() -> None:
    machine = after(
        MACHINE,
        (0.0, LoadSet(gpu=UUID, load=Load(ratio=1.0, kind="decode"))),
        (0.0, LimitSet(gpu=UUID, watts=300)),
    )

    gpu = truth_at(machine, 5.0).gpus[0]
    assert gpu.draw_watts < 300
    assert (gpu.performance_ratio, gpu.throttle_reasons) == (1.0, ())


def test_the_averaged_power_follows_the_draw_by_a_second() -> None:
    machine = after(MACHINE, (0.0, FULL_LOAD))

    average = advance(machine, 1.0).gpus[0].power_average_watts
    assert average == pytest.approx(FULL_WATTS + (BOARD.idle_watts - FULL_WATTS) * math.exp(-1))


def test_at_the_slowdown_temperature_power_is_held_to_what_keeps_it_there() -> None:
    machine = after(MACHINE, (0.0, FULL_LOAD), (0.0, InletSet(inlet_celsius=60.0)))

    gpu = truth_at(machine, 600.0).gpus[0]
    sustainable = (89.0 - 60.0) / BOARD.thermal_resistance_celsius_per_watt
    assert gpu.temperature_celsius == 89.0
    assert gpu.draw_watts == pytest.approx(sustainable)
    assert gpu.throttle_reasons == ("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown")
    assert 500 < advance(machine, 600.0).gpus[0].thermal_violation_seconds < 600


def test_a_held_gpu_cools_and_recovers_when_the_air_does() -> None:
    machine = after(
        MACHINE,
        (0.0, FULL_LOAD),
        (0.0, InletSet(inlet_celsius=60.0)),
        (600.0, InletSet(inlet_celsius=30.0)),
    )

    assert truth_at(machine, 600.0).gpus[0].draw_watts == FULL_WATTS
    assert truth_at(machine, 900.0).gpus[0].throttle_reasons == ()
    assert truth_at(machine, 900.0).gpus[0].temperature_celsius < 80


def test_clogged_cooling_alone_throttles_one_gpu() -> None:
    two = new_machine("h100x2")
    clogged, clean = two.gpus
    machine = after(
        two,
        (0.0, LoadSet(gpu=clogged.uuid, load=Load(ratio=1.0))),
        (0.0, LoadSet(gpu=clean.uuid, load=Load(ratio=1.0))),
        (0.0, CoolingSet(gpu=clogged.uuid, cooling_ratio=0.4)),
    )

    first, second = truth_at(machine, 300.0).gpus
    assert "hw_thermal_slowdown" in first.throttle_reasons
    assert second.throttle_reasons == ()


def test_a_gpu_that_overheats_even_when_idle_shuts_down_and_stays_off_until_a_reboot() -> None:
    hot = after(
        MACHINE,
        (0.0, CoolingSet(gpu=UUID, cooling_ratio=0.05)),
        (0.0, InletSet(inlet_celsius=40.0)),
    )

    off = advance(hot, 600.0)
    assert off.gpus[0].is_lost
    assert operate(off.gpus[0], 40.0).draw_watts == 0.0
    assert off.gpus[0].temperature_celsius < 95.0
    cured = after(hot, (600.0, CoolingSet(gpu=UUID, cooling_ratio=1.0)))
    assert advance(cured, 900.0).gpus[0].is_lost
    rebooted = follow(cured, Rebooted(host_boot_id="boot-a", is_host_reboot=False), 900.0)
    assert not rebooted.gpus[0].is_lost


def test_the_chassis_draws_its_gpus_and_the_rest_through_its_supply() -> None:
    machine = after(MACHINE, (0.0, FULL_LOAD))

    assert chassis_power_watts(machine) == pytest.approx((FULL_WATTS + 300) / 0.94)


def test_a_reboot_loses_limits_loads_and_counters_but_not_the_heat() -> None:
    machine = after(
        MACHINE,
        (0.0, FULL_LOAD),
        (0.0, LimitSet(gpu=UUID, watts=400)),
        (0.0, FaultInjected(gpu=UUID, kind="ecc-corrected", count=3)),
        (0.0, FaultInjected(gpu=UUID, kind="hang")),
    )

    rebooted = follow(machine, Rebooted(host_boot_id="boot-a", is_host_reboot=False), 60.0)
    gpu = rebooted.gpus[0]
    assert (gpu.limit_requested_watts, gpu.limit_in_force_watts, gpu.limits_pending) == (
        700,
        700,
        (),
    )
    assert (gpu.load.ratio, gpu.energy_joules, gpu.faults) == (0.0, 0.0, ())
    assert (gpu.ecc_corrected_volatile_total, gpu.ecc_corrected_aggregate_total) == (0, 3)
    assert gpu.temperature_celsius == advance(machine, 60.0).gpus[0].temperature_celsius
    assert boot_id(rebooted) != boot_id(machine)
    assert gpu.uuid == UUID


def test_a_machine_that_keeps_limits_has_them_in_force_after_a_reboot() -> None:
    machine = after(MACHINE, (0.0, LimitSet(gpu=UUID, watts=400)))

    keep = Rebooted(host_boot_id="boot-a", is_host_reboot=False, keeps_limits=True)
    again = Rebooted(host_boot_id="boot-a", is_host_reboot=False)
    assert after(machine, (1.0, keep), (2.0, again)).gpus[0].limit_in_force_watts == 400


def test_a_reboot_of_the_host_is_seen_without_anyone_writing_it_down() -> None:
    machine = after(MACHINE, (500.0, FULL_LOAD), (500.0, LimitSet(gpu=UUID, watts=400)))

    seen = as_of(machine, 30.0, "boot-b")
    assert seen.gpus[0].limit_in_force_watts == 700
    assert seen.gpus[0].energy_joules == pytest.approx(30 * BOARD.idle_watts)
    assert seen.boot_number == 2


def test_a_driver_that_forgets_the_limit_is_at_default_at_once() -> None:
    machine = after(
        MACHINE,
        (0.0, LimitSet(gpu=UUID, watts=400)),
        (10.0, LimitSet(gpu=UUID, watts=300)),
        (10.5, FaultInjected(gpu=UUID, kind="forget-limit")),
    )

    assert caps_in_force_watts(machine, 10.5) == caps_in_force_watts(machine, 20.0) == {UUID: 700}


def test_a_stuck_sensor_freezes_what_is_said_and_not_what_is() -> None:
    machine = after(MACHINE, (0.0, FaultInjected(gpu=UUID, kind="sensor-stuck")), (1.0, FULL_LOAD))

    gpu = advance(machine, 60.0).gpus[0]
    assert gpu.stuck is not None
    assert gpu.stuck.power_instant_watts == BOARD.idle_watts
    assert operate(gpu, 30.0).draw_watts == FULL_WATTS


def test_xid_79_loses_the_gpu_and_its_work() -> None:
    machine = after(MACHINE, (0.0, FULL_LOAD), (5.0, FaultInjected(gpu=UUID, kind="xid", count=79)))

    gpu = machine.gpus[0]
    assert gpu.is_lost
    assert [xid.code for xid in gpu.xids] == [79]
    assert operate(gpu, 30.0).draw_watts == BOARD.idle_watts


def test_xid_48_is_an_uncorrected_memory_error_too() -> None:
    machine = after(MACHINE, (0.0, FaultInjected(gpu=UUID, kind="xid", count=48)))

    assert machine.gpus[0].ecc_uncorrected_volatile_total == 1


def test_only_the_last_error_reports_are_kept() -> None:
    steps = [(0.0, FaultInjected(gpu=UUID, kind="xid", count=code)) for code in range(100, 130)]

    assert [xid.code for xid in after(MACHINE, *steps).gpus[0].xids] == list(range(114, 130))


def test_clear_ends_standing_faults_and_keeps_counts() -> None:
    machine = after(
        MACHINE,
        (0.0, FaultInjected(gpu=UUID, kind="lost")),
        (0.0, FaultInjected(gpu=UUID, kind="sensor-stuck")),
        (0.0, FaultInjected(gpu=UUID, kind="ecc-uncorrected", count=2)),
        (0.0, FaultInjected(gpu=UUID, kind="clear")),
    )

    gpu = machine.gpus[0]
    assert (gpu.faults, gpu.stuck, gpu.ecc_uncorrected_volatile_total) == ((), None, 2)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        pytest.param(LimitSet(gpu=UUID, watts=199), "200 to 700 W, not 199", id="limit too low"),
        pytest.param(LimitSet(gpu=UUID, watts=701), "200 to 700 W, not 701", id="limit too high"),
        pytest.param(LimitSet(gpu="GPU-x", watts=300), "no GPU GPU-x", id="unknown gpu"),
        pytest.param(LoadSet(gpu=UUID, load=Load(ratio=1.5)), "not 1.5", id="load above 1"),
        pytest.param(LoadSet(gpu=UUID, load=Load(ratio=-0.1)), "not -0.1", id="load below 0"),
        pytest.param(LoadSet(gpu=UUID, load=Load(ratio=math.nan)), "not nan", id="load nan"),
        pytest.param(LoadSet(gpu=UUID, load=Load(kind="game")), "no kind of load", id="load kind"),
        pytest.param(LoadSet(gpu=UUID, load=Load(owner_pid=0)), "process id", id="owner"),
        pytest.param(LoadSet(gpu=UUID, load=Load(memory_bytes=-1)), "negative", id="memory"),
        pytest.param(InletSet(inlet_celsius=math.nan), "outside", id="inlet nan"),
        pytest.param(InletSet(inlet_celsius=81.0), "outside", id="inlet too hot"),
        pytest.param(CoolingSet(gpu=UUID, cooling_ratio=0.0), "not 0", id="no cooling at all"),
        pytest.param(CoolingSet(gpu=UUID, cooling_ratio=1.1), "not 1.1", id="cooling above 1"),
        pytest.param(FaultInjected(gpu=UUID, kind="fire"), "no fault 'fire'", id="unknown fault"),
        pytest.param(FaultInjected(gpu=UUID, kind="xid"), "needs a number", id="xid without code"),
        pytest.param(FaultInjected(gpu=UUID, kind="xid", count=0), "needs a number", id="xid 0"),
        pytest.param(FaultInjected(gpu=UUID, kind="hang", count=1), "no number", id="hang with 1"),
    ],
)
def test_what_the_machine_cannot_do_is_refused_in_one_line(event: Event, reason: str) -> None:
    with pytest.raises(ChangeRefused, match=reason) as caught:
        follow(MACHINE, event, 1.0)

    assert "\n" not in str(caught.value)


def test_a_gpu_that_refuses_limits_keeps_its_old_one() -> None:
    machine = after(
        MACHINE,
        (0.0, LimitSet(gpu=UUID, watts=400)),
        (5.0, FaultInjected(gpu=UUID, kind="refuse-limit")),
    )

    with pytest.raises(ChangeRefused, match="refuses power limits"):
        follow(machine, LimitSet(gpu=UUID, watts=300), 6.0)
    assert caps_in_force_watts(machine, 6.0) == {UUID: 400}


def test_time_does_not_run_backwards() -> None:
    assert advance(replace(MACHINE, at_seconds=50.0), 40.0).at_seconds == 50.0


def test_a_capped_and_held_gpu_gives_both_reasons() -> None:
    machine = after(
        MACHINE,
        (0.0, FULL_LOAD),
        (0.0, LimitSet(gpu=UUID, watts=600)),
        (0.0, InletSet(inlet_celsius=70.0)),
    )
    gpu = advance(machine, 300.0).gpus[0]
    operation = operate(gpu, 70.0)

    assert throttle_reasons(gpu, operation) == (
        "sw_power_cap",
        "hw_slowdown",
        "sw_thermal_slowdown",
        "hw_thermal_slowdown",
    )
    assert performance_ratio(gpu, operation) == pytest.approx(0.4, abs=0.1)
