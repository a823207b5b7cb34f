"""What is told of rack power fits into what carries it."""

from cluster.gossip.outbox import OPAQUE_BYTES_MAX
from cluster.ids import NodeId
from cluster.rack.ledger.messages import Told, decode_message
from cluster.rack.model import FLAGS_MAX, GPUS_MAX, GpuDigest, NodeState
from cluster.rack.rows import Credit, Promise, Row, Wants
from cluster.rack.units import FIRST_EPOCH, BudgetVersion, CurrencyId
from cluster.rack.wire import decode_node_state, encode_node_state
from esnode.powering.fitting import STATE_BYTES_MAX, fit_message, fit_state

RACK = CurrencyId("rack:" + "r" * 32)


def node(number: int) -> NodeId:
    return NodeId(number.to_bytes(16, "big"))


def crowded_row(lines: int) -> Row:
    return Row(
        node_id=node(1),
        stamp=2**60,
        epoch=FIRST_EPOCH,
        shares=10**9,
        version=BudgetVersion(sequence=9, watts=10**8),
        wants=Wants(demand_watts=10**6, maximum_watts=10**6, gang="g" * 40),
        promises=tuple(
            Promise(to=node(at), sequence=2**40, shares=10**9) for at in range(2, lines + 2)
        ),
        credits=tuple(Credit(giver=node(at), sequence=2**40) for at in range(2, lines + 2)),
    )


def full_state() -> NodeState:
    gpu = GpuDigest(
        index=15,
        is_up=True,
        power_draw_watts=712.5,
        power_cap_watts=700.0,
        utilization_ratio=0.99,
        memory_used_ratio=0.99,
        temperature_celsius=85.0,
        is_throttled=True,
    )
    return NodeState(
        agent_version="0.0.0",
        power_draw_watts=10123.4,
        gpus=(gpu,) * GPUS_MAX,
        flags=("a_flag",) * (FLAGS_MAX // 3),
    )


def test_a_crowded_message_loses_promises_and_no_shares() -> None:
    data = fit_message(RACK, Told(row=crowded_row(24)))

    assert data is not None
    assert len(data) <= OPAQUE_BYTES_MAX
    _, told = decode_message(data)
    assert isinstance(told, Told)
    assert told.row.shares == 10**9
    assert 6 <= len(told.row.promises) < 24


def test_a_state_of_16_gpus_still_carries_the_account() -> None:
    dressed = fit_state(full_state(), ((RACK, crowded_row(24)),))

    data = encode_node_state(dressed)

    assert len(data) <= STATE_BYTES_MAX
    ((currency, row),) = decode_node_state(data).power_rows
    assert currency == RACK
    assert row.shares == 10**9


def test_a_state_without_room_goes_without_accounts() -> None:
    rows = tuple((CurrencyId(f"feed-{at}:" + "r" * 30), crowded_row(1)) for at in range(8))

    assert fit_state(full_state(), rows).power_rows == ()


def test_a_row_that_cannot_be_read_leaves_the_rest_of_the_state() -> None:
    data = encode_node_state(fit_state(NodeState(agent_version="9"), ((RACK, crowded_row(1)),)))
    broken = data.replace(b"\xcf" + (2**60).to_bytes(8, "big"), b"\xd3" + b"\xff" * 8)

    state = decode_node_state(broken)

    assert broken != data
    assert state.agent_version == "9"
    assert state.power_rows == ()
