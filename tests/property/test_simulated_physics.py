"""What holds for every simulated GPU, whatever happens to it."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esnode.drivers.simulated.changes import create, follow
from esnode.drivers.simulated.codec import SavedState, decode_state, encode_state
from esnode.drivers.simulated.machine import (
    CoolingSet,
    Created,
    Event,
    FaultInjected,
    InletSet,
    LimitSet,
    Load,
    LoadSet,
    Machine,
    Rebooted,
)
from esnode.drivers.simulated.parts import CURVES, PARTS
from esnode.drivers.simulated.physics import advance, operate, performance_ratio

MACHINE = create(
    Created(spec="h100x1+l40sx1", seed="seed", host_boot_id="boot", inlet_celsius=30.0), 0.0
)
UUIDS = [gpu.uuid for gpu in MACHINE.gpus]

gpus = st.sampled_from(UUIDS)
loads = st.builds(Load, ratio=st.floats(0.0, 1.0), kind=st.sampled_from(sorted(CURVES)))
events = st.one_of(
    st.builds(LimitSet, gpu=gpus, watts=st.integers(200, 350)),
    st.builds(LoadSet, gpu=gpus, load=loads),
    st.builds(InletSet, inlet_celsius=st.floats(-20.0, 80.0)),
    st.builds(CoolingSet, gpu=gpus, cooling_ratio=st.floats(0.05, 1.0)),
    st.builds(
        FaultInjected,
        gpu=gpus,
        kind=st.sampled_from(["lost", "clear", "forget-limit", "sensor-stuck", "refuse-limit"]),
    ).filter(lambda event: event.kind != "refuse-limit"),
    st.just(Rebooted(host_boot_id="boot", is_host_reboot=False)),
)
stories = st.lists(st.tuples(st.floats(0.0, 120.0), events), max_size=8)


def tell(story: list[tuple[float, Event]]) -> list[Machine]:
    """The machine after each event, each some seconds after the one before it."""
    machines = [MACHINE]
    for wait_seconds, event in story:
        machines.append(follow(machines[-1], event, machines[-1].at_seconds + wait_seconds))
    return machines


def assert_same(one: Machine, other: Machine) -> None:
    for left, right in zip(one.gpus, other.gpus, strict=True):
        assert left.temperature_celsius == pytest.approx(right.temperature_celsius, abs=1e-4)
        assert left.energy_joules == pytest.approx(right.energy_joules, rel=1e-6, abs=1e-3)
        assert left.power_average_watts == pytest.approx(right.power_average_watts, abs=1e-2)
        assert left.limit_in_force_watts == right.limit_in_force_watts
        assert left.limits_pending == right.limits_pending
        assert left.is_shut_down == right.is_shut_down
        assert left.power_violation_seconds == pytest.approx(right.power_violation_seconds)


@settings(max_examples=150, deadline=None)
@given(stories, st.floats(0.0, 300.0), st.floats(0.0, 1.0))
def test_two_short_steps_make_one_long_one(story, wait_seconds, share) -> None:
    machine = tell(story)[-1]
    end = machine.at_seconds + wait_seconds

    at_once = advance(machine, end)
    in_two = advance(advance(machine, machine.at_seconds + share * wait_seconds), end)

    assert_same(at_once, in_two)


@settings(max_examples=150, deadline=None)
@given(stories, st.floats(0.0, 300.0))
def test_draw_never_exceeds_the_cap_in_force(story, wait_seconds) -> None:
    for before, machine in itertools.pairwise([*tell(story), None]):
        until = before.at_seconds + wait_seconds if machine is None else machine.at_seconds
        for place in range(4):
            instant = before.at_seconds + (until - before.at_seconds) * place / 3
            now = advance(before, instant)
            for gpu in now.gpus:
                draw = operate(gpu, now.inlet_celsius).draw_watts
                assert 0.0 <= draw <= gpu.limit_in_force_watts


@settings(max_examples=100, deadline=None)
@given(stories)
def test_a_requested_cap_is_obeyed_once_it_has_settled(story) -> None:
    machine = tell(story)[-1]
    later = advance(machine, machine.at_seconds + 1.2)

    for gpu in later.gpus:
        assert gpu.limits_pending == ()
        assert gpu.limit_in_force_watts == gpu.limit_requested_watts


@settings(max_examples=60, deadline=None)
@given(stories, st.floats(1.0, 60.0))
def test_energy_is_the_integral_of_the_draw(story, wait_seconds) -> None:
    machine = tell(story)[-1]
    steps = 400
    step = wait_seconds / steps
    sums = [0.0] * len(machine.gpus)
    peaks = [0.0] * len(machine.gpus)
    for number in range(steps):
        now = advance(machine, machine.at_seconds + (number + 0.5) * step)
        for place, gpu in enumerate(now.gpus):
            draw = operate(gpu, now.inlet_celsius).draw_watts
            sums[place] += draw * step
            peaks[place] = max(peaks[place], draw)

    end = advance(machine, machine.at_seconds + wait_seconds)
    for place, gpu in enumerate(end.gpus):
        used = gpu.energy_joules - machine.gpus[place].energy_joules
        # The draw changes at most five times (two limits, slowdown, shutdown, start).
        assert used == pytest.approx(sums[place], abs=5 * step * max(peaks[place], 1.0))


@settings(max_examples=150, deadline=None)
@given(stories, st.floats(0.0, 1000.0))
def test_temperature_stays_between_the_coldest_air_and_the_shutdown_point(story, wait) -> None:
    for machine in tell(story):
        later = advance(machine, machine.at_seconds + wait)
        for gpu in later.gpus:
            assert -20.0 <= gpu.temperature_celsius <= PARTS[gpu.part].shutdown_celsius + 1e-5


@settings(max_examples=150, deadline=None)
@given(stories, st.floats(0.0, 100.0))
def test_performance_is_a_ratio_and_whole_exactly_when_nothing_holds_the_gpu(story, wait) -> None:
    machine = tell(story)[-1]
    machine = advance(machine, machine.at_seconds + wait)

    for gpu in machine.gpus:
        operation = operate(gpu, machine.inlet_celsius)
        ratio = performance_ratio(gpu, operation)
        assert ratio is None or 0.0 <= ratio <= 1.0
        if ratio is not None and not operation.is_power_capped and not operation.is_thermally_held:
            assert ratio == 1.0


@settings(max_examples=100, deadline=None)
@given(stories)
def test_a_machine_survives_its_file(story) -> None:
    machine = tell(story)[-1]
    state = SavedState(sequence=7, history_bytes=123, machine=machine)

    assert decode_state(encode_state(state)) == state
