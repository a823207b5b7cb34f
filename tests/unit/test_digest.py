"""What a node tells its rack of a snapshot."""

from dataclasses import replace

from cluster.rack.wire import encode_node_state
from esnode.digest import digest
from esnode.snapshot import Snapshot
from tests.snapshots import rich_snapshot


def test_a_rich_node_tells_all_of_its_parts() -> None:
    snapshot = rich_snapshot()

    state = digest(snapshot, agent_version="0.2.0", loop_lag_seconds=0.01)

    assert snapshot.power.node is not None
    assert state.power_draw_watts == snapshot.power.node.power_watts
    assert snapshot.gpu_inventory is not None
    assert state.gpu_count == snapshot.gpu_inventory.found_count
    assert state.gpu_healthy_count == sum(gpu.is_up for gpu in snapshot.gpus)
    assert len(encode_node_state(state)) < 900


def test_an_empty_node_claims_nothing() -> None:
    state = digest(
        Snapshot(taken_at_seconds=1.0, sequence=1), agent_version="0.2.0", loop_lag_seconds=None
    )

    told = {name: getattr(state, name) for name in state.__slots__}
    known = {name: value for name, value in told.items() if value not in (None, "", ())}
    assert known == {
        "agent_version": "0.2.0",
        "is_power_draw_estimated": False,
        "degradation_score": 0,
    }


def test_a_gpu_that_does_not_answer_makes_the_sum_of_draws_unknown() -> None:
    snapshot = rich_snapshot()
    first, *others = snapshot.gpus
    lost = replace(first, is_up=False, reading=None)
    fine = [gpu for gpu in others if gpu.reading is not None]

    state = digest(
        replace(snapshot, gpus=(lost, *fine)), agent_version="0.2.0", loop_lag_seconds=None
    )

    assert state.gpu_draw_watts is None
    assert state.gpu_cap_watts is None
    assert not state.gpus[0].is_up
