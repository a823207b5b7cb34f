"""The cluster document, made from what one agent knows."""

from dataclasses import replace

import pytest

from cluster.gossip.effects import Status
from cluster.gossip.messages import NEVER, Address, Version
from cluster.gossip.view import GossipView, MemberView
from cluster.ids import NodeId, NodeName, RackId
from cluster.peer import PeerView
from cluster.rack.model import NodeState, RackState, Total
from esnode.status.cluster import ClusterKnown, OtherView, Told, describe_cluster, describe_one_rack
from esnode.status.cluster_warnings import Troubles
from tests.identities import DAY, NOW, Lab

LAB = Lab()
OWN = LAB.join(LAB.invite(), "n1").identity
R01, R02 = RackId("r01"), RackId("r02")
STATE = NodeState(
    agent_version="0.2.0",
    power_draw_watts=800.0,
    power_draw_source="dcmi",
    power_draw_age_seconds=1.0,
    gpu_count=8,
    gpu_healthy_count=8,
    gpu_busy_count=3,
)


def node_id(number: int) -> NodeId:
    return NodeId(bytes([number]) * 16)


def member(number: int, status: Status = Status.ALIVE, rack: RackId = R01) -> MemberView:
    return MemberView(
        node_id=node_id(number),
        name=NodeName(f"n{number}"),
        rack=rack,
        address=Address(f"10.0.0.{number}:7947"),
        version=Version(epoch=2, sequence=1),
        status=status,
        status_age_seconds=4.0,
        heard_age_seconds=0.25,
        accusers=(OWN.node_id,) if status is Status.SUSPECT else (),
        flaps_ratio=0.0,
        is_quarantined=False,
        round_trip_seconds=0.0004,
        state=None,
        state_age_seconds=None,
        state_version=NEVER,
    )


def known(
    *members: MemberView, told: dict[int, Told] | None = None, **troubles: object
) -> ClusterKnown:
    gossip = GossipView(
        node_id=OWN.node_id,
        version=Version(epoch=3, sequence=1),
        members=members,
        racks={},
        digest=0xABCDEF,
        health_score=0,
        is_speaker=True,
        is_isolated=False,
        is_leaving=False,
        is_contested=False,
        checks_total=0,
        views_equal_total=0,
        views_different_total=0,
    )
    view = PeerView(
        gossip=gossip,
        identities={OWN.node_id: OWN},
        withdrawn={},
        shared_names={},
        waiting=(),
        forgotten=frozenset(),
        alarms=(),
        operator_records_count=0,
        operator_records_waiting_count=0,
    )
    return ClusterKnown(
        view=view,
        own=OWN,
        cluster_name="lab",
        address="10.0.0.1:7947",
        observed_address=None,
        own_state=STATE,
        told={node_id(number): one for number, one in (told or {}).items()},
        summaries={},
        troubles=Troubles(shared_names={}, now_unix_seconds=float(NOW)),
        now_unix_seconds=float(NOW),
    )


def codes(document: dict[str, object]) -> list[str]:
    warnings = document["warnings"]
    assert isinstance(warnings, list)
    return [one["code"] for one in warnings]


def texts(document: dict[str, object]) -> list[str]:
    warnings = document["warnings"]
    assert isinstance(warnings, list)
    return [one["text"] for one in warnings]


def test_a_healthy_cluster_says_so_and_adds_up() -> None:
    told = {2: Told(state=STATE, age_seconds=0.5)}

    document = describe_cluster(known(member(2), told=told))

    assert document["schema"] == "esnode.cluster_status/1"
    assert document["generated_at"] == "2027-01-15T08:00:00Z"
    cluster = document["cluster"]
    assert cluster["state"] == "healthy"
    assert cluster["nodes"]["total"] == 2
    assert cluster["versions"] == {"0.2.0": 2}
    assert cluster["power"]["draw_watts"] == {
        "value": 1600.0,
        "age_seconds": 1.5,
        "source": "nodes",
        "estimated": False,
    }
    assert cluster["gpus"] == {"total": 16, "busy": 6, "idle": 10, "unhealthy": 0}
    assert document["warnings"] == []


def test_what_nobody_told_is_null_everywhere() -> None:
    document = describe_cluster(replace(known(member(2)), own_state=NodeState(agent_version="")))

    nodes = {node["name"]: node for node in document["nodes"]}
    for quantity in (
        nodes["n2"]["power"]["draw_watts"],
        nodes["n1"]["power"]["draw_watts"],
        document["racks"][0]["power"]["draw_watts"],
        document["cluster"]["power"]["draw_watts"],
    ):
        assert quantity["value"] is None
    assert document["cluster"]["gpus"]["total"] is None
    assert document["cluster"]["jobs"]["running"] is None


def test_a_sum_over_a_part_of_the_nodes_is_an_estimate_and_says_of_how_many() -> None:
    document = describe_cluster(known(member(2), member(3, Status.FAILED)))

    draw = document["racks"][0]["power"]["draw_watts"]
    assert draw["value"] == 800.0
    assert draw["estimated"]
    assert draw["source"] == "nodes 1/3"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        pytest.param(Status.SUSPECT, "node-suspect", id="suspect"),
        pytest.param(Status.FAILED, "node-failed", id="failed"),
        pytest.param(Status.DEGRADED, "node-degraded", id="degraded"),
    ],
)
def test_a_node_in_trouble_degrades_the_cluster_and_is_named(status: Status, code: str) -> None:
    document = describe_cluster(known(member(2), member(3), member(4, status)))

    assert document["cluster"]["state"] == "degraded"
    assert code in codes(document)


@pytest.mark.parametrize("status", [Status.LEFT, Status.REMOVED])
def test_who_has_gone_in_order_is_no_trouble_and_not_part_of_the_total(status: Status) -> None:
    document = describe_cluster(known(member(2), member(3, status)))

    assert document["cluster"]["state"] == "healthy"
    assert document["cluster"]["nodes"]["total"] == 2
    assert document["cluster"]["nodes"][str(status)] == 1


def test_the_smaller_side_of_a_cut_knows_that_it_is_isolated() -> None:
    gone = [member(number, Status.FAILED) for number in range(3, 7)]

    document = describe_cluster(known(member(2), *gone))

    assert document["cluster"]["state"] == "isolated"


def test_a_rack_without_a_reachable_node_is_dark() -> None:
    document = describe_cluster(known(member(2), member(3, Status.FAILED, R02)))

    racks = {rack["id"]: rack for rack in document["racks"]}
    assert racks["r02"]["state"] == "dark"
    assert "rack-dark" in codes(document)


def test_a_rack_that_did_not_answer_is_shown_by_what_its_speaker_told() -> None:
    summary = RackState(
        rack=R02,
        power_draw_watts=Total(value=5000.0, known_count=1, age_seconds=1.0),
        gpu_count=8,
        versions=(("0.1.0", 1),),
    )
    seen = replace(
        known(member(2), member(3, rack=R02)), summaries={R02: (node_id(3), summary, 4.0)}
    )

    document = describe_cluster(seen)

    rack = {one["id"]: one for one in document["racks"]}["r02"]
    assert rack["source"] == "summary"
    assert rack["speaker"] == "n3"
    assert rack["power"]["draw_watts"]["value"] == 5000.0
    assert rack["power"]["draw_watts"]["age_seconds"] == 5.0
    assert document["cluster"]["versions"] == {"0.1.0": 1, "0.2.0": 1}


def test_a_rack_that_stopped_answering_is_shown_by_what_its_speaker_told_since() -> None:
    summary = RackState(rack=R02, power_draw_watts=Total(value=650.0, known_count=1))
    before = known(member(2, rack=R02), told={2: Told(state=STATE, age_seconds=900.0)})
    seen = replace(before, summaries={R02: (node_id(2), summary, 4.0)})

    document = describe_cluster(seen)

    rack = document["racks"][1]
    assert rack["source"] == "summary"
    assert rack["power"]["draw_watts"]["value"] == 650.0
    assert rack["age_seconds"] == 4.0


def test_a_budget_gives_headroom_only_when_every_node_told() -> None:
    summary = RackState(
        rack=R02,
        power_draw_watts=Total(value=5000.0, known_count=1),
        power_budget_watts=9000.0,
    )
    whole = replace(known(member(3, rack=R02)), summaries={R02: (node_id(3), summary, 0.0)})
    part = replace(
        known(member(3, rack=R02), member(4, rack=R02)),
        summaries={R02: (node_id(3), summary, 0.0)},
    )

    headrooms = [
        {one["id"]: one for one in describe_cluster(seen)["racks"]}["r02"]["power"][
            "headroom_watts"
        ]["value"]
        for seen in (whole, part)
    ]

    assert headrooms == [4000.0, None]


def test_where_others_see_it_otherwise_is_told() -> None:
    views = [
        OtherView(
            node_id=node_id(2),
            name="n2",
            digest=0xABCDEF,
            statuses={node_id(3): "suspect", OWN.node_id: "alive"},
        ),
        OtherView(node_id=node_id(3), name="n3", digest=None),
    ]

    document = describe_cluster(known(member(2), member(3)), views)

    assert document["cluster"]["view"]["agreeing"] == 2
    assert document["cluster"]["view"]["asked"] == 3
    assert document["views"][0]["disagreements"] == [
        {"subject": "n3", "state": "suspect", "here": "alive"}
    ]
    assert not document["views"][1]["answered"]


def test_a_certificate_that_ends_soon_is_told_in_time() -> None:
    late = float(NOW + 720 * DAY)
    seen = replace(
        known(member(2)),
        now_unix_seconds=late,
        troubles=Troubles(shared_names={}, now_unix_seconds=late),
    )

    document = describe_cluster(seen)

    assert "certificate-ending" in codes(document)
    own = next(node for node in document["nodes"] if node["is_asked"])
    assert own["certificate"]["validity"] == "ending"
    assert document["cluster"]["state"] == "healthy"


@pytest.mark.parametrize(
    ("flaps_ratio", "text"),
    [
        pytest.param(0.0, "hard to reach: it has not answered lately", id="silent-now"),
        pytest.param(
            9.2,
            "unsteady: restarted or suspected 9 times lately; a crash loop, a bad link, or a "
            "cloned disk",
            id="restarts",
        ),
    ],
)
def test_a_degraded_node_is_said_to_be_what_it_is(flaps_ratio: float, text: str) -> None:
    unwell = replace(member(4, Status.DEGRADED), flaps_ratio=flaps_ratio)

    assert text in texts(describe_cluster(known(member(2), unwell)))


def test_two_live_machines_of_one_name_are_a_conflict() -> None:
    twin = replace(member(9), name=OWN.name)
    seen = replace(
        known(member(2), twin),
        troubles=Troubles(
            shared_names={OWN.name: (OWN.node_id, twin.node_id)}, now_unix_seconds=float(NOW)
        ),
    )

    document = describe_cluster(seen)

    assert "name-conflict" in codes(document)
    assert any("join anew under another --name" in text for text in texts(document))


def test_a_forgotten_key_is_not_shown_once_it_is_gone() -> None:
    seen = known(member(2), member(3, Status.FAILED))
    forgotten = frozenset({(NodeName("n3"), node_id(3)), (NodeName("n2"), node_id(2))})
    seen = replace(seen, view=replace(seen.view, forgotten=forgotten))

    document = describe_cluster(seen)

    assert [node["name"] for node in document["nodes"]] == ["n1", "n2"]


def test_one_rack_has_its_own_nodes_and_warnings() -> None:
    seen = known(member(2), member(3, Status.FAILED, R02), member(4, rack=R02))

    document = describe_one_rack(seen, R02)

    assert document is not None
    assert [node["name"] for node in document["nodes"]] == ["n3", "n4"]
    assert codes(document) == ["node-failed"]
    assert describe_one_rack(seen, RackId("r99")) is None


def test_agents_far_apart_in_version_are_told() -> None:
    told = {2: Told(state=replace(STATE, agent_version="0.5.1"), age_seconds=0.1)}

    assert "version-skew" in codes(describe_cluster(known(member(2), told=told)))


def test_a_mate_that_answers_but_does_not_tell_is_stale() -> None:
    told = {2: Told(state=STATE, age_seconds=25.0)}

    assert "node-stale" in codes(describe_cluster(known(member(2), told=told)))


def test_a_key_that_two_machines_use_is_told_where_it_is_noticed() -> None:
    troubles = Troubles(shared_names={}, is_contested=True, now_unix_seconds=float(NOW))

    document = describe_cluster(replace(known(member(2)), troubles=troubles))

    assert "key-contested" in codes(document)
    assert document["cluster"]["state"] == "degraded"
