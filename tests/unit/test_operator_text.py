"""What operators said, as people read it."""

from dataclasses import replace

import pytest

from cluster.identity.operator_records import (
    OperatorAdded,
    OperatorRecord,
    Other,
    log_root,
    sign_record,
)
from cluster.ids import OperatorId
from cluster.rack.ledger.decrees import BudgetSet, Decree, Joined, Retired
from cluster.rack.units import FIRST_EPOCH
from esnode.operator_text import record_line
from tests.identities import NOW
from tests.power_documents import RACK, Log, founded, node_id
from tests.rosters import Club


def test_a_new_operator_is_called_by_name() -> None:
    club = Club()

    line = record_line(club.introduce_operator())

    assert line.startswith("record 1 by ")
    assert line.endswith(": operator ada was added")


def test_a_certificate_that_cannot_be_read_has_no_name() -> None:
    authority = Club().lab.keys
    cluster_id = authority.authority.cluster_id
    record = OperatorRecord(
        cluster_id=cluster_id,
        sequence=1,
        previous=log_root(cluster_id),
        statement=OperatorAdded(certificate_der=b"junk"),
        signed_by=OperatorId(cluster_id),
        written_unix_seconds=NOW,
    )

    line = record_line(sign_record(record, authority.signer))

    assert line.endswith(": operator without a name was added")


@pytest.mark.parametrize(
    ("decree", "said"),
    [
        pytest.param(founded(), "rack:r01 was founded with 20,000 W and 5 slots", id="genesis"),
        pytest.param(
            BudgetSet(currency=RACK, budget_watts=9000),
            "the budget of rack:r01 is 9,000 W",
            id="budget",
        ),
        pytest.param(
            BudgetSet(currency=RACK, budget_watts=9000, settles=(bytes(32),)),
            "the budget of rack:r01 is 9,000 W, which settles a fork of the log",
            id="settling",
        ),
        pytest.param(
            Joined(currency=RACK, node_id=node_id(4), slot="u41", epoch=FIRST_EPOCH),
            "node a4a4a4a4 came into slot u41 of rack:r01",
            id="join",
        ),
        pytest.param(
            Retired(
                currency=RACK,
                epoch=FIRST_EPOCH,
                rank=1,
                members=(node_id(1), node_id(2)),
                out=(node_id(2),),
                evidence="outlet 2 is off",
            ),
            "a2a2a2a2 retired from rack:r01 as off, rank 1 (outlet 2 is off)",
            id="retirement",
        ),
    ],
)
def test_what_was_said_about_power_is_read_out(decree: Decree, said: str) -> None:
    assert record_line(Log().say(decree)).endswith(f": {said}")


def test_a_decree_that_nobody_obeys_is_called_so() -> None:
    signed = Log().say(founded())
    broken = replace(signed.record, statement=Other(kind="power-budget", body=b"\x93"))

    assert "power-budget that nobody obeys" in record_line(replace(signed, record=broken))
