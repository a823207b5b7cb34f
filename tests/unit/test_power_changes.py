"""Budgets, joins and retirements, by real charters: what is shown, what is signed, what is not."""

from dataclasses import replace
from typing import Any

import pytest

from cluster.rack.ledger.decrees import BudgetSet, Joined, Retired, encode_decree
from cluster.rack.units import FIRST_EPOCH, CurrencyId, Epoch
from esnode.power_orders.budgets import find_charter, lowest_budget_watts, plan_budget
from esnode.power_orders.known import CurrencyKnown, Machine, SlotKnown
from esnode.power_orders.memberships import Newcomer, RetirePlan, plan_join, plan_retire
from esnode.power_orders.refusals import CannotOrder
from tests.power_documents import RACK, Log, charter_of, founded, machine, node_id

MACHINES = (machine(1), machine(2), machine(3), machine(4))
SWITCH_AND_EMPTY = 1500


def slot(number: int, **more: Any) -> SlotKnown:
    known: dict[str, Any] = {
        "slot": f"u{number:02}",
        "node_id": node_id(number),
        "state": "enforcing",
        "floor_watts": 1000,
        "share_watts": 6166,
        "minimum_watts": 2000,
        "priority": 1,
        "version": 1,
        "epoch": FIRST_EPOCH,
        "age_seconds": 0.4,
    }
    return SlotKnown(**(known | more))


def known(*slots: SlotKnown, epoch: Epoch | None = FIRST_EPOCH) -> CurrencyKnown:
    return CurrencyKnown(
        currency=RACK, epoch=epoch, version=1, slots=slots or (slot(1), slot(2), slot(3))
    )


# -- budgets --------------------------------------------------------------------------------------


def test_a_budget_shows_each_cap_before_and_after() -> None:
    plan = plan_budget(charter_of(founded()), 12_500, known=known(), machines=MACHINES, settles=())

    assert plan.decree == BudgetSet(currency=RACK, budget_watts=12_500)
    assert (plan.old_shared_watts, plan.new_shared_watts) == (15_500, 8_000)
    assert [(one.before_watts, one.after_watts) for one in plan.changes] == [(6166, 3666)] * 3
    assert plan.parked == ()


def test_the_lowest_budget_pays_for_all_floors_and_the_margin() -> None:
    charter = charter_of(founded(margin_ppm=30_000))
    lowest = lowest_budget_watts(charter)

    assert lowest == 4640  # 4500 / 0.97
    plan_budget(charter, lowest, known=known(), machines=MACHINES, settles=())
    with pytest.raises(CannotOrder, match=r"4,639 W are too few.*at least 4,640 W"):
        plan_budget(charter, lowest - 1, known=known(), machines=MACHINES, settles=())


def test_who_would_be_parked_is_the_lowest_class_first() -> None:
    slots = (slot(1, priority=0), slot(2, priority=2), slot(3))

    plan = plan_budget(
        charter_of(founded()), 6500, known=known(*slots), machines=MACHINES, settles=()
    )

    assert plan.new_shared_watts == 2000  # and each of the three needs 1000 above its floor
    assert plan.parked == ("u02",)


def test_what_is_not_known_is_told_and_not_taken_for_zero() -> None:
    slots = (slot(1), slot(2, share_watts=None, minimum_watts=None), slot(3))

    plan = plan_budget(
        charter_of(founded()), 12_500, known=known(*slots), machines=MACHINES, settles=()
    )

    assert plan.changes[1].after_watts is None
    assert any("not known here: what u02 hold now" in note for note in plan.notes)


def test_a_cut_tells_who_is_silent() -> None:
    machines = (machine(1), machine(2, state="failed"), machine(3))

    cut = plan_budget(charter_of(founded()), 9000, known=known(), machines=machines, settles=())
    rise = plan_budget(charter_of(founded()), 29_000, known=known(), machines=machines, settles=())

    assert any(note.startswith("gpu-02: silent") for note in cut.notes)
    assert not any("silent" in note for note in rise.notes)


def test_a_fork_is_settled_by_naming_its_other_ends() -> None:
    log = Log()
    genesis = log.say(founded())
    high = log.say(BudgetSet(currency=RACK, budget_watts=19_000), after=genesis)
    low = log.say(BudgetSet(currency=RACK, budget_watts=11_000), after=genesis)
    forked = log.charter()

    plan = plan_budget(forked, 15_000, known=known(), machines=MACHINES, settles=(low.hash,))
    log.say(plan.decree, after=high)

    assert (forked.budget_watts, forked.version.is_unanimous) == (11_000, False)
    assert any("settles it" in note for note in plan.notes)
    assert (log.charter().budget_watts, log.charter().version.is_unanimous) == (15_000, True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("r07", "unknown rack r07; known are r01", id="unknown"),
        pytest.param("r01", "rack:r01 has no budget yet", id="not-founded"),
        pytest.param("feed-a:r01", "feed-a:r01 has no budget yet", id="other-currency"),
    ],
)
def test_a_rack_without_a_budget_is_told(text: str, says: str) -> None:
    with pytest.raises(CannotOrder, match=says):
        find_charter(text, {}, ("r01",))


def test_a_rack_is_found_by_its_name_and_by_that_of_its_currency() -> None:
    charter = charter_of(founded())
    charters = {RACK: charter}

    assert find_charter("r01", charters, ("r01",)) is charter
    assert find_charter("rack:r01", charters, ("r01",)) is charter


# -- joining --------------------------------------------------------------------------------------


def join(charter_decrees: tuple[Any, ...], machine: Machine, slot_name: str, **more: Any) -> Joined:
    return plan_join(
        charter_of(*charter_decrees),
        Newcomer(machine=machine, slot=slot_name),
        known=more.get("known", known()),
        machines=MACHINES,
    )


def test_a_node_joins_an_empty_slot_in_the_present_epoch() -> None:
    decree = join((founded(),), machine(4), "u41")

    assert decree == Joined(currency=RACK, node_id=node_id(4), slot="u41", epoch=FIRST_EPOCH)
    assert node_id(4) in charter_of(founded(), decree).members_of(FIRST_EPOCH)


OPEN = Retired(
    currency=RACK, epoch=FIRST_EPOCH, rank=0, members=(node_id(1), node_id(2), node_id(3)),
    out=(node_id(3),),
)  # fmt: skip


@pytest.mark.parametrize(
    ("decrees", "who", "where", "says"),
    [
        pytest.param((founded(),), machine(2), "u41", "gpu-02 is a member .* already", id="member"),
        pytest.param((founded(),), machine(4), "u77", "has no slot u77; it has u01", id="no-slot"),
        pytest.param((founded(),), machine(4), "u40", "u40 is a static load", id="static"),
        pytest.param(
            (founded(),), machine(4), "u02", "slot u02 is gpu-02's; retire it", id="taken"
        ),
        pytest.param(
            (founded(),), machine(4, rack="r02"), "u41", "gpu-04 is in rack r02", id="rack"
        ),
        pytest.param(
            (founded(),), machine(4, state="failed"), "u41", "gpu-04 does not answer", id="silent"
        ),
        pytest.param((founded(), OPEN), machine(4), "u41", "retirement is under way", id="closing"),
        pytest.param(
            (founded(), OPEN), machine(3), "u41", "is a member of rack:r01 already", id="leaving"
        ),
    ],
)
def test_a_join_that_would_be_ignored_is_refused(
    decrees: tuple[Any, ...], who: Machine, where: str, says: str
) -> None:
    with pytest.raises(CannotOrder, match=says):
        join(decrees, who, where)


def test_a_retired_identity_does_not_come_back() -> None:
    second = Epoch(2, 0)
    told = known(slot(1, epoch=second), slot(2, epoch=second), epoch=second)

    with pytest.raises(CannotOrder, match="gpu-03 was retired under this identity"):
        join((founded(), OPEN), machine(3), "u03", known=told)


# -- retiring -------------------------------------------------------------------------------------

OFF = machine(3, state="failed", heard_seconds=400.0)
HERE = (machine(1), machine(2), OFF, machine(4))


def retire(*decrees: Any, who: Machine = OFF, **more: Any) -> RetirePlan:
    options: dict[str, Any] = {
        "evidence": "outlet 3 is switched off",
        "newcomer": None,
        "known": known(slot(1), slot(2), slot(3, age_seconds=400.0, state="silent")),
        "machines": HERE,
        "is_insisting": False,
    }
    return plan_retire(charter_of(*(decrees or (founded(),))), who, **(options | more))


def test_a_machine_that_is_off_retires() -> None:
    plan = retire()

    assert plan.decree == Retired(
        currency=RACK,
        epoch=FIRST_EPOCH,
        rank=0,
        members=(node_id(1), node_id(2), node_id(3)),
        out=(node_id(3),),
        evidence="outlet 3 is switched off",
    )
    assert (plan.gone, plan.signers, plan.absent) == (("gpu-03",), ("gpu-01", "gpu-02"), ())
    encode_decree(plan.decree)


def test_a_replacement_comes_into_the_slot_and_signs() -> None:
    plan = retire(newcomer=Newcomer(machine=machine(4), slot="u03"))

    assert plan.decree.added == ((node_id(4), "u03"),)
    assert plan.signers == ("gpu-01", "gpu-02", "gpu-04")
    assert charter_of(founded(), plan.decree).slots[2].node_id == node_id(4)


def test_a_second_death_makes_a_superset_of_the_next_rank() -> None:
    second = machine(2, state="failed", heard_seconds=90.0)
    machines = (machine(1), second, OFF, machine(4))
    first = retire(newcomer=Newcomer(machine=machine(4), slot="u03")).decree

    plan = retire(founded(), first, who=second, machines=machines)

    assert plan.decree.rank == 1
    assert plan.decree.out == (node_id(3), node_id(2))
    assert plan.decree.added == ((node_id(4), "u03"),)
    assert plan.signers == ("gpu-01", "gpu-04")
    assert any("rank 0, which is not through" in note for note in plan.notes)


def test_a_newcomer_that_dies_before_the_epoch_ends_is_left_out_of_the_next_rank() -> None:
    dead = machine(4, state="failed", heard_seconds=90.0)
    first = retire(newcomer=Newcomer(machine=machine(4), slot="u03")).decree

    plan = retire(founded(), first, who=dead, machines=(machine(1), machine(2), OFF, dead))

    assert (plan.decree.rank, plan.decree.out, plan.decree.added) == (1, (node_id(3),), ())


@pytest.mark.parametrize(
    ("who", "says"),
    [
        pytest.param(machine(3), "gpu-03 is alive, heard 0 s ago: it may still draw", id="alive"),
        pytest.param(machine(3, state="suspect"), "gpu-03 is suspect", id="suspect"),
        pytest.param(machine(9, state="failed"), "gpu-09 is no member", id="stranger"),
        pytest.param(machine(1), "gpu-01 is alive: it may still draw", id="the-asked-one"),
    ],
)
def test_who_may_still_draw_power_is_not_retired_even_if_an_operator_insists(
    who: Machine, says: str
) -> None:
    with pytest.raises(CannotOrder, match=says):
        retire(who=who, is_insisting=True)


def test_absent_signers_are_named_unless_an_operator_insists() -> None:
    machines = (machine(1), machine(2, state="failed", heard_seconds=75.0), OFF)
    told = known(slot(1), slot(2, age_seconds=75.0), slot(3, age_seconds=400.0))

    with pytest.raises(CannotOrder, match=r"within 60 s: gpu-02 \(75 s ago\)"):
        retire(machines=machines, known=told)
    plan = retire(machines=machines, known=told, is_insisting=True)
    assert plan.absent == ("gpu-02 (75 s ago)",)


def test_a_signer_that_was_never_heard_is_named_so() -> None:
    told = known(slot(1), slot(2, age_seconds=None), slot(3))

    with pytest.raises(CannotOrder, match=f"{node_id(2).short} .never heard."):
        retire(machines=(machine(1), OFF), known=told)


@pytest.mark.parametrize(
    ("told", "decrees", "says"),
    [
        pytest.param(
            known(slot(1), slot(2, epoch=Epoch(2, 0)), slot(3)), (founded(),),
            "here is in epoch 1.0, and u02 is in epoch 2.0", id="a-mate-is-ahead",
        ),
        pytest.param(
            known(), (founded(), OPEN, replace(OPEN, epoch=Epoch(2, 0))),
            "operators have ended epoch 2.0 already", id="the-log-is-ahead",
        ),
        pytest.param(known(epoch=None), (founded(),), "does not know its epoch", id="no-member"),
    ],
)  # fmt: skip
def test_nothing_is_signed_while_epochs_differ(
    told: CurrencyKnown, decrees: tuple[Any, ...], says: str
) -> None:
    with pytest.raises(CannotOrder, match=says):
        retire(*decrees, known=told)


def test_a_silent_member_that_stayed_in_the_old_epoch_can_be_retired_in_the_new_one() -> None:
    second = Epoch(2, 0)
    silent = machine(2, state="failed", heard_seconds=400.0)
    told = known(slot(1, epoch=second), slot(2, age_seconds=400.0), slot(3), epoch=second)

    plan = retire(founded(), OPEN, who=silent, known=told, machines=(machine(1), silent, OFF))

    assert (plan.decree.epoch, plan.decree.members) == (second, (node_id(1), node_id(2)))
    assert plan.signers == ("gpu-01",)


def test_the_same_machine_is_not_retired_twice() -> None:
    with pytest.raises(CannotOrder, match=r"gpu-03 .* was retired already"):
        retire(founded(), OPEN)


def test_somebody_has_to_stay() -> None:
    alone = founded(1)
    off = machine(1, state="failed", is_asked=False)

    with pytest.raises(CannotOrder, match="nobody would be left"):
        retire(alone, who=off, known=known(slot(1)), is_insisting=True)


def test_evidence_is_one_line() -> None:
    with pytest.raises(CannotOrder, match="--evidence is one line"):
        retire(evidence="two\nlines")


def test_currencies_of_several_racks_take_nodes_of_each() -> None:
    row = CurrencyId("row:3")
    charter = charter_of(founded())
    of_row = replace(charter, founded=replace(charter.founded, currency=row))

    decree = plan_join(
        of_row,
        Newcomer(machine=machine(4, rack="r02"), slot="u41"),
        known=replace(known(), currency=row),
        machines=MACHINES,
    )

    assert decree.currency == row
