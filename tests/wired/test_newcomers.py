"""Newcomers that come together are let in at once and answered together."""

from pathlib import Path

import trio

from cluster.assembly import chain_of
from cluster.gossip.messages import Address
from cluster.host import PAPERS, Host
from cluster.identity.files import node_folder
from cluster.identity.operator_records import NodeRevoked, SignedRecord
from cluster.papers import Chain, Paper, PapersRequest, decode_papers, encode_request
from cluster.stream import StreamClient
from cluster.stream_frames import Hello
from cluster.tls import client_context
from tests.hosts import Cluster, Machine, boottime_seconds, until


def slowly() -> float:
    """Whoever is waited for has ten times as long, also on a machine that is busy."""
    return boottime_seconds() / 10


async def ask_for_all(machine: Machine, address: Address) -> tuple[Paper, ...]:
    """As a newcomer that has nothing but its own certificates."""
    chain = chain_of(machine.keys)

    def introduce(seen: Address) -> Hello:
        return Hello(
            certificate=chain.node_der,
            issuer_certificate=chain.issuer_der,
            advertised=Address(""),
            seen=seen,
        )

    context = client_context(node_folder(machine.folder), machine.keys.authority)
    client = StreamClient(context=context, introduce=introduce)
    answer = await client.ask(address, PAPERS, encode_request(PapersRequest()))
    return decode_papers(answer.parts)


def is_in(host: Host, machine: Machine) -> bool:
    return host.peer.roster.identity_of(machine.keys.identity.node_id) is not None


async def test_each_of_a_crowd_learns_of_the_others_in_its_first_answer(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    first = cluster.enrol("n1", may_found=True)
    alone, *crowd = (cluster.enrol(name) for name in ("n2", "n3", "n4", "n5"))
    answers: dict[str, set[Chain]] = {}

    async def ask(machine: Machine, founder: Host) -> None:
        papers = await ask_for_all(machine, founder.address)
        answers[machine.keys.identity.name] = {one for one in papers if isinstance(one, Chain)}

    async with first.running(clock=slowly) as founder:
        await ask(alone, founder)
        async with trio.open_nursery() as nursery:
            for machine in crowd:
                nursery.start_soon(ask, machine, founder)

    everybody = {chain_of(machine.keys) for machine in (first, alone, *crowd)}
    assert answers["n2"] == {chain_of(machine.keys) for machine in (first, alone)}
    assert answers["n3"] == answers["n4"] == answers["n5"] == everybody


async def test_who_is_withdrawn_while_its_answer_waits_is_told_that_alone(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    first = cluster.enrol("n1", may_found=True)
    alone, victim = cluster.enrol("n2"), cluster.enrol("n3")
    answers: list[Paper] = []

    async def ask(founder: Host) -> None:
        answers.extend(await ask_for_all(victim, founder.address))

    async with first.running(clock=slowly) as founder:
        await ask_for_all(alone, founder.address)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, founder)
            await until(lambda: is_in(founder, victim))
            introduced = cluster.introduce_operator()
            revoked = cluster.say(NodeRevoked(node_id=victim.keys.identity.node_id))
            assert founder.hear_operator(introduced) is None
            assert founder.hear_operator(revoked) is None
            assert not answers

    assert all(isinstance(one, SignedRecord) for one in answers)
    assert set(answers) == {introduced, revoked}
