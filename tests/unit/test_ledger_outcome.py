"""What follows from a retirement and all last words: who owns what in the next epoch."""

from dataclasses import replace

import pytest

from cluster.errors import Malformed
from cluster.ids import NodeId
from cluster.rack.ledger.closing import settle_epoch
from cluster.rack.ledger.decrees import Retired
from cluster.rack.ledger.messages import Statement
from cluster.rack.units import FIRST_EPOCH, SHARES_TOTAL, Epoch
from simulations.power.desk import CURRENCY

THIRD = SHARES_TOTAL // 3
A, B, C, D = (NodeId(bytes([number]) * 16) for number in (1, 2, 3, 4))


def retired_of(**changes: object) -> Retired:
    """C goes, A and B stay."""
    record = Retired(currency=CURRENCY, epoch=FIRST_EPOCH, rank=0, members=(A, B, C), out=(C,))
    return replace(record, **changes)  # type: ignore[arg-type]  # by the tests


def stated(
    node_id: NodeId,
    own: int,
    *,
    outbox: tuple[tuple[int, int, int], ...] = (),
    last_in: tuple[int, ...] = (0, 0, 0),
) -> Statement:
    """The last word of one."""
    return Statement(
        node_id=node_id,
        epoch=FIRST_EPOCH,
        rank=0,
        digest=bytes(16),
        own_shares=own,
        outbox=outbox,
        last_in=last_in,
    )


def test_what_the_retired_held_goes_to_the_first_survivor() -> None:
    outcome = settle_epoch(retired_of(), {A: stated(A, THIRD), B: stated(B, THIRD)})

    assert outcome.epoch == Epoch(2, 0)
    assert dict(outcome.own_shares) == {A: SHARES_TOTAL - THIRD, B: THIRD}


def test_what_the_retired_held_goes_to_the_newcomers_alike() -> None:
    record = retired_of(added=((D, "u3"),))
    words = {A: stated(A, THIRD), B: stated(B, THIRD), D: stated(D, 0)}

    outcome = settle_epoch(record, words)

    assert outcome.members == (A, B, D)
    assert outcome.own_shares[D] == SHARES_TOTAL - 2 * THIRD


def test_what_had_not_arrived_at_another_signer_goes_back() -> None:
    words = {A: stated(A, THIRD - 100, outbox=((1, 4, 100),)), B: stated(B, THIRD)}

    outcome = settle_epoch(retired_of(rank=3), words)

    assert outcome.epoch == Epoch(2, 3)
    assert outcome.own_shares[A] == SHARES_TOTAL - THIRD  # its own again, and what C held
    assert outcome.own_shares[B] == THIRD


def test_what_had_arrived_at_another_signer_stays_there() -> None:
    words = {
        A: stated(A, THIRD - 100, outbox=((1, 4, 100),)),
        B: stated(B, THIRD + 100, last_in=(4, 0, 0)),
    }

    outcome = settle_epoch(retired_of(), words)

    assert outcome.own_shares[B] == THIRD + 100


def test_what_was_sent_to_a_retired_node_is_never_refunded() -> None:
    words = {B: stated(B, THIRD - 100, outbox=((2, 1, 100),)), A: stated(A, THIRD)}

    outcome = settle_epoch(retired_of(), words)

    assert outcome.own_shares[B] == THIRD - 100


def test_statements_that_hold_too_much_give_nothing_out() -> None:
    words = {A: stated(A, SHARES_TOTAL), B: stated(B, 1)}

    with pytest.raises(Malformed, match="1 shares more"):
        settle_epoch(retired_of(), words)
