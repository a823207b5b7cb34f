"""Which GPUs of a machine go together."""

from collections.abc import Sequence

import pytest

from esnode.placing.machine import GpuPlace
from esnode.placing.packing import packings, stranded_count
from tests.placing_places import gpu, gpus

PLAIN = {"island": None, "switch": None, "numa_node": None}


def chosen(
    count: int, free: Sequence[GpuPlace], every: Sequence[GpuPlace]
) -> tuple[str, list[int]]:
    best = next(packings(count, free, every))
    return best.level, [one.index for one in best.gpus]


@pytest.mark.parametrize(
    ("count", "free", "level", "indexes"),
    [
        pytest.param(4, range(8), "nvlink", [0, 1, 2, 3], id="a whole island"),
        pytest.param(2, [0, 4, 5, 6, 7], "nvlink", [4, 5], id="an island before a lower index"),
        pytest.param(
            2, [0, 1, 2, 4, 5, 6, 7], "nvlink", [0, 1], id="a part-used island before a whole one"
        ),
        pytest.param(
            3, [1, 2, 3, 4, 5, 6, 7], "nvlink", [1, 2, 3], id="the island that is then full"
        ),
        pytest.param(2, [1, 2, 3], "nvlink", [2, 3], id="one switch within the island"),
        pytest.param(6, range(8), "model", [0, 1, 2, 3, 4, 5], id="one island full, then another"),
        pytest.param(1, [3, 4, 5, 6, 7], "nvlink", [3], id="the last one of an island"),
    ],
)
def test_gpus_that_are_near_each_other_go_together(
    count: int, free: Sequence[int], level: str, indexes: list[int]
) -> None:
    every = gpus(8)

    assert chosen(count, [every[index] for index in free], every) == (level, indexes)


def test_without_nvlink_one_switch_goes_before_one_numa_node() -> None:
    every = [
        gpu(0, island=None, switch=0, numa_node=0),
        gpu(1, island=None, switch=1, numa_node=0),
        gpu(2, island=None, switch=2, numa_node=1),
        gpu(3, island=None, switch=2, numa_node=1),
    ]

    assert chosen(2, every, every) == ("switch", [2, 3])
    assert chosen(2, every[:3], every) == ("numa", [0, 1])


def test_one_model_goes_before_a_mixture() -> None:
    every = [gpu(0, model="A", **PLAIN), gpu(1, model="B", **PLAIN), gpu(2, model="B", **PLAIN)]

    assert chosen(2, every, every) == ("model", [1, 2])
    assert chosen(3, every, every) == ("mixed", [0, 1, 2])


def test_islands_of_two_models_are_not_one_island() -> None:
    every = [gpu(0, model="A", island=0), gpu(1, model="B", island=0)]

    assert chosen(2, every, every)[0] != "nvlink"


def test_among_equals_the_coolest_go_then_those_of_lowest_index() -> None:
    alike = {"island": 0, "switch": 0, "numa_node": 0}
    every = [
        gpu(0, margin_celsius=20.0, **alike),
        gpu(1, margin_celsius=30.0, **alike),
        gpu(2, margin_celsius=30.0, **alike),
        gpu(3, margin_celsius=None, **alike),
    ]

    assert chosen(1, every, every)[1] == [1]
    assert chosen(2, every, every)[1] == [1, 2]
    assert chosen(3, every, every)[1] == [0, 1, 2]


@pytest.mark.parametrize(
    ("free", "stranded"),
    [
        pytest.param(range(8), 0, id="all free"),
        pytest.param([], 0, id="none free"),
        pytest.param([4, 5, 6, 7], 0, id="one whole island"),
        pytest.param([0, 4, 5, 6, 7], 1, id="one beside a whole island"),
        pytest.param([0, 1, 2, 4], 4, id="two broken islands"),
    ],
)
def test_gpus_of_broken_islands_are_stranded(free: Sequence[int], stranded: int) -> None:
    every = gpus(8)

    assert stranded_count([every[index] for index in free], every) == stranded


def test_filling_a_broken_island_is_told_as_a_gain() -> None:
    every = gpus(8)

    best = next(packings(1, every[3:], every))

    assert best.stranded_change_count == -1


def test_a_job_without_gpus_has_one_empty_packing_and_too_few_gpus_none() -> None:
    every = gpus(2)

    assert [one.gpus for one in packings(0, every, every)] == [()]
    assert list(packings(3, every, every)) == []
