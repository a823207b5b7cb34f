"""Looking at the whole cluster by asking others, who may be slow, silent or lie."""

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
import trio
import trio.testing

from cluster.conversation import StreamFailed
from cluster.gossip.messages import Address
from cluster.gossip.view import GossipView, MemberView
from cluster.ids import NodeName, RackId
from cluster.rack.report import NodeReport, encode_report
from cluster.rack.wire import encode_node_state
from esnode.cluster_stats import state_ages
from esnode.cluster_view import DETAIL_SECONDS, ClusterView
from esnode.peering import Peering
from tests.unit.test_cluster_document import OWN, R01, R02, STATE, known, member, node_id

if TYPE_CHECKING:
    from cluster.host import Host

R03 = RackId("r03")


class AskedHost:
    """A host whose members answer what a test says."""

    def __init__(self, *members: MemberView, answers: dict[str, list[bytes] | None]) -> None:
        self.seen = known(*members)
        self.answers = answers
        self.asked: list[str] = []
        self.keys = SimpleNamespace(identity=OWN, authority=SimpleNamespace(name="lab"))
        self.address, self.disk_trouble, self.last_failure = "10.0.0.1:7947", None, None
        self.peer = SimpleNamespace(roster=SimpleNamespace(log=SimpleNamespace(records=())))

    @property
    def now(self) -> float:
        return trio.current_time()

    def view(self) -> object:
        return self.seen.view

    def observed_elsewhere(self) -> None:
        return None

    async def ask(self, address: Address, kind: str) -> list[bytes]:
        self.asked.append(address)
        answer = self.answers.get(address)
        if answer is None:
            await trio.sleep(60)
            raise StreamFailed("nobody")
        return answer

    @property
    def peering(self) -> Peering:
        host = cast("Host", self)
        return cast(
            "Peering",
            SimpleNamespace(running=lambda: host, own_state=STATE, budget_watts=None),
        )


def report(number: int, watts: float) -> bytes:
    state = encode_node_state(replace(STATE, power_draw_watts=watts))
    told = NodeReport(node_id=node_id(number), status="alive", state=state, state_age_seconds=0.5)
    return encode_report(told)


async def draws(view: ClusterView) -> dict[str, float | None]:
    document = await view.document()
    return {one["name"]: one["power"]["draw_watts"]["value"] for one in document["nodes"]}


async def test_a_member_has_no_say_about_the_nodes_of_other_racks() -> None:
    lies = [report(2, 700.0), report(3, 1.0), report(4, 1.0)]
    host = AskedHost(
        member(2, rack=R02),
        member(3, rack=R03),
        member(4),
        answers={"10.0.0.2:7947": lies, "10.0.0.3:7947": []},
    )

    seen = await draws(ClusterView(host.peering))

    assert seen == {"n1": 800.0, "n2": 700.0, "n3": None, "n4": None}


async def test_a_rack_that_does_not_answer_is_waited_for_once_whoever_looks(
    autojump_clock: trio.testing.MockClock,
) -> None:
    host = AskedHost(member(2, rack=R02), answers={})
    view = ClusterView(host.peering)
    began = trio.current_time()

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(view.document)

    assert trio.current_time() - began == pytest.approx(DETAIL_SECONDS)
    assert len(host.asked) == 1


async def test_an_answer_without_end_is_read_as_far_as_members_are_known() -> None:
    host = AskedHost(
        member(2, rack=R02), answers={"10.0.0.2:7947": [report(9, 1.0)] * 50 + [report(2, 5.0)]}
    )

    seen = await draws(ClusterView(host.peering))

    assert seen == {"n1": 800.0, "n2": None}


async def test_the_power_of_a_rack_is_its_own_nodes_word() -> None:
    host = AskedHost(
        member(2, rack=R02), member(3, rack=R03), answers={"10.0.0.2:7947": [report(2, 700.0)]}
    )
    view = ClusterView(host.peering)

    described = [await view.power_document(rack) for rack in ("r01", "r02", "r09")]

    assert [one and one["is_answered"] for one in described] == [True, True, None]
    assert [one and one["is_governed"] for one in described] == [False, False, None]


def test_a_reimaged_rack_mate_is_one_series() -> None:
    old = replace(member(2), state_age_seconds=900.0)
    new = replace(member(3), name=NodeName("n2"), state_age_seconds=0.5)
    gossip: GossipView = known(old, new, member(4), member(5, rack=R02)).view.gossip

    assert state_ages(gossip, R01) == ((("n2",), 0.5), (("n4",), None))
