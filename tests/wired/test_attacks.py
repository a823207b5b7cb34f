"""What thieves, liars and strangers send to real nodes over loopback, and what comes of it."""

import random
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import trio

from cluster.assembly import chain_of
from cluster.binding import BindError, open_both_sockets
from cluster.enrolment import InviteWish, issue_invite, join, open_invite
from cluster.gossip.effects import Equivocated, MemberChanged, Status
from cluster.gossip.envelope import Reason
from cluster.gossip.messages import Address, Kind, OperatorNews, Ping, Version
from cluster.gossip.settings import GossipSettings
from cluster.host import Host
from cluster.identity.operator_records import NodeRevoked, SignedRecord
from cluster.identity.refusals import Refused
from cluster.ids import NodeName, RackId
from cluster.keeping import OPERATOR_LOG
from cluster.papers import encode_paper
from tests.hosts import Cluster, Machine, sees, unix_seconds, until
from tests.thieves import Thief, in_the_name_of, rejected, until_rejected

MAX = Version(epoch=2**64 - 1, sequence=2**64 - 1)
NOBODY_GONE = (Status.FAILED, Status.LEFT, Status.REMOVED)


@dataclass
class Ring:
    """Nodes that see each other; the last one is the thief's, if there is one."""

    cluster: Cluster
    machines: list[Machine]
    hosts: list[Host]

    def version_of(self, seen_by: int, subject: int) -> Version:
        found = self.hosts[seen_by].view().gossip.get(self.hosts[subject].keys.identity.node_id)
        assert found is not None
        return found.version

    def given_up(self, *but: int) -> list[str]:
        """Who was ever taken for gone by the honest."""
        aside = {self.hosts[one].keys.identity.node_id for one in but}
        return [
            f"{machine.folder.name}: {effect.node_id.short} {effect.reason}"
            for number, machine in enumerate(self.machines)
            for effect in machine.heard
            if number not in but
            and isinstance(effect, MemberChanged)
            and effect.after in NOBODY_GONE
            and effect.node_id not in aside
        ]


@asynccontextmanager
async def ring(folder: Path, count: int, *, last_rack: str = "r01") -> AsyncIterator[Ring]:
    cluster = Cluster(folder)
    async with AsyncExitStack() as stack:
        made = Ring(cluster, [], [])
        for number in range(count):
            seeds = tuple(host.address for host in made.hosts[:1])
            rack = last_rack if number == count - 1 else "r01"
            machine = cluster.enrol(f"n{number}", rack=rack, seeds=seeds, may_found=not seeds)
            made.machines.append(machine)
            made.hosts.append(await stack.enter_async_context(machine.running()))
        names = {host.keys.identity.name for host in made.hosts}
        await until(
            lambda: all(
                sees(one) == dict.fromkeys(names - {one.keys.identity.name}, "alive")
                for one in made.hosts
            )
        )
        yield made


async def test_what_is_said_in_the_name_of_another_is_not_believed(tmp_path: Path) -> None:
    async with ring(tmp_path, 4) as nodes:
        target, victim = nodes.hosts[0], nodes.hosts[1]
        victim_id = victim.keys.identity.node_id
        before = nodes.version_of(0, 1)
        with Thief(nodes.machines[3].keys) as thief:
            ping = Ping(nonce=1, target=target.keys.identity.node_id, view_digest=0)
            record = thief.member_record(MAX, of=victim.keys)
            left = in_the_name_of(thief.statement(Kind.LEFT, MAX, ()), victim_id)

            thief.send(thief.datagram(ping, version=MAX, sender=victim_id), target)
            thief.send(thief.datagram(record, sender=victim_id), target)
            thief.send(thief.datagram(left), target)
            await until_rejected(nodes.machines[0], Reason.SIGNATURE, 3)

        seen = target.view().gossip.get(victim_id)
        assert seen is not None
        assert (seen.version, seen.address, seen.status) == (before, victim.address, Status.ALIVE)
        assert nodes.given_up() == []


async def test_nobody_but_a_node_raises_its_version(tmp_path: Path) -> None:
    async with ring(tmp_path, 4) as nodes:
        victim = nodes.hosts[1]
        before = victim.view().gossip.version
        with Thief(nodes.machines[3].keys) as thief:
            for number, kind in enumerate((Kind.SUSPECT, Kind.FAILED)):
                lie = thief.claim(kind, victim, MAX, 10_000 + number)
                thief.send(thief.datagram(lie), *nodes.hosts[:3])
            await trio.sleep(1.0)

        assert victim.view().gossip.version == before
        assert sees(nodes.hosts[0])["n1"] == "alive"


async def test_a_repeated_datagram_costs_no_second_signature(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        nodes = await stack.enter_async_context(ring(tmp_path, 1))
        target = nodes.hosts[0]
        machine = nodes.cluster.enrol("n9", seeds=(target.address,))
        async with machine.running():
            await until(lambda: sees(target) == {"n9": "alive"})
        with Thief(machine.keys) as thief:
            ping = Ping(nonce=1, target=target.keys.identity.node_id, view_digest=0)
            once = thief.datagram(ping, version=Version(epoch=1, sequence=50_000))
            thief.send(once, target)
            await trio.sleep(0.3)
            checks = target.view().gossip.checks_total

            for _ in range(20):
                thief.send(once, target)
            await until_rejected(nodes.machines[0], Reason.REPLAYED, 20)

        assert target.view().gossip.checks_total == checks


def is_in_life(observer: Host, subject: Machine, epoch: int) -> bool:
    seen = observer.view().gossip.get(subject.keys.identity.node_id)
    return seen is not None and seen.is_here and seen.version.epoch == epoch


async def test_a_node_that_restarts_is_not_fed_the_past(tmp_path: Path) -> None:
    quick = GossipSettings(persist_interval_seconds=0.2)
    cluster = Cluster(tmp_path)
    first = cluster.enrol("n0", may_found=True)
    async with first.running(gossip=quick) as observer:
        second = cluster.enrol("n1", seeds=(observer.address,))
        for life in (1, 2):
            async with second.running():
                await until(partial(is_in_life, observer, second, life))
        await trio.sleep(0.6)

    first.heard.clear()
    async with first.running(gossip=quick) as observer:
        with Thief(second.keys) as thief:
            old = thief.member_record(Version(epoch=1, sequence=1))
            thief.send(thief.datagram(old), observer)
            ping = Ping(nonce=7, target=observer.keys.identity.node_id, view_digest=0)
            thief.send(thief.datagram(ping, version=Version(epoch=1, sequence=9)), observer)
            await until_rejected(first, Reason.REPLAYED, 2)

        assert sees(observer) == {}


async def test_another_cluster_at_an_address_that_was_ours_stays_another(tmp_path: Path) -> None:
    ours, theirs = Cluster(tmp_path / "ours"), Cluster(tmp_path / "theirs")
    founder = ours.enrol("n0", may_found=True)
    stranger = theirs.enrol("x0", may_found=True)

    async def live(*, task_status: trio.TaskStatus[tuple[Host, trio.CancelScope]]) -> None:
        with trio.CancelScope() as scope:
            async with founder.running() as host:
                task_status.started((host, scope))
                await trio.sleep_forever()

    async with trio.open_nursery() as lives:
        gone, scope = await lives.start(live)
        second = ours.enrol("n1", seeds=(gone.address,))
        async with second.running() as stays:
            await until(lambda: sees(stays) == {"n0": "alive"})
            scope.cancel()
            port = int(gone.address.rpartition(":")[2])
            await until(lambda: is_free(port))
            async with stranger.running(port=port) as other:
                await until_rejected(stranger, Reason.CLUSTER, 3)
                await until(lambda: sees(stays) == {"n0": "failed"}, seconds=20.0)

                assert sees(other) == {}
                assert [one.name for one in other.view().identities.values()] == ["x0"]


def is_free(port: int) -> bool:
    try:
        for one in open_both_sockets("127.0.0.1", port):
            one.close()
    except BindError:
        return False
    return True


async def test_a_machine_whose_invite_has_ended_comes_too_late(tmp_path: Path) -> None:
    async with ring(tmp_path, 2) as nodes:
        target = nodes.hosts[0]
        token = issue_invite(
            nodes.cluster.authority,
            InviteWish(rack=RackId("r01"), ttl_seconds=1),
            now_unix_seconds=unix_seconds(),
            random_bytes=secrets.token_bytes,
        )
        keys = join(
            open_invite(token),
            NodeName("late"),
            now_unix_seconds=unix_seconds(),
            random_bytes=secrets.token_bytes,
        )
        await trio.sleep(2.1)

        meeting = target.peer.meet(
            chain_of(keys), None, (), target.now, now_unix_seconds=unix_seconds()
        )
        with Thief(keys) as thief:
            thief.send(thief.datagram(thief.member_record(Version(epoch=1, sequence=1))), target)
            await until_rejected(nodes.machines[0], Reason.UNKNOWN)

        assert isinstance(meeting.refused, Refused)
        assert "ended" in meeting.refused.line
        assert "late" not in sees(target)


async def test_a_revoked_key_is_worth_nothing_from_then_on(tmp_path: Path) -> None:
    async with ring(tmp_path, 4) as nodes:
        target, bad = nodes.hosts[0], nodes.hosts[3].keys.identity
        for record in (
            nodes.cluster.introduce_operator(),
            nodes.cluster.say(NodeRevoked(node_id=bad.node_id, note="stolen")),
        ):
            assert target.hear_operator(record) is None
        await until(lambda: all(sees(one)["n3"] == "removed" for one in nodes.hosts[:3]))
        with Thief(nodes.machines[3].keys) as thief:
            checks = target.view().gossip.checks_total
            for number in range(5):
                version = Version(epoch=9, sequence=1 + number)
                record_of_itself = thief.member_record(version)
                thief.send(thief.datagram(record_of_itself, version=version), target)
                thief.send(thief.datagram(record_of_itself, sender=bad.node_id), target)
            await until_rejected(nodes.machines[0], Reason.EXCLUDED, 10)

            assert target.view().gossip.checks_total - checks < 10
        assert {sees(one)["n3"] for one in nodes.hosts[:3]} == {"removed"}


async def test_a_certificate_for_another_rack_is_good_for_that_rack_only(tmp_path: Path) -> None:
    async with ring(tmp_path, 3, last_rack="r02") as nodes:
        target, mover = nodes.hosts[0], nodes.hosts[2]
        with Thief(nodes.machines[2].keys) as thief:
            version = Version(epoch=5, sequence=1)
            thief.send(thief.datagram(thief.member_record(version, rack="r01")), target)
            thief.send(thief.datagram(thief.statement(Kind.STATE, version, (b"0 W",))), target)
            thief.send(
                thief.datagram(thief.statement(Kind.SUMMARY, version, ("r01", b"x"))), target
            )
            await until_rejected(nodes.machines[0], Reason.CONTRADICTS_CERTIFICATE, 3)

        seen = target.view().gossip.get(mover.keys.identity.node_id)
        assert seen is not None
        assert (seen.rack, seen.state) == ("r02", None)
        assert seen.version.epoch == 1


async def test_one_that_accuses_everybody_makes_nobody_fail(tmp_path: Path) -> None:
    async with ring(tmp_path, 6) as nodes:
        honest = nodes.hosts[:5]
        with Thief(nodes.machines[5].keys) as thief:
            for turn in range(14):  # longer than doubt lasts that three confirm
                for number, victim in enumerate(honest):
                    current = victim.view().gossip.version
                    kind = Kind.FAILED if turn % 2 else Kind.SUSPECT
                    lie = thief.claim(kind, victim, current, 10_000 + 10 * turn + number)
                    thief.send(thief.datagram(lie), *honest)
                await trio.sleep(0.5)

        assert nodes.given_up(5) == []
        here = {"alive", "degraded", "suspect"}
        assert all(set(sees(one).values()) <= here for one in honest)


async def test_two_contents_under_one_number_are_told_to_everybody(tmp_path: Path) -> None:
    async with ring(tmp_path, 4) as nodes:
        with Thief(nodes.machines[3].keys) as thief:
            version = Version(epoch=1, sequence=500)
            for number, host in enumerate(nodes.hosts[:2]):
                place = (Address(f"127.0.0.1:{number + 1}"),)
                lie = thief.member_record(version, addresses=place)
                thief.send(thief.datagram(lie), host)

            await until(
                lambda: all(
                    any(isinstance(effect, Equivocated) for effect in machine.heard)
                    for machine in nodes.machines[:3]
                )
            )

        proofs = [
            effect.proof
            for machine in nodes.machines[:3]
            for effect in machine.heard
            if isinstance(effect, Equivocated)
        ]
        assert {len(proof) for proof in proofs} == {2}
        assert nodes.given_up(3) == []


async def test_a_flood_of_junk_costs_few_signatures_and_nobody_is_lost(tmp_path: Path) -> None:
    async with ring(tmp_path, 4) as nodes:
        target, other = nodes.hosts[0], nodes.hosts[1]
        chance = random.Random(5)
        with Thief(nodes.machines[3].keys) as thief:
            began = target.now
            for number in range(4000):
                version = Version(epoch=9, sequence=number + 1)
                junk = thief.datagram(version=version, sender=other.keys.identity.node_id)
                thief.send(junk[:-64] + chance.randbytes(64), target)
                if number % 20 == 0:
                    await trio.sleep(0.01)
            await until_rejected(nodes.machines[0], Reason.BUDGET, 1000)
            seconds = target.now - began

        assert rejected(nodes.machines[0], Reason.SIGNATURE) <= 20 + 20 * seconds
        await trio.sleep(2.0)
        assert nodes.given_up() == []
        assert sees(target) == {"n1": "alive", "n2": "alive", "n3": "alive"}


async def test_false_operators_records_leave_nothing_on_disk_and_are_judged_in_turns(
    tmp_path: Path,
) -> None:
    async with ring(tmp_path, 3) as nodes:
        target, machine = nodes.hosts[0], nodes.machines[0]
        real = nodes.cluster.introduce_operator()
        assert target.hear_operator(real) is None
        log = machine.folder / OPERATOR_LOG
        await until(lambda: log.exists() and log.stat().st_size > 0)
        size, chance = log.stat().st_size, random.Random(5)
        with Thief(nodes.machines[2].keys) as thief:
            began = target.now
            for number in range(1500):
                false = SignedRecord(
                    record=real.record, payload=real.payload, signature=chance.randbytes(64)
                )
                thief.send(thief.datagram(OperatorNews(record=encode_paper(false))), target)
                if number % 20 == 0:
                    await trio.sleep(0.01)
            await until_rejected(machine, Reason.BUDGET, 1000)
            judged = 1500 - rejected(machine, Reason.BUDGET)
            seconds = target.now - began

        assert judged <= 64 + 20 * seconds + 64
        assert log.stat().st_size == size
        assert target.view().operator_records_count == 1
        assert nodes.given_up() == []
