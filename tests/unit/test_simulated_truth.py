import json
from pathlib import Path

import pytest

from esnode.drivers.simulated.machine import LimitSet, Load, LoadSet
from esnode.drivers.simulated.truth import PhysicalTruth, truth_at
from tests.simulated_world import World, happen


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "machine.json"


def test_the_history_answers_for_every_past_instant(world: World, path: Path) -> None:
    store = world.store(path, "h100x1")
    gpu = store.read().gpus[0].uuid
    for now, watts in ((110.0, 400), (120.0, 600)):
        world.now_seconds = now
        happen(store, LimitSet(gpu=gpu, watts=watts))

    truth = PhysicalTruth(store.history(), host_boot_id="boot-a")

    assert truth.begins_seconds == 100.0
    assert truth.caps_in_force_watts(99.9) is None
    caps = [truth.caps_in_force_watts(at) for at in (105.0, 111.1, 111.3, 121.1, 121.3)]
    assert [cap[gpu] for cap in caps if cap] == [700, 700, 400, 400, 600]
    assert truth.cap_instants(130.0) == pytest.approx((100.0, 110.0, 111.2, 120.0, 121.2))
    present = truth.at(150.0)
    assert present == truth_at(store.read(), 150.0)


def test_the_truth_of_a_boot_without_changes_is_the_rebooted_machine(world, path) -> None:
    store = world.store(path, "h100x1")
    gpu = store.read().gpus[0].uuid
    happen(store, LimitSet(gpu=gpu, watts=400))

    truth = PhysicalTruth(store.history(), host_boot_id="boot-b")

    assert truth.caps_in_force_watts(5.0) == {gpu: 700}


def test_the_history_is_json_lines_that_other_programs_can_read(world: World, path: Path) -> None:
    store = world.store(path)

    (line,) = [json.loads(text) for text in store.history_path.read_text().splitlines()]

    assert line["change"] == "created"
    assert line["event"]["spec"] == "h100x2"


def test_caps_between_two_cap_instants_are_constant(world: World, path: Path) -> None:
    store = world.store(path)
    one, other = (gpu.uuid for gpu in store.read().gpus)
    for step, watts in enumerate((650, 300, 550, 200, 700)):
        world.now_seconds += 0.7
        happen(store, LimitSet(gpu=(one, other)[step % 2], watts=watts))
    happen(store, LoadSet(gpu=one, load=Load(ratio=1.0)))

    truth = PhysicalTruth(store.history(), host_boot_id="boot-a")

    instants = truth.cap_instants(110.0)
    for begin, end in zip(instants, (*instants[1:], 110.0), strict=True):
        middle = truth.caps_in_force_watts((begin + end) / 2)
        assert middle == truth.caps_in_force_watts(begin)
    assert truth.caps_in_force_watts(110.0) == {one: 700, other: 200}


def test_an_empty_history_has_no_truth() -> None:
    truth = PhysicalTruth((), host_boot_id="boot-a")

    assert (truth.begins_seconds, truth.at(5.0), truth.cap_instants(5.0)) == (None, None, ())
