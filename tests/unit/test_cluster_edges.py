"""Places, entry, orders' socket and events: the small rooms at the cluster's edge."""

import os
import socket
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from cluster.credentials import load_node
from cluster.entry import EntryRefused, enter, has_left, mark_left, renew_here, unmark_left
from cluster.gossip.effects import MemberChanged, Paused, Status
from cluster.gossip.messages import Address
from cluster.identity.files import IdentityUnusable
from cluster.ids import NodeId, parse_node_name
from cluster.peer import Alarm, Withdrawn
from cluster.places import Announced, look_up, own_address
from esnode.cluster_events import KEPT_EVENTS, ClusterEvents
from esnode.control_socket import (
    ControlSocketUnusable,
    close_control_socket,
    is_allowed,
    open_control_socket,
)
from tests.identities import DAY, NOW, R02, Lab

N2 = parse_node_name("n2")


async def test_addresses_pass_and_names_that_are_not_found_are_left_out() -> None:
    found = await look_up(("10.0.0.1:7947", "[fd00::1]:7947", "no-such-host.invalid:7947", "junk"))

    assert found == ("10.0.0.1:7947", "[fd00::1]:7947")


async def test_a_name_stands_for_its_addresses() -> None:
    assert "127.0.0.1:7947" in await look_up(("localhost:7947",))


@pytest.mark.parametrize(
    ("bound", "advertised", "seeds", "expected"),
    [
        pytest.param("0.0.0.0:7947", "192.0.2.7:80", (), "192.0.2.7:80", id="announced"),
        pytest.param("127.0.0.3:7947", None, (), "127.0.0.3:7947", id="bound-to-one"),
        pytest.param("0.0.0.0:7947", None, ("127.0.0.9:1",), "127.0.0.1:7947", id="by-the-route"),
        pytest.param("[::]:7947", None, ("127.0.0.9:1",), "127.0.0.1:7947", id="dual-stack"),
        pytest.param("[::1]:7947", None, (), "[::1]:7947", id="ipv6"),
    ],
)
def test_where_a_node_is_found(
    bound: str, advertised: str | None, seeds: tuple[str, ...], expected: str
) -> None:
    announced = None if advertised is None else Address(advertised)

    address = own_address(Address(bound), announced, [Address(seed) for seed in seeds])

    assert address == expected


def entered(lab: Lab, folder: Path, name: str = "n2") -> None:
    enter(
        folder,
        lab.invite(),
        parse_node_name(name),
        now_unix_seconds=NOW,
        random_bytes=lab.random_bytes,
    )


async def test_a_name_that_is_not_found_for_a_while_does_not_move_the_node() -> None:
    answers: list[tuple[Address, ...]] = [(Address("192.0.2.7:7947"),), (), ()]

    async def find(names: Sequence[str]) -> tuple[Address, ...]:
        assert names == ("gpu-01.example:7947",)
        return answers.pop(0)

    announced = Announced(Address("0.0.0.0:7947"), "gpu-01.example", find=find)

    assert await announced.find(()) == "192.0.2.7:7947"
    assert announced.trouble is None
    assert await announced.find(()) == "192.0.2.7:7947"
    assert "gpu-01.example" in str(announced.trouble)


async def test_a_name_of_several_addresses_stays_at_one_of_them() -> None:
    first, second = Address("192.0.2.7:7947"), Address("192.0.2.8:7947")
    answers = [(first, second), (second, first), (second,)]

    async def find(names: Sequence[str]) -> tuple[Address, ...]:
        return answers.pop(0)

    announced = Announced(Address("0.0.0.0:7947"), "gpu-01:7947", find=find)

    assert [await announced.find(()) for _ in range(3)] == [first, first, second]


def test_a_machine_becomes_a_node_once(tmp_path: Path) -> None:
    lab, folder = Lab(), tmp_path / "identity"
    entered(lab, folder)

    with pytest.raises(EntryRefused, match="already"):
        entered(lab, folder)

    assert load_node(folder).identity.name == "n2"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_who_has_left_comes_back_with_the_same_key(tmp_path: Path) -> None:
    lab, folder = Lab(), tmp_path / "identity"
    entered(lab, folder)
    before = load_node(folder)
    mark_left(folder)
    assert has_left(folder)

    entered(lab, folder)

    after = load_node(folder)
    assert not has_left(folder)
    assert after.identity.node_id == before.identity.node_id
    assert after.identity.serial != before.identity.serial


@pytest.mark.parametrize("case", ["another-cluster", "another-name"])
def test_who_has_left_does_not_come_back_as_somebody_else(tmp_path: Path, case: str) -> None:
    lab, folder = Lab(), tmp_path / "identity"
    entered(lab, folder)
    mark_left(folder)
    before = load_node(folder)

    other = Lab(seed=2, name="other") if case == "another-cluster" else lab
    with pytest.raises(EntryRefused, match="away first"):
        entered(other, folder, "n2" if case == "another-cluster" else "n3")

    assert has_left(folder)
    assert load_node(folder).identity == before.identity


def test_a_renewal_is_for_the_same_rack(tmp_path: Path) -> None:
    lab, folder = Lab(), tmp_path / "identity"
    entered(lab, folder)

    with pytest.raises(EntryRefused, match="rack r02"):
        renew_here(
            folder,
            lab.invite(R02),
            now_unix_seconds=NOW + DAY,
            random_bytes=lab.random_bytes,
        )


def test_a_mark_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(IdentityUnusable):
        mark_left(tmp_path / "nowhere")
    unmark_left(tmp_path)  # there is none


def test_the_control_socket_is_for_owner_and_group(tmp_path: Path) -> None:
    opened = open_control_socket(tmp_path)
    path = tmp_path / "agent.sock"

    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    calling = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    calling.connect(str(path))
    opened.setblocking(True)
    accepted, _ = opened.accept()
    assert is_allowed(accepted)
    for one in (calling, accepted):
        one.close()
    close_control_socket(opened, tmp_path)
    assert not path.exists()


def test_what_an_agent_before_left_is_taken_over(tmp_path: Path) -> None:
    first = open_control_socket(tmp_path)
    first.close()  # killed: its name stays

    close_control_socket(open_control_socket(tmp_path), tmp_path)


def test_a_folder_whose_name_is_too_long_is_told(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    deep.mkdir()

    with pytest.raises(ControlSocketUnusable, match="shorter"):
        open_control_socket(deep)


def named(node_id: NodeId) -> str:
    return f"node-{node_id.short}"


def test_effects_for_people_become_events_and_others_do_not() -> None:
    events = ClusterEvents(lambda: float(NOW))
    node_id = NodeId(b"n" * 16)
    change = MemberChanged(
        node_id=node_id, before=Status.ALIVE, after=Status.SUSPECT, reason="silent"
    )

    made = [
        events.hear(effect, named)
        for effect in (
            change,
            Paused(pause_seconds=4.2),
            Withdrawn(reason="revoked"),
            Alarm(line="a fork"),
        )
    ]

    assert [one["kind"] for one in made if one is not None] == ["member", "pause", "self", "alarm"]
    assert made[0] is not None
    assert (made[0]["before"], made[0]["after"]) == ("alive", "suspect")
    assert made[0]["at"] == "2027-01-15T08:00:00Z"


def test_only_the_last_events_are_kept_and_numbers_go_on() -> None:
    events = ClusterEvents(lambda: float(NOW))
    first = events.add("alarm", "cluster", reason="0")
    for number in range(1, KEPT_EVENTS + 5):
        events.add("alarm", "cluster", reason=str(number))

    kept = events.after(0)

    assert len(kept) == KEPT_EVENTS
    assert events.after(int(str(kept[-3]["id"]))) == kept[-2:]
    assert int(str(kept[0]["id"])) == int(str(first["id"])) + 5


def test_the_events_of_a_later_life_have_higher_numbers() -> None:
    before = ClusterEvents(lambda: float(NOW)).add("alarm", "cluster")
    after = ClusterEvents(lambda: float(NOW + 1)).add("alarm", "cluster")

    assert int(str(after["id"])) > int(str(before["id"]))


async def test_whoever_follows_is_woken_by_an_event_and_by_the_end() -> None:
    events = ClusterEvents(lambda: float(NOW))
    seen: list[object] = []

    async def follow() -> None:
        number = 0
        while new := await events.newer(number):
            seen.extend(one["reason"] for one in new)
            number = int(str(new[-1]["id"]))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        await trio.testing.wait_all_tasks_blocked()
        events.add("alarm", "cluster", reason="one")
        await trio.testing.wait_all_tasks_blocked()
        events.add("alarm", "cluster", reason="two")
        await trio.testing.wait_all_tasks_blocked()
        events.close()

    assert seen == ["one", "two"]


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
def test_another_user_may_not_give_orders(tmp_path: Path) -> None:
    opened = open_control_socket(tmp_path)
    (tmp_path / "agent.sock").chmod(0o666)
    tmp_path.chmod(0o755)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.setresgid(65_534, 65_534, 65_534)
        os.setgroups([])
        os.setresuid(65_534, 65_534, 65_534)
        calling = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        calling.connect("agent.sock")
        os.read(reading, 1)
        os._exit(0)
    opened.setblocking(True)
    accepted, _ = opened.accept()

    assert not is_allowed(accepted)

    os.write(writing, b"x")
    os.waitpid(child, 0)
    accepted.close()
    close_control_socket(opened, tmp_path)
