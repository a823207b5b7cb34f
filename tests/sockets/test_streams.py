"""Streams between two nodes with real certificates: what works."""

from pathlib import Path

import pytest
import trio

from cluster.conversation import StreamFailed, StreamRefused
from cluster.gossip.messages import Address
from cluster.stream import StreamLimits
from tests.identities import Lab
from tests.stream_ends import LAB, QUICK, End, serving
from tests.udp_cores import until, unused_port


@pytest.mark.parametrize(
    "host", [pytest.param("127.0.0.1", id="ipv4"), pytest.param("::1", id="ipv6")]
)
async def test_a_question_is_answered_and_each_knows_who_the_other_is(
    host: str, tmp_path: Path
) -> None:
    one, two = End.make(tmp_path, "gpu-01"), End.make(tmp_path, "gpu-02")

    async with serving(one, host) as served:
        answer = await two.client().ask(served.address, "echo", b"there?")

    assert answer.parts == (b"there?",)
    assert answer.peer.hello.certificate == one.keys.chain[0].der
    assert answer.peer.hello.issuer_certificate == one.keys.chain[1].der
    assert answer.peer.hello.advertised == "gpu-01:7947"
    assert answer.peer.hello.agent_version == "0.2.0"
    assert answer.peer.source == served.address
    (asked,) = served.answering.asked
    peer, kind, body = asked
    assert (kind, body) == ("echo", b"there?")
    assert peer.hello.certificate == two.keys.chain[0].der
    assert peer.hello.seen == served.address
    # Each says where it sees the other, so that both can compare it with what they advertise.
    assert answer.peer.hello.seen == peer.source


async def test_a_caller_speaks_from_the_address_that_it_is_bound_to(tmp_path: Path) -> None:
    end = End.make(tmp_path)

    async with serving(end) as served:
        await end.client(bind_host="127.0.0.9").ask(served.address, "echo")
        await end.client(bind_host="0.0.0.0").ask(served.address, "echo")

    hosts = [peer.source.rpartition(":")[0] for peer, _, _ in served.answering.asked]
    assert hosts == ["127.0.0.9", "127.0.0.1"]


async def test_an_answer_has_as_many_parts_as_it_needs(tmp_path: Path) -> None:
    end = End.make(tmp_path)
    client = end.client()

    async with serving(end) as served:
        answers = [await client.ask(served.address, kind) for kind in ("0", "1", "30")]

    assert [len(answer.parts) for answer in answers] == [0, 1, 30]
    assert served.server.requests_total == {"answered": 3}
    assert served.server.traffic.sent_bytes_total > 31 * 60_000
    assert client.traffic.received_bytes_total == served.server.traffic.sent_bytes_total


async def test_many_small_parts_come_whole_and_in_order(tmp_path: Path) -> None:
    end = End.make(tmp_path)

    async with serving(end) as served:
        answer = await end.client().ask(served.address, "many")

    assert answer.parts == tuple(b"%d" % number for number in range(5000))


async def test_questions_in_a_row_share_one_connection(tmp_path: Path) -> None:
    end = End.make(tmp_path)

    async with serving(end) as served, end.keeping_client() as client:
        for _ in range(5):
            await client.ask(served.address, "echo")

    assert served.server.connections_total == {"met": 1}


async def test_questions_at_once_to_one_address_take_turns(tmp_path: Path) -> None:
    end = End.make(tmp_path)
    answered: list[bytes] = []

    async def ask(number: int) -> None:
        answer = await client.ask(served.address, "echo", bytes([number]))
        answered.extend(answer.parts)

    async with (
        serving(end) as served,
        end.keeping_client() as client,
        trio.open_nursery() as nursery,
    ):
        for number in range(20):
            nursery.start_soon(ask, number)

    assert sorted(answered) == [bytes([number]) for number in range(20)]
    assert served.server.connections_total == {"met": 1}
    assert client.exchanges_total == {"answered": 20}


async def test_a_kept_connection_is_closed_after_a_while(tmp_path: Path) -> None:
    end = End.make(tmp_path)

    limits = StreamLimits(kept_seconds=0.2)

    async with serving(end) as served, end.keeping_client(limits) as client:
        await client.ask(served.address, "echo")
        await until(lambda: served.server.connections_count == 0)
        await client.ask(served.address, "echo")

    assert served.server.connections_total["met"] == 2


async def test_only_so_many_connections_are_kept(tmp_path: Path) -> None:
    end = End.make(tmp_path)
    limits = StreamLimits(kept_max=2)

    async with (
        serving(end) as one,
        serving(end) as two,
        serving(end) as three,
        end.keeping_client(limits) as client,
    ):
        for served in (one, two, three):
            await client.ask(served.address, "echo")
        await until(lambda: one.server.connections_count == 0)

        assert two.server.connections_count == three.server.connections_count == 1


async def test_a_restarted_peer_is_asked_again_over_a_new_connection(tmp_path: Path) -> None:
    end = End.make(tmp_path)
    limits = StreamLimits(idle_seconds=0.3)

    async with serving(end, limits=limits) as served, end.keeping_client() as client:
        await client.ask(served.address, "echo", b"1")
        await until(lambda: served.server.connections_count == 0)
        answer = await client.ask(served.address, "echo", b"2")

    assert answer.parts == (b"2",)
    assert served.server.connections_total["met"] == 2


async def test_a_refusal_is_told_in_the_words_of_the_other_and_ends_nothing(
    tmp_path: Path,
) -> None:
    end = End.make(tmp_path)

    async with serving(end) as served, end.keeping_client() as client:
        with pytest.raises(StreamRefused) as caught:
            await client.ask(served.address, "refuse")
        await client.ask(served.address, "echo")

    assert str(caught.value) == f"{served.address}: not for you really"
    assert served.server.requests_total == {"refused": 1, "answered": 1}
    assert served.server.connections_total == {"met": 1}


async def test_a_stranger_s_certificate_is_refused_by_either_side(tmp_path: Path) -> None:
    ours = End.make(tmp_path)
    theirs = End.make(tmp_path, lab=Lab(seed=2))

    async with serving(ours) as served:
        with pytest.raises(StreamFailed) as as_caller:
            await theirs.client().ask(served.address, "echo")
    async with serving(theirs) as served_by_theirs:
        with pytest.raises(StreamFailed) as as_called:
            await ours.client().ask(served_by_theirs.address, "echo")

    for caught in (as_caller, as_called):
        assert ": its certificate is not of this cluster (" in str(caught.value)
    assert served.answering.asked == served_by_theirs.answering.asked == []
    assert served.server.connections_total == {"failed": 1}


async def test_a_certificate_that_has_ended_is_let_in(tmp_path: Path) -> None:
    """Whether its time is over is judged elsewhere: the power of its node counts all the same."""
    old = Lab(seed=3, now=1_000_000_000)
    one, two = (End.make(tmp_path, name, lab=old, lifetime_days=1) for name in ("gpu-01", "gpu-02"))

    async with serving(one) as served:
        answer = await two.client().ask(served.address, "echo", b"x")

    assert answer.parts == (b"x",)


async def test_nobody_there_is_one_line(tmp_path: Path) -> None:
    client = End.make(tmp_path).client()
    nobody = Address(f"127.0.0.1:{unused_port('127.0.0.1')}")
    lines = []

    for address in (nobody, Address("no.such.host.invalid:7947"), Address("nonsense")):
        with pytest.raises(StreamFailed) as caught:
            await client.ask(address, "echo")
        lines.append(str(caught.value))

    assert lines[0] == f"{nobody}: connection refused"
    assert lines[1].startswith("no.such.host.invalid:7947: ")
    assert lines[2].startswith("nonsense: 'nonsense' is not HOST:PORT")
    assert not any("\n" in line for line in lines)


async def test_a_bug_in_what_answers_ends_the_server(tmp_path: Path) -> None:
    end = End.make(tmp_path)

    with pytest.raises(BaseExceptionGroup) as caught:
        async with serving(end) as served:
            await end.client().ask(served.address, "bug")

    assert caught.group_contains(KeyError, match="a bug")


def test_the_ends_of_these_tests_are_of_one_cluster() -> None:
    assert LAB.keys.authority.cluster_id != Lab(seed=2).keys.authority.cluster_id
    assert QUICK.connections_max == StreamLimits().connections_max == 64


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("a..b:7947", id="no-name-at-all"),
        pytest.param(f"{'x' * 70}:7947", id="a-label-too-long"),
        pytest.param("\N{ARABIC-INDIC DIGIT ONE}.1:7947", id="digits-of-another-script"),
        pytest.param("localhost:7947", id="a-name"),
        pytest.param("nowhere", id="no-port"),
    ],
)
async def test_whatever_a_peer_says_where_it_is_ends_in_one_line(
    address: str, tmp_path: Path
) -> None:
    with pytest.raises(StreamFailed):
        await End.make(tmp_path).client().ask(Address(address), "echo")
