"""How sure one may be of a rack."""

from dataclasses import replace

import pytest

from cluster.rack.activation import SILENT_SECONDS, SlotFact, SlotState, activation, slot_state
from cluster.rack.units import BudgetVersion
from tests.rack_rows import BUDGET, node

ENFORCING = SlotFact(
    slot="u01",
    node_id=node(1),
    floor_watts=2000,
    complied=BUDGET,
    row_age_seconds=0.5,
    is_metered=True,
)
SWITCH = SlotFact(slot="u02", node_id=None, floor_watts=400, is_static=True)
OFF = SlotFact(slot="u03", node_id=None, floor_watts=2000, is_proven_off=True)
UNKNOWN = SlotFact(slot="u04", node_id=None, floor_watts=2000)


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(ENFORCING, "enforcing", id="it was seen to comply"),
        pytest.param(SWITCH, "static", id="counted at its maximum"),
        pytest.param(OFF, "proven_off", id="proven off"),
        pytest.param(
            replace(ENFORCING, is_proven_off=True), "proven_off", id="off, whatever it said"
        ),
        pytest.param(UNKNOWN, "missing", id="nobody is in it"),
        pytest.param(replace(ENFORCING, complied=None), "missing", id="it has not complied yet"),
        pytest.param(replace(ENFORCING, row_age_seconds=None), "missing", id="never heard"),
        pytest.param(replace(ENFORCING, floor_watts=None), "missing", id="no floor is charged"),
        pytest.param(
            replace(SWITCH, floor_watts=None), "missing", id="static at nobody knows what"
        ),
        pytest.param(replace(OFF, floor_watts=None), "proven_off", id="off draws nothing"),
    ],
)
def test_a_slot_counts_by_what_is_proven_of_it(fact: SlotFact, expected: SlotState) -> None:
    assert slot_state(fact) == expected


@pytest.mark.parametrize(
    ("slots", "newest", "is_rack_metered", "grade", "missing"),
    [
        pytest.param([ENFORCING, SWITCH, OFF], BUDGET, False, "A", (), id="each has its meter"),
        pytest.param(
            [replace(ENFORCING, is_metered=False), SWITCH], BUDGET, True, "A", (), id="one meter"
        ),
        pytest.param(
            [replace(ENFORCING, is_metered=False), SWITCH], BUDGET, False, "B", (), id="a model"
        ),
        pytest.param([ENFORCING, UNKNOWN], BUDGET, True, "C", ("u04",), id="one is missing"),
        pytest.param([], BUDGET, True, "C", (), id="no list of slots"),
        pytest.param([ENFORCING], None, True, "C", (), id="no budget"),
    ],
)
def test_a_rack_is_as_safe_as_its_slots(
    slots: list[SlotFact],
    newest: BudgetVersion | None,
    is_rack_metered: bool,
    grade: str,
    missing: tuple[str, ...],
) -> None:
    judged = activation(slots, newest, is_rack_metered=is_rack_metered)

    assert (judged.grade, judged.missing) == (grade, missing)


def test_slots_are_named_in_order() -> None:
    judged = activation([UNKNOWN, ENFORCING, replace(UNKNOWN, slot="u00")], BUDGET)

    assert judged.states == (("u00", "missing"), ("u01", "enforcing"), ("u04", "missing"))
    assert judged.missing == ("u00", "u04")


def test_who_has_not_followed_a_new_budget_is_named() -> None:
    newest = BudgetVersion(sequence=2, watts=7_000)

    judged = activation([ENFORCING, replace(ENFORCING, slot="u09", complied=newest)], newest)

    assert (judged.grade, judged.late) == ("A", ("u01",))


@pytest.mark.parametrize(
    ("age_seconds", "silent"),
    [
        pytest.param(SILENT_SECONDS, (), id="heard"),
        pytest.param(SILENT_SECONDS + 1, ("u01",), id="not heard for long"),
    ],
)
def test_who_was_not_heard_for_long_is_named(age_seconds: float, silent: tuple[str, ...]) -> None:
    judged = activation([replace(ENFORCING, row_age_seconds=age_seconds)], BUDGET)

    assert (judged.grade, judged.silent) == ("A", silent)


def test_a_machine_in_no_slot_leaves_the_rack_unprotected_and_is_named() -> None:
    judged = activation([ENFORCING, SWITCH], BUDGET, outside=("gpu-09", "gpu-07"))

    assert (judged.grade, judged.missing) == ("C", ())
    assert judged.outside == ("gpu-07", "gpu-09")
