"""A refusal is a word about one write; only its repetition is one about the device."""

import pytest

from esnode.control.refusing import TRY_SECONDS, RefusedRaises


@pytest.mark.parametrize(
    ("at_seconds", "expected"),
    [
        pytest.param([0.0], False, id="once"),
        pytest.param([0.0, 1.0, 2.0], False, id="while something may settle"),
        pytest.param([0.0, 9.0], False, id="twice, far apart"),
        pytest.param([0.0, 3.0, 6.0], True, id="again and again"),
    ],
)
def test_a_device_refuses_once_it_did_so_again_and_again(
    at_seconds: list[float], expected: bool
) -> None:
    raises = RefusedRaises()

    for at in at_seconds:
        raises.refused("gpu0", at)

    assert raises.is_refusing("gpu0") == expected
    assert not raises.is_refusing("gpu1")


def test_it_is_tried_again_less_and_less_often() -> None:
    raises = RefusedRaises()
    for at in (0.0, 3.0, 6.0):
        raises.refused("gpu0", at)
    first = 6.0 + TRY_SECONDS

    is_early, is_due = (not raises.is_resting("gpu0", at) for at in (first - 1, first))
    raises.refused("gpu0", first)

    assert (is_early, is_due) == (False, True)
    assert raises.is_resting("gpu0", first + TRY_SECONDS)
    assert not raises.is_resting("gpu0", first + 2 * TRY_SECONDS)


def test_one_raise_that_is_taken_ends_it() -> None:
    raises = RefusedRaises()
    for at in (0.0, 3.0, 6.0):
        raises.refused("gpu0", at)

    raises.took("gpu0")

    assert not raises.is_refusing("gpu0")
