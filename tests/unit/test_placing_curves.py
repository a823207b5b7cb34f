"""The figures that placement goes by are those of the simulated machine and of the data sheets."""

import pytest

from esnode.drivers.simulated.parts import CURVES as SIMULATED
from esnode.drivers.simulated.parts import PARTS
from esnode.placing.curves import CURVES, peak_work


@pytest.mark.parametrize("kind", sorted(SIMULATED))
def test_a_curve_is_that_of_the_simulated_machine(kind: str) -> None:
    for percent in range(0, 121, 5):
        ratio = percent / 100

        assert CURVES[kind].work_ratio(ratio) == SIMULATED[kind].throughput_ratio(ratio)


@pytest.mark.parametrize("key", sorted(PARTS))
@pytest.mark.parametrize("load", sorted(CURVES))
def test_every_simulated_model_has_a_peak(key: str, load: str) -> None:
    assert (peak_work(PARTS[key].name, load) or 0.0) > 0.0


def test_work_is_counted_in_h100s_and_by_what_the_load_is_bound_by() -> None:
    assert [peak_work("NVIDIA H100 80GB HBM3", load) for load in CURVES] == [1.0, 1.0, 1.0]
    assert peak_work("NVIDIA H200", "compute") == 1.0
    assert (peak_work("NVIDIA H200", "decode") or 0.0) > 1.4
    assert peak_work("a card of tomorrow", "compute") is None
