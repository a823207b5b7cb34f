"""How a node and a rack are, as bytes and as sums."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cluster.codec import decode_document, encode_document
from cluster.errors import Malformed
from cluster.ids import NodeId, RackId
from cluster.rack.model import GPUS_MAX, GpuDigest, NodeState, RackState, Total
from cluster.rack.report import NodeReport, decode_report, encode_report
from cluster.rack.summary import Heard, summarise
from cluster.rack.wire import (
    decode_node_state,
    decode_rack_state,
    encode_node_state,
    encode_rack_state,
)

tenths = some.one_of(some.none(), some.integers(0, 10**7).map(lambda n: n / 10))
thousandths = some.one_of(some.none(), some.integers(0, 1000).map(lambda n: n / 1000))
counts = some.one_of(some.none(), some.integers(0, 1000))
words = some.text(some.characters(min_codepoint=32, max_codepoint=126), max_size=40)

gpus = some.builds(
    GpuDigest,
    index=some.integers(0, 64),
    is_up=some.booleans(),
    power_draw_watts=tenths,
    power_cap_watts=tenths,
    utilization_ratio=thousandths,
    memory_used_ratio=thousandths,
    temperature_celsius=tenths,
    is_throttled=some.one_of(some.none(), some.booleans()),
)
states = some.builds(
    NodeState,
    agent_version=words,
    power_draw_watts=tenths,
    power_draw_source=words,
    is_power_draw_estimated=some.booleans(),
    power_draw_age_seconds=tenths,
    power_cap_watts=tenths,
    gpu_draw_watts=tenths,
    gpu_cap_watts=tenths,
    gpu_limit_watts=tenths,
    gpu_count=counts,
    gpu_healthy_count=counts,
    gpu_busy_count=counts,
    gpus=some.lists(gpus, max_size=4).map(tuple),
    cpu_utilization_ratio=thousandths,
    memory_used_ratio=thousandths,
    temperature_max_celsius=tenths,
    jobs_running_count=counts,
    degradation_score=counts,
    flags=some.lists(words, max_size=4).map(tuple),
    loop_lag_seconds=thousandths,
    power_lowest_watts=tenths,
    power_highest_watts=tenths,
)


@given(states)
def test_a_state_comes_back_as_it_was(state: NodeState) -> None:
    assert decode_node_state(encode_node_state(state)) == state


@given(some.binary(max_size=300))
def test_any_bytes_are_a_state_or_malformed(data: bytes) -> None:
    for decode in (decode_node_state, decode_rack_state, decode_report):
        try:
            decode(data)
        except Malformed:
            continue


def test_a_full_machine_fits_into_one_statement() -> None:
    gpu = GpuDigest(
        index=15,
        is_up=True,
        power_draw_watts=1399.9,
        power_cap_watts=1400.0,
        utilization_ratio=0.999,
        memory_used_ratio=0.999,
        temperature_celsius=104.9,
        is_throttled=True,
    )
    state = NodeState(
        agent_version="10.20.30.dev1234+abcdefg",
        power_draw_watts=25_999.9,
        power_draw_source="simulated",
        power_draw_age_seconds=599.9,
        gpus=(gpu,) * GPUS_MAX,
        flags=("x" * 20,) * 12,
    )

    assert len(encode_node_state(state)) <= 900


def test_fields_of_a_later_version_are_passed_over_and_missing_ones_are_unknown() -> None:
    state = NodeState(agent_version="0.2.0", power_draw_watts=812.5, gpu_count=8)
    document = decode_document(encode_node_state(state))

    later = decode_node_state(encode_document((*document, "new", (1, 2))))
    earlier = decode_node_state(encode_document(document[:3]))

    assert later == state
    assert earlier == NodeState(agent_version="0.2.0", power_draw_watts=812.5)


def test_what_is_not_a_number_is_unknown() -> None:
    state = NodeState(agent_version="0.2.0", power_draw_watts=float("nan"))

    assert decode_node_state(encode_node_state(state)).power_draw_watts is None


def heard(
    draw: float | None, *, status: str = "alive", age: float = 0.5, estimated: bool = False
) -> Heard:
    state = NodeState(
        agent_version="0.2.0",
        power_draw_watts=draw,
        is_power_draw_estimated=estimated,
        power_draw_age_seconds=1.0,
        gpu_count=8,
        temperature_max_celsius=60.0 + (draw or 0.0) / 100,
    )
    return Heard(status=status, state=state, age_seconds=age)


def test_a_sum_says_over_how_many_it_is() -> None:
    silent = Heard(status="suspect", state=None, age_seconds=None)

    rack = summarise(RackId("r01"), [heard(500.0), heard(None), heard(700.0, age=3.0), silent])

    assert rack.power_draw_watts == Total(value=1200.0, known_count=2, age_seconds=4.0)
    assert rack.counts == (("alive", 3), ("suspect", 1))
    assert rack.gpu_count == 24
    assert rack.temperature_max_celsius == 67.0


def test_nobody_who_told_is_unknown_and_not_zero() -> None:
    rack = summarise(RackId("r01"), [Heard(status="alive", state=None, age_seconds=None)])

    assert rack.power_draw_watts.value is None
    assert rack.gpu_count is None


def test_who_is_gone_counts_by_state_alone() -> None:
    rack = summarise(RackId("r01"), [heard(500.0), heard(700.0, status="failed")])

    assert rack.power_draw_watts.value == 500.0
    assert rack.counts == (("alive", 1), ("failed", 1))


def test_one_estimate_makes_the_sum_an_estimate() -> None:
    rack = summarise(RackId("r01"), [heard(500.0), heard(700.0, estimated=True)])

    assert rack.power_draw_watts.is_estimated


@given(states, some.integers(0, 30))
def test_a_rack_comes_back_as_it_was(state: NodeState, age: int) -> None:
    rack = summarise(RackId("r01"), [Heard(status="alive", state=state, age_seconds=float(age))])

    assert decode_rack_state(encode_rack_state(rack)).counts == rack.counts
    assert decode_rack_state(encode_rack_state(RackState(rack=RackId("r02")))) == RackState(
        rack=RackId("r02")
    )


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(NodeReport(node_id=NodeId(b"n" * 16), status="alive"), id="bare"),
        pytest.param(
            NodeReport(
                node_id=NodeId(b"n" * 16),
                status="suspect",
                status_age_seconds=1.5,
                heard_age_seconds=0.0,
                state=b"state",
                state_age_seconds=2.5,
                view_digest=2**64 - 1,
            ),
            id="full",
        ),
    ],
)
def test_a_report_comes_back_as_it_was(report: NodeReport) -> None:
    assert decode_report(encode_report(report)) == report


def test_an_earlier_version_reads_a_state_with_what_it_does_not_know() -> None:
    known = NodeState(agent_version="0.2.0", power_draw_watts=900.0)
    later = NodeState(
        agent_version="0.2.0", power_draw_watts=900.0, power_lowest_watts=800.0,
        power_highest_watts=7100.5,
    )  # fmt: skip

    fields, more = (decode_document(encode_node_state(one)) for one in (known, later))

    assert more == (*fields, (), 8000, 71005)
    assert decode_node_state(encode_node_state(known)).power_lowest_watts is None
