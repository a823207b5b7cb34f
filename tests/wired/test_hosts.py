"""Several nodes of one cluster in this process, over real sockets and streams."""

import time
from contextlib import AsyncExitStack
from pathlib import Path

from cluster.durable import DurableFailed, EpochFile
from cluster.gossip.messages import Address
from cluster.gossip.settings import GossipSettings
from cluster.host import Host
from cluster.identity.operator_records import NodeRevoked, Other
from tests.hosts import Cluster, Machine, sees, until


async def test_nodes_that_were_invited_see_each_other(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    first = cluster.enrol("n1", may_found=True)
    async with AsyncExitStack() as stack:
        founder = await stack.enter_async_context(first.running())
        hosts = [founder]
        for number in range(2, 7):
            machine = cluster.enrol(f"n{number}", seeds=(founder.address,))
            hosts.append(await stack.enter_async_context(machine.running()))

        names = {f"n{number}" for number in range(1, 7)}

        def is_complete() -> bool:
            return all(
                sees(host) == dict.fromkeys(names - {host.keys.identity.name}, "alive")
                for host in hosts
            )

        await until(is_complete)
        assert len({host.view().gossip.digest for host in hosts}) == 1


async def test_a_node_that_restarts_is_the_same_node_and_its_peers_know_it(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    first, second = cluster.enrol("n1", may_found=True), cluster.enrol("n2")
    async with first.running() as founder:
        second.seek(founder.address)
        async with second.running() as mate:
            await until(lambda: sees(founder) == {"n2": "alive"})
            epoch = mate.view().gossip.version.epoch

        async with second.running() as again:
            await until(lambda: sees(again) == {"n1": "alive"})
            await until(lambda: sees(founder) == {"n2": "alive"})
            await until(
                lambda: (
                    founder.view().gossip.members[0].version.epoch
                    == again.view().gossip.version.epoch
                )
            )
            assert again.view().gossip.version.epoch > epoch
            assert again.address != mate.address


async def test_who_leaves_is_left_and_comes_back_as_itself(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    first, second = cluster.enrol("n1", may_found=True), cluster.enrol("n2")
    async with first.running() as founder:
        second.seek(founder.address)
        async with second.running() as mate:
            await until(lambda: sees(founder) == {"n2": "alive"})
            await until(lambda: sees(mate) == {"n1": "alive"})  # else it has nobody to tell

            informed = await mate.leave()

            assert informed == 1
            await until(lambda: sees(founder) == {"n2": "left"})
        async with second.running():
            await until(lambda: sees(founder) == {"n2": "alive"})


def remembers(machine: Machine, address: Address) -> bool:
    heads = machine.folder / "heads"
    return heads.exists() and address.encode() in heads.read_bytes()


async def test_a_cluster_without_its_seed_finds_together_by_what_it_remembers(
    tmp_path: Path,
) -> None:
    cluster = Cluster(tmp_path)
    first = cluster.enrol("n1", may_found=True)
    others = [cluster.enrol(name) for name in ("n2", "n3")]
    async with first.running() as founder:
        for machine in others:
            machine.seek(founder.address)
        often = GossipSettings(persist_interval_seconds=0.2)
        async with (
            others[0].running(gossip=often) as second,
            others[1].running(gossip=often) as third,
        ):
            await until(lambda: sees(second) == {"n1": "alive", "n3": "alive"})
            await until(lambda: sees(third) == {"n1": "alive", "n2": "alive"})
            places = second.address, third.address
            await until(lambda: remembers(others[0], places[1]))
            await until(lambda: remembers(others[1], places[0]))

    ports = [int(place.rpartition(":")[2]) for place in places]
    async with (
        others[0].running(port=ports[0]) as second,
        others[1].running(port=ports[1]) as third,
    ):
        await until(lambda: sees(second).get("n3") == "alive" == sees(third).get("n2"))


async def test_who_was_never_invited_is_nobody(tmp_path: Path) -> None:
    ours, theirs = Cluster(tmp_path / "ours"), Cluster(tmp_path / "theirs")
    first = ours.enrol("n1", may_found=True)
    stranger = theirs.enrol("n2", may_found=True)
    async with first.running() as founder:
        stranger.seek(founder.address)
        async with stranger.running() as lost:
            await until(lambda: lost.last_failure is not None)

            assert sees(founder) == {}
            assert sees(lost) == {}


async def test_an_operator_s_word_reaches_everybody_and_the_one_it_is_about(
    tmp_path: Path,
) -> None:
    cluster = Cluster(tmp_path)
    first = cluster.enrol("n1", may_found=True)
    machines = [cluster.enrol(name) for name in ("n2", "n3", "n4")]
    async with AsyncExitStack() as stack:
        founder = await stack.enter_async_context(first.running())
        hosts = []
        for machine in machines:
            machine.seek(founder.address)
            hosts.append(await stack.enter_async_context(machine.running()))
        await until(lambda: all(len(sees(one)) == 3 for one in (founder, *hosts)))
        victim = hosts[0]
        before = time.monotonic()  # noqa: TID251  # tests are an edge

        assert founder.hear_operator(cluster.introduce_operator()) is None
        revoked = NodeRevoked(node_id=victim.keys.identity.node_id, note="stolen")
        assert founder.hear_operator(cluster.say(revoked)) is None

        others = (founder, *hosts[1:])
        await until(lambda: all(sees(one).get("n2") == "removed" for one in others))
        await until(lambda: victim.withdrawn is not None)
        assert time.monotonic() - before < 2.0  # noqa: TID251
        assert "revoked" in str(victim.withdrawn)


async def test_a_record_that_fits_no_datagram_reaches_everybody_by_stream(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    first = cluster.enrol("n1", may_found=True)
    async with AsyncExitStack() as stack:
        founder = await stack.enter_async_context(first.running())
        hosts = []
        for number in range(2, 6):
            machine = cluster.enrol(f"n{number}")
            machine.seek(founder.address)
            hosts.append(await stack.enter_async_context(machine.running()))
        await until(lambda: all(len(sees(one)) == 4 for one in (founder, *hosts)))

        founder.hear_operator(cluster.introduce_operator())
        founder.hear_operator(cluster.say(Other(kind="rack-budget", body=b"w" * 8000)))

        await until(
            lambda: all(one.view().operator_records_count == 2 for one in hosts), seconds=15
        )


async def test_a_disk_that_refuses_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    first, second = cluster.enrol("n1", may_found=True), cluster.enrol("n2")
    (first.folder / "roster.log").mkdir()  # nothing can be appended to a folder
    lines: list[str] = []
    try:
        async with first.running():
            pass
    except* DurableFailed as failed:
        lines = [str(error) for error in failed.exceptions]
    assert lines
    assert "roster.log" in lines[0]

    (first.folder / "roster.log").rmdir()
    async with first.running() as founder:
        second.seek(founder.address)
        async with second.running():
            await until(lambda: sees(founder) == {"n2": "alive"})


def epoch_at(host: Host) -> int:
    """The latest life that a node knows of the only other one."""
    return max((one.version.epoch for one in host.view().gossip.members), default=0)


async def test_a_node_whose_epoch_is_lost_goes_on_above_what_its_peers_remember(
    tmp_path: Path,
) -> None:
    cluster = Cluster(tmp_path)
    first, second = cluster.enrol("n1", may_found=True), cluster.enrol("n2")
    async with first.running() as founder:
        second.seek(founder.address)
        for _ in range(3):
            async with second.running() as mate:
                await until(lambda: epoch_at(founder) == mate.view().gossip.version.epoch)
                await until(lambda: sees(mate) == {"n1": "alive"})
        for name in ("epoch", "heads"):
            (second.folder / name).unlink(missing_ok=True)

        async with second.running() as mate:
            await until(lambda: mate.view().gossip.version.epoch > 3)
            # So many lives in a row also look like flapping.
            await until(lambda: sees(founder)["n2"] in ("alive", "degraded"))
            # The disk is written beside; until then nothing is sent.
            await until(lambda: EpochFile(second.folder / "epoch").read() > 3)
