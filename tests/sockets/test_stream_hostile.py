"""Peers that are slow, silent, false or many: each costs little and hangs nobody."""

import random
import resource
import socket
import ssl
import struct
from pathlib import Path

import pytest
import trio

from cluster.codec import encode_document
from cluster.conversation import StreamFailed
from cluster.gossip.messages import Address
from cluster.stream import StreamLimits
from cluster.stream_frames import End as EndFrame
from cluster.stream_frames import Part, Request, encode_frame
from tests.stream_ends import (
    QUICK,
    End,
    Served,
    impostor,
    is_closed,
    serving,
    silent_listener,
    tls_to,
)
from tests.udp_cores import until

ADDRESS = Address("10.0.0.1:7947")


async def still_serves(served: Served, end: End) -> bool:
    answer = await end.client().ask(served.address, "echo", b"well?")
    return answer.parts == (b"well?",)


async def test_who_never_shakes_hands_is_cut(tmp_path: Path) -> None:
    end = End.make(tmp_path)

    async with serving(end, limits=QUICK) as served:
        stream = await trio.open_tcp_stream(*served.where)
        assert await is_closed(stream)
        await stream.aclose()
        assert await still_serves(served, end)

    assert served.server.connections_total == {"too-slow": 1, "met": 1}
    assert served.notes == ["too slow"]


async def test_who_shakes_hands_and_says_nothing_is_cut(tmp_path: Path) -> None:
    end = End.make(tmp_path)

    async with serving(end, limits=QUICK) as served:
        wrapped = await tls_to(served, end)
        await wrapped.do_handshake()
        assert await is_closed(wrapped)
        await wrapped.aclose()

    assert served.server.connections_total == {"too-slow": 1}


async def test_a_hello_byte_by_byte_is_cut_in_mid_word(tmp_path: Path) -> None:
    end = End.make(tmp_path)
    hello = encode_frame(end.introduce(ADDRESS))

    async with serving(end, limits=QUICK) as served:
        wrapped = await tls_to(served, end)
        sent = 0
        with trio.move_on_after(5):
            try:
                for byte in hello:
                    await wrapped.send_all(bytes([byte]))
                    sent += 1
                    await trio.sleep(0.02)
            except trio.BrokenResourceError:
                pass
        await trio.aclose_forcefully(wrapped)

    assert 1 <= sent < 100
    assert served.server.connections_total == {"too-slow": 1}


async def test_a_question_that_never_ends_is_cut_when_its_time_is_over(tmp_path: Path) -> None:
    end = End.make(tmp_path)
    question = encode_frame(Request(kind="echo", body=bytes(1000)))

    async with serving(end, limits=QUICK) as served:
        wrapped = await tls_to(served, end)
        await wrapped.send_all(encode_frame(end.introduce(ADDRESS)) + question[:-1])
        started = trio.current_time()
        assert await is_closed(wrapped)
        assert trio.current_time() - started < 4 * QUICK.idle_seconds
        await wrapped.aclose()

    assert served.answering.asked == []


@pytest.mark.parametrize(
    ("junk", "what"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", "malformed", id="http"),
        pytest.param(struct.pack(">I", 2**32 - 1), "malformed", id="huge-length"),
        pytest.param(struct.pack(">I", 0), "malformed", id="no-length"),
        pytest.param(struct.pack(">I", 3) + b"abc", "malformed", id="no-document"),
        pytest.param(encode_frame(EndFrame()), "malformed", id="no-hello"),
        pytest.param(struct.pack(">I", 500) + b"half", "failed", id="half-a-frame"),
    ],
)
async def test_junk_in_the_place_of_a_hello_ends_the_connection_alone(
    junk: bytes, what: str, tmp_path: Path
) -> None:
    end = End.make(tmp_path)

    async with serving(end) as served:
        wrapped = await tls_to(served, end)
        await wrapped.send_all(junk)
        await wrapped.transport_stream.send_eof()
        assert await is_closed(wrapped)
        await wrapped.aclose()
        assert await still_serves(served, end)

    assert served.server.connections_total == {what: 1, "met": 1}
    assert len(served.notes) == 1
    assert "\n" not in served.notes[0]


async def test_junk_without_tls_ends_the_connection_alone(tmp_path: Path) -> None:
    end = End.make(tmp_path)
    rng = random.Random(1)

    async with serving(end) as served:
        for _ in range(20):
            stream = await trio.open_tcp_stream(*served.where)
            await stream.send_all(rng.randbytes(rng.randrange(1, 5000)))
            await trio.aclose_forcefully(stream)
        await until(lambda: served.server.connections_count == 0)
        assert await still_serves(served, end)

    assert served.server.connections_total["failed"] == 20


async def test_who_hangs_up_at_once_is_no_error(tmp_path: Path) -> None:
    end = End.make(tmp_path)

    async with serving(end) as served:
        for _ in range(20):
            with socket.create_connection(served.where) as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await trio.sleep(0.05)
        assert await still_serves(served, end)


async def test_a_hello_with_another_s_certificate_is_refused_by_either_side(
    tmp_path: Path,
) -> None:
    one, two = End.make(tmp_path, "gpu-01"), End.make(tmp_path, "gpu-02")
    foreign = encode_frame(two.introduce(ADDRESS))

    async with serving(one) as served:
        wrapped = await tls_to(served, one)
        await wrapped.send_all(foreign)
        assert await is_closed(wrapped)
        await wrapped.aclose()
    async with impostor([foreign], one) as address:
        with pytest.raises(StreamFailed, match="another certificate than that of the connection"):
            await two.client().ask(address, "echo")

    assert served.server.connections_total == {"malformed": 1}
    assert served.notes == ["a hello with another certificate than that of the connection"]


async def test_a_peer_without_a_certificate_is_refused(tmp_path: Path) -> None:
    end = End.make(tmp_path)
    anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anonymous.check_hostname = False
    anonymous.verify_mode = ssl.CERT_NONE

    async with serving(end) as served:
        stream = await trio.open_tcp_stream(*served.where)
        wrapped = trio.SSLStream(stream, anonymous, https_compatible=True)
        assert await is_closed(wrapped)
        await trio.aclose_forcefully(wrapped)

    assert served.server.connections_total == {"failed": 1}


async def test_who_asks_and_never_reads_is_cut_and_its_answer_is_not_made_to_the_end(
    tmp_path: Path,
) -> None:
    end = End.make(tmp_path)

    async with serving(end, limits=QUICK) as served:
        wrapped = await tls_to(served, end)
        await wrapped.send_all(
            encode_frame(end.introduce(ADDRESS)) + encode_frame(Request(kind="endless"))
        )
        await until(lambda: served.server.connections_count == 0)
        await trio.aclose_forcefully(wrapped)
        assert await still_serves(served, end)

    # As much as the kernel's buffers hold, and no more.
    assert served.answering.made * 60_000 < 32 * 1024 * 1024
    assert served.server.requests_total == {"too-slow": 1, "answered": 1}


async def test_a_hundred_connections_leave_room_for_others(tmp_path: Path) -> None:
    end = End.make(tmp_path)
    limits = StreamLimits(handshake_seconds=30)

    async with serving(end, limits=limits) as served:
        streams = [await trio.open_tcp_stream(*served.where) for _ in range(100)]
        await until(lambda: served.server.connections_total["full"] == 92)
        assert served.server.connections_count == 8
        with pytest.raises(StreamFailed):
            await end.client().ask(served.address, "echo")
        answer = await end.client(bind_host="127.0.0.9").ask(served.address, "echo", b"x")
        for stream in streams:
            await trio.aclose_forcefully(stream)

    assert answer.parts == (b"x",)


async def test_connections_from_everywhere_are_bounded_too(tmp_path: Path) -> None:
    end = End.make(tmp_path)
    limits = StreamLimits(handshake_seconds=30)

    async with serving(end, limits=limits) as served:
        streams = [
            await trio.open_tcp_stream(*served.where, local_address=f"127.0.1.{1 + number // 8}")
            for number in range(100)
        ]
        await until(lambda: served.server.connections_total["full"] == 36)
        assert served.server.connections_count == 64
        for stream in streams:
            await trio.aclose_forcefully(stream)
        await until(lambda: served.server.connections_count == 0)
        assert await still_serves(served, end)


async def test_who_takes_the_connection_and_says_nothing_is_given_up(tmp_path: Path) -> None:
    end = End.make(tmp_path)
    listener, address = silent_listener()

    with listener, pytest.raises(StreamFailed) as caught:
        await end.client(QUICK).ask(address, "echo")

    assert str(caught.value) == f"{address}: no connection within 1 s"


@pytest.mark.parametrize(
    ("after_hello", "line"),
    [
        pytest.param([], "no answer within 1 s", id="silent"),
        pytest.param([b"junkjunk"], "a frame of 1786080875 bytes; at most 65536", id="junk"),
        pytest.param([struct.pack(">I", 100) + b"half"], "no answer within 1 s", id="half-frame"),
        pytest.param([encode_frame(Part(body=b"x"))], "no answer within 1 s", id="no-end"),
        pytest.param([encode_frame(Request(kind="x"))], "no answer came", id="a-question"),
        pytest.param([encode_frame(Part(body=bytes(60_000)))] * 50, "too long", id="too-long"),
    ],
)
async def test_what_is_no_answer_is_one_line(
    after_hello: list[bytes], line: str, tmp_path: Path
) -> None:
    end = End.make(tmp_path)
    hello = encode_frame(end.introduce(ADDRESS))
    limits = StreamLimits(ask_seconds=1.0, answer_bytes_max=1_000_000)

    async with impostor([hello, *after_hello], end) as address:
        with pytest.raises(StreamFailed) as caught:
            await end.client(limits).ask(address, "echo")

    assert str(caught.value).startswith(f"{address}: ")
    assert line in str(caught.value)


async def test_a_frame_of_a_later_version_is_passed_over(tmp_path: Path) -> None:
    end = End.make(tmp_path)
    later = encode_document((1, "gossip-about", b"x"))
    answers = [
        encode_frame(end.introduce(ADDRESS)),
        struct.pack(">I", len(later)) + later,
        encode_frame(Part(body=b"x")),
        encode_frame(EndFrame()),
    ]

    async with impostor(answers, end) as address:
        answer = await end.client().ask(address, "echo")

    assert answer.parts == (b"x",)


async def test_an_answer_that_is_made_too_slowly_is_given_up_by_both(tmp_path: Path) -> None:
    end = End.make(tmp_path)

    async with serving(end, limits=QUICK) as served:
        with pytest.raises(StreamFailed):
            await end.client(QUICK).ask(served.address, "slow")
        await until(lambda: served.server.connections_count == 0)

    assert served.server.requests_total == {"too-slow": 1}


async def test_a_thousand_strangers_leave_no_memory_behind(tmp_path: Path) -> None:
    end = End.make(tmp_path)

    async def knock(count: int) -> int:
        for _ in range(count):
            stream = await trio.open_tcp_stream(*served.where)
            await stream.send_all(b"\x16\x03\x01")
            await trio.aclose_forcefully(stream)
        await until(lambda: served.server.connections_count == 0)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    async with serving(end) as served:
        before = await knock(300)
        after = await knock(1000)

    assert after - before < 4 * 1024
