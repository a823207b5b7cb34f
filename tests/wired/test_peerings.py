"""The cluster's part of an agent: joining, leaving, being renewed and withdrawn while it runs."""

import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.lowlevel

from cluster.enrolment import InviteWish, issue_invite
from cluster.entry import has_left
from cluster.errors import PeerFault
from cluster.identity.operator_records import NodeRevoked
from cluster.identity.tokens import print_token
from cluster.ids import RackId
from cluster.rack.model import NodeState
from esnode.cluster_view import ClusterView
from esnode.config import Config
from esnode.config.values import Address
from esnode.peering import NotInCluster, Peering
from tests.hosts import Cluster, unix_seconds, until

STATE = NodeState(agent_version="0.2.0", power_draw_watts=500.0, power_draw_age_seconds=0.0)


def token_of(
    cluster: Cluster, *seeds: str, rack: str = "r01", may_found: bool = False, **wish: bool
) -> str:
    asked = InviteWish(
        rack=RackId(rack),
        ttl_seconds=3600,
        may_found=may_found,
        uses=1 if may_found else None,
        **wish,  # type: ignore[arg-type]  # truths
    )
    token = issue_invite(
        cluster.authority,
        asked,
        seeds=seeds,
        now_unix_seconds=unix_seconds(),
        random_bytes=secrets.token_bytes,
    )
    return print_token(token)


@asynccontextmanager
async def agent(folder: Path, *, port: int = 0) -> AsyncIterator[Peering]:
    os.makedirs(folder, exist_ok=True)
    config = replace(Config(), cluster_bind=Address("127.0.0.1", port))
    peering = Peering(state_folder=folder, config=config, agent_version="0.2.0")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peering.run)
        nursery.start_soon(tell_for_ever, peering)
        await trio.lowlevel.checkpoint()
        yield peering
        nursery.cancel_scope.cancel()


async def tell_for_ever(peering: Peering) -> None:
    while True:
        peering.publish(STATE)
        await trio.sleep(0.2)


async def test_an_agent_joins_while_it_runs_and_answers_for_the_whole(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "operator")
    async with agent(tmp_path / "a") as first, agent(tmp_path / "b") as second:
        with pytest.raises(NotInCluster, match="in no cluster"):
            await ClusterView(first).document()

        _, is_in = await first.join(token_of(cluster, may_found=True), "n1")
        assert is_in
        seed = first.running().address
        _, is_in = await second.join(token_of(cluster, seed, rack="r02"), "n2")
        assert is_in
        await until(lambda: len(first.running().view().gossip.members) == 1)
        await until(lambda: len(second.running().view().gossip.members) == 1)

        for peering in (first, second):
            view = ClusterView(peering)
            with trio.fail_after(10):
                while True:
                    document = await view.document(is_everybody_asked=True)
                    values = [node["power"]["draw_watts"]["value"] for node in document["nodes"]]
                    if values == [500.0, 500.0]:
                        break
                    await trio.sleep(0.1)
            assert document["cluster"]["view"]["agreeing"] == 2
            assert [rack["id"] for rack in document["racks"]] == ["r01", "r02"]
            sources = {rack["id"]: rack["source"] for rack in document["racks"]}
            assert sorted(sources.values()) == ["detail", "gossip"]


async def test_an_agent_leaves_stays_away_and_comes_back(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "operator")
    async with agent(tmp_path / "a") as first, agent(tmp_path / "b") as second:
        await first.join(token_of(cluster, may_found=True), "n1")
        keys, _ = await second.join(token_of(cluster, first.running().address), "n2")

        assert await second.leave() == 1

        await until(lambda: "left" in second.trouble)
        with pytest.raises(NotInCluster, match="join"):
            second.running()
        again, is_in = await second.rejoin()
        assert is_in
        assert again.identity == keys.identity
    async with agent(tmp_path / "b") as second:
        await until(lambda: second.host is not None)


async def test_a_renewal_keeps_the_key_and_everybody_has_the_new_certificate(
    tmp_path: Path,
) -> None:
    cluster = Cluster(tmp_path / "operator")
    async with agent(tmp_path / "a") as first, agent(tmp_path / "b") as second:
        await first.join(token_of(cluster, may_found=True), "n1")
        keys, _ = await second.join(token_of(cluster, first.running().address), "n2")

        await trio.sleep(1.1)  # certificates are dated to the second
        renewed, is_in = await second.renew(token_of(cluster, first.running().address))

        assert is_in
        assert renewed.identity.node_id == keys.identity.node_id
        assert renewed.identity.serial != keys.identity.serial
        node_id = keys.identity.node_id

        def serial_at_first() -> int | None:
            held = first.running().peer.roster.identity_of(node_id)
            return None if held is None else held.serial

        await until(lambda: serial_at_first() == renewed.identity.serial)


async def test_a_withdrawn_agent_says_so_and_comes_back_only_under_a_new_key(
    tmp_path: Path,
) -> None:
    cluster = Cluster(tmp_path / "operator")
    async with agent(tmp_path / "a") as first, agent(tmp_path / "b") as second:
        await first.join(token_of(cluster, may_found=True), "n1")
        keys, _ = await second.join(token_of(cluster, first.running().address), "n2")
        record = cluster.introduce_operator()
        await first.hear_operator(record.payload, record.signature)
        record = cluster.say(NodeRevoked(node_id=keys.identity.node_id))
        await first.hear_operator(record.payload, record.signature)

        await until(lambda: second.trouble_code == "withdrawn")

        again, is_in = await second.join(token_of(cluster, first.running().address), "n2")
        assert is_in
        assert again.identity.node_id != keys.identity.node_id
        assert any(name.startswith("identity.withdrawn-") for name in os.listdir(tmp_path / "b"))


async def test_a_port_in_use_is_told_and_taken_once_it_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("esnode.peering.RETRY_SECONDS", 0.2)
    cluster = Cluster(tmp_path / "operator")
    taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taken.bind(("127.0.0.1", 0))
    async with agent(tmp_path / "a", port=taken.getsockname()[1]) as peering:
        _, is_in = await peering.join(token_of(cluster, may_found=True), "n1")
        assert not is_in
        assert "in use" in peering.trouble
        assert peering.trouble_code == "cluster-unavailable"

        taken.close()

        await until(lambda: peering.host is not None)


async def test_what_is_not_a_token_or_not_for_us_changes_nothing(tmp_path: Path) -> None:
    ours, theirs = Cluster(tmp_path / "ours"), Cluster(tmp_path / "theirs")
    async with agent(tmp_path / "a") as peering:
        with pytest.raises(PeerFault, match="token"):
            await peering.join("esnode-invite-1.junk", "n1")
        with pytest.raises(PeerFault, match="name"):
            await peering.join(token_of(ours, may_found=True), "Not A Name")
        assert not (tmp_path / "a" / "identity").exists()
        await peering.join(token_of(ours, may_found=True), "n1")
        with pytest.raises(PeerFault, match="already"):
            await peering.join(token_of(theirs, may_found=True), "n1")
        with pytest.raises(PeerFault, match="cluster"):
            await peering.renew(token_of(theirs))
        with pytest.raises(PeerFault, match="already"):
            await peering.rejoin()
        forged = theirs.introduce_operator()
        with pytest.raises(PeerFault):
            await peering.hear_operator(forged.payload, forged.signature)
        assert peering.running().keys.identity.name == "n1"


async def test_a_broken_identity_is_told_and_the_agent_goes_on(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "operator")
    async with agent(tmp_path / "a") as peering:
        await peering.join(token_of(cluster, may_found=True), "n1")
    (tmp_path / "a" / "identity" / "node.crt").write_bytes(b"torn")

    async with agent(tmp_path / "a") as peering:
        await until(lambda: peering.trouble_code == "cluster-unavailable")
        assert "node.crt" in peering.trouble
        with pytest.raises(NotInCluster):
            peering.running()


async def test_a_node_that_waits_for_approval_is_shown_where_it_knocks(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "operator")
    async with agent(tmp_path / "a") as first, agent(tmp_path / "b") as second:
        await first.join(token_of(cluster, may_found=True), "n1")

        token = token_of(cluster, first.running().address, needs_approval=True)
        keys, is_in = await second.join(token, "n2")

        assert not is_in
        document = await ClusterView(first).document()
        assert [one["id"] for one in document["waiting"]] == [keys.identity.node_id.hex()]
        assert [one["code"] for one in document["warnings"]] == ["awaits-approval"]


async def test_a_disk_that_refuses_is_told_and_the_agent_goes_on(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "operator")
    blocked = tmp_path / "a" / "roster.log"
    blocked.mkdir(parents=True)  # nothing can be read from a folder
    async with agent(tmp_path / "a") as first:
        _, is_in = await first.join(token_of(cluster, may_found=True), "n1")

        assert not is_in
        assert first.trouble_code == "cluster-unavailable"
        assert "roster.log" in first.trouble


async def test_a_member_that_asks_before_or_after_our_time_is_refused_in_one_line(
    tmp_path: Path,
) -> None:
    cluster = Cluster(tmp_path / "operator")
    keys = cluster.enrol("n1", may_found=True).keys
    peering = Peering(state_folder=tmp_path, config=Config(), agent_version="0.2.0")

    for answer in (peering.answer_rack, peering.answer_view):
        with pytest.raises(PeerFault, match="in no cluster"):
            await answer(keys.identity, b"")


async def test_a_renewal_that_no_member_accepts_is_not_told_as_done(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "operator")
    async with agent(tmp_path / "a") as first, agent(tmp_path / "b") as second:
        await first.join(token_of(cluster, may_found=True), "n1")
        await second.join(token_of(cluster, first.running().address), "n2")

        _, is_in = await second.renew(
            token_of(cluster, first.running().address, needs_approval=True)
        )

        assert not is_in


async def test_whoever_orders_leave_and_goes_away_has_it_done_and_told(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "operator")
    async with agent(tmp_path / "a") as first, agent(tmp_path / "b") as second:
        await first.join(token_of(cluster, may_found=True), "n1")
        await second.join(token_of(cluster, first.running().address), "n2")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(second.leave)
            while not has_left(tmp_path / "b" / "identity"):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

        await until(lambda: "has left" in second.trouble)
        assert second.trouble_code == "no-cluster"
