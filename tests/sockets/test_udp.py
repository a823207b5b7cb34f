"""The driver of datagrams over real sockets on loopback."""

import socket
import time

import pytest
import trio
import trio.testing

from cluster.binding import BindError, open_both_sockets, open_tcp_socket, open_udp_socket
from cluster.gossip.effects import Send
from cluster.gossip.inputs import Datagram, Input
from cluster.gossip.messages import Address
from cluster.udp import BATCH_COUNT, Datagrams
from tests.udp_cores import Driven, Noted, ScriptedCore, driven, until, unused_port

HOSTS = [pytest.param("127.0.0.1", id="ipv4"), pytest.param("::1", id="ipv6")]


def written(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@pytest.mark.parametrize("host", HOSTS)
async def test_what_one_sends_the_other_receives_with_its_address(host: str) -> None:
    one, two = Driven(ScriptedCore(), host), Driven(ScriptedCore(), host)

    async with driven(one, two):
        one.send(two.driver.address, b"hello")
        await until(lambda: two.core.came)

    assert two.core.came == [Datagram(source=one.driver.address, data=b"hello")]
    assert one.driver.address == written(host, one.port)


@pytest.mark.parametrize("host", HOSTS)
async def test_a_refused_port_is_told_with_its_address(host: str) -> None:
    one = Driven(ScriptedCore(), host)
    nobody = written(host, unused_port(host))

    async with driven(one):
        one.send(nobody)
        await until(lambda: one.core.refused)

    assert one.core.refused == [nobody]
    assert one.driver.errors_total["icmp-econnrefused"] == 1


async def test_a_wildcard_of_ipv6_serves_both_families_under_their_plain_addresses() -> None:
    both, four, six = (
        Driven(ScriptedCore(), "::"),
        Driven(ScriptedCore(), "127.0.0.1"),
        Driven(ScriptedCore(), "::1"),
    )

    async with driven(both, four, six):
        four.send(f"127.0.0.1:{both.port}", b"4")
        six.send(f"[::1]:{both.port}", b"6")
        await until(lambda: len(both.core.came) == 2)
        both.send(four.driver.address, b"to 4")
        both.send(six.driver.address, b"to 6")
        await until(lambda: four.core.came and six.core.came)

    sources = {one.data: one.source for one in both.core.came if isinstance(one, Datagram)}
    assert sources == {b"4": four.driver.address, b"6": six.driver.address}
    assert four.core.came == [Datagram(source=Address(f"127.0.0.1:{both.port}"), data=b"to 4")]
    assert six.core.came == [Datagram(source=Address(f"[::1]:{both.port}"), data=b"to 6")]


@pytest.mark.parametrize("host", HOSTS)
async def test_a_wildcard_of_ipv6_is_told_of_refusals_of_both_families(host: str) -> None:
    both = Driven(ScriptedCore(), "::")
    nobody = written(host, unused_port(host))

    async with driven(both):
        both.send(nobody)
        await until(lambda: both.core.refused)

    assert both.core.refused == [nobody]


async def test_a_refusal_costs_no_datagram_to_somebody_else() -> None:
    one, two = Driven(ScriptedCore()), Driven(ScriptedCore())
    nobody = f"127.0.0.1:{unused_port('127.0.0.1')}"

    async with driven(one, two):
        for number in range(100):
            one.send(nobody)
            one.send(two.driver.address, str(number).encode())
        await until(lambda: len(two.core.came) == 100)
        await until(lambda: one.core.refused)

    assert two.core.datagrams == [str(number).encode() for number in range(100)]
    assert set(one.core.refused) == {nobody}
    assert one.driver.sent.datagrams_total.total() == 200


async def test_the_deadline_is_kept_without_traffic_and_moves_when_somebody_submits() -> None:
    core = ScriptedCore(due_seconds=trio.current_time() + 60)
    one = Driven(core)

    async with driven(one):
        await trio.sleep(0.05)
        core.due_seconds = trio.current_time() + 0.05
        one.driver.submit([])
        await until(lambda: core.advanced)

    assert len(core.advanced) == 1
    assert 0 <= one.driver.lag_seconds < 1
    assert one.driver.take_lag_max_seconds() == one.driver.lag_seconds
    assert one.driver.take_lag_max_seconds() == 0


async def test_a_deadline_that_was_over_when_it_was_asked_for_is_no_lag() -> None:
    core = ScriptedCore()
    one = Driven(core)

    async with driven(one):
        await trio.sleep(0.01)
        core.due_seconds = trio.current_time() - 60
        one.driver.submit([])
        await until(lambda: core.advanced)

    assert one.driver.take_lag_max_seconds() < 1


async def test_a_machine_without_a_deadline_is_left_alone() -> None:
    one = Driven(ScriptedCore(due_seconds=None))

    async with driven(one):
        await trio.sleep(0.1)

    assert one.core.advanced == []


async def test_a_late_loop_says_how_late_it_was() -> None:
    core = ScriptedCore()
    one = Driven(core)

    async with driven(one):
        await trio.testing.wait_all_tasks_blocked()
        core.due_seconds = trio.current_time() + 0.02
        one.driver.submit([])
        time.sleep(0.15)  # noqa: ASYNC251  # nothing else runs meanwhile, which is the point
        await until(lambda: core.advanced)

    assert 0.1 < one.driver.take_lag_max_seconds() < 2


async def test_a_flood_starves_neither_timers_nor_other_tasks() -> None:
    def judge(came: Input) -> list[Send | Noted]:
        time.sleep(0.0002)  # as long as a signature takes
        return []

    core = ScriptedCore(judge, due_seconds=trio.current_time(), interval_seconds=0.01)
    one = Driven(core)
    turns = 0

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flooder:
        flooder.connect(("127.0.0.1", one.port))
        async with driven(one):
            end = trio.current_time() + 0.5
            while trio.current_time() < end:
                for _ in range(2 * BATCH_COUNT):
                    flooder.send(b"junk")
                turns += 1
                await trio.lowlevel.checkpoint()

    assert len(core.came) > 5 * BATCH_COUNT
    assert len(core.advanced) > 5
    assert turns > 5


async def test_a_datagram_that_is_too_long_comes_as_too_long_and_is_not_kept_whole() -> None:
    one = Driven(ScriptedCore())

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", one.port))
        async with driven(one):
            sender.send(bytes(60_000))
            sender.send(b"")
            sender.send(b"after")
            await until(lambda: len(one.core.came) == 3)

    assert [len(data) for data in one.core.datagrams] == [1401, 0, 5]


async def test_what_cannot_be_sent_is_counted_and_the_rest_is_sent() -> None:
    one, two = Driven(ScriptedCore()), Driven(ScriptedCore())

    async with driven(one, two):
        one.send("gpu-17:7947")
        one.send("[::1]:7947")
        one.send("nonsense")
        one.send("127.0.0.1:0")
        one.send(two.driver.address, bytes(70_000))
        one.send("255.255.255.255:7947")
        one.send(two.driver.address, b"still here")
        await until(lambda: two.core.came)

    assert two.core.datagrams == [b"still here"]
    assert one.driver.errors_total == {
        "send-no-address": 4,
        "send-emsgsize": 1,
        "send-eacces": 1,
    }


async def test_effects_are_carried_out_in_order_and_what_they_lead_to_comes_after() -> None:
    carried: list[str] = []
    core = ScriptedCore()

    def carry_out(effect: Send | Noted) -> None:
        assert isinstance(effect, Noted)
        carried.append(effect.what)
        if effect.what == "first":
            driver.submit([Noted("led to")])

    with open_udp_socket("127.0.0.1", 0) as udp_socket:
        driver: Datagrams[Send | Noted] = Datagrams(
            udp_socket=udp_socket, core=core, carry_out=carry_out, clock=trio.current_time
        )
        driver.submit([Noted("first"), Noted("second")])

    assert carried == ["first", "second", "led to"]


async def test_an_answer_goes_out_at_once() -> None:
    def echo(came: Input) -> list[Send | Noted]:
        assert isinstance(came, Datagram)
        return [Noted("heard"), Send(to=came.source, datagram=b"re: " + came.data)]

    one, two = Driven(ScriptedCore()), Driven(ScriptedCore(reply=echo))

    async with driven(one, two):
        one.send(two.driver.address, b"there?")
        await until(lambda: one.core.came)

    assert one.core.datagrams == [b"re: there?"]
    assert two.carried_out == [Noted("heard")]
    assert two.driver.received.bytes_total == {"other": 6}
    assert two.driver.sent.bytes_total == {"other": 10}


async def test_a_bug_in_the_machine_ends_the_loop() -> None:
    def fail(came: Input) -> list[Send | Noted]:
        raise KeyError("a bug")

    one = Driven(ScriptedCore(reply=fail))
    one.send(one.driver.address)

    with pytest.raises(KeyError, match="a bug"), one.socket, trio.fail_after(5):
        await one.driver.run()


def test_a_port_in_use_is_one_line() -> None:
    with open_udp_socket("127.0.0.1", 0) as holder:
        port = holder.getsockname()[1]

        with pytest.raises(BindError) as caught:
            open_udp_socket("127.0.0.1", port)

    line = f"UDP port {port} is in use; stop what holds it, or choose another port"
    assert str(caught.value) == line


@pytest.mark.parametrize(
    ("host", "line"),
    [
        pytest.param("192.0.2.1", "192.0.2.1 is not an address of this machine", id="foreign"),
        pytest.param("no.such.host.invalid", "cannot bind no.such.host.invalid: ", id="unknown"),
        pytest.param("a..b", "'a..b' is not a host name", id="no-name"),
    ],
)
def test_a_host_that_cannot_be_bound_is_one_line(host: str, line: str) -> None:
    for open_one in (open_udp_socket, open_tcp_socket):
        with pytest.raises(BindError) as caught:
            open_one(host, 0)

        assert str(caught.value).startswith(line)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("host", HOSTS)
def test_both_sockets_have_one_port(host: str) -> None:
    datagrams, streams = open_both_sockets(host, 0)

    with datagrams, streams:
        assert datagrams.getsockname()[1] == streams.getsockname()[1] > 0
        with pytest.raises(BindError, match=r"TCP port \d+ is in use"):
            open_tcp_socket(host, streams.getsockname()[1])


def test_a_taken_tcp_port_leaves_no_udp_socket_behind() -> None:
    with open_tcp_socket("127.0.0.1", 0) as holder:
        port = holder.getsockname()[1]

        with pytest.raises(BindError, match=f"TCP port {port} is in use"):
            open_both_sockets("127.0.0.1", port)

        open_udp_socket("127.0.0.1", port).close()


def test_the_kernel_keeps_more_than_by_default() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain,
        open_udp_socket("127.0.0.1", 0) as ours,
    ):
        usual = plain.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)

        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= usual
