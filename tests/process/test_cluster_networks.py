"""Real agents, each in a network namespace of its own: cuts, pauses, moves, ports and addresses."""

import base64
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cluster.identity.operator_records import (
    OperatorAdded,
    OperatorRecord,
    log_root,
    sign_record,
)
from cluster.ids import OperatorId
from tests.agents import REPOSITORY, private_mounts, wait_until
from tests.hosts import Cluster, unix_seconds
from tests.netns import HERE, PORT, Fleet, Machine, fleet_of, missing, wait_for

NETLAG = REPOSITORY.parent / "shared" / "bench" / "netlag.py"

pytestmark = [pytest.mark.process, pytest.mark.skipif(bool(missing()), reason=missing() or "-")]


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet_of(5, tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


@pytest.fixture
def fleet(standing: Fleet) -> Fleet:
    """The same five for all tests here; each begins with all of them alive."""
    standing.network.heal()
    for machine in standing.machines:
        if machine.agent is None:
            machine.start()
    standing.all_here()
    return standing


def test_a_cut_is_seen_on_both_sides_and_heals(fleet: Fleet) -> None:
    large, small = fleet.machines[:3], fleet.machines[3:]

    fleet.network.cut([one.place for one in large], [one.place for one in small])

    wait_for(large[0], n1="here", n2="here", n3="here", n4="failed", n5="failed")
    wait_for(small[0], n1="failed", n2="failed", n3="failed", n4="here", n5="here")
    assert large[0].cluster()["cluster"]["state"] == "degraded"
    assert small[0].cluster()["cluster"]["state"] == "isolated"
    fleet.network.heal()
    fleet.all_here()


def test_one_that_cannot_hear_another_accuses_nobody_for_long(fleet: Fleet) -> None:
    first, *_, last = fleet.machines
    before = {one.name: len(one.changes("n1")) for one in fleet.machines}

    last.place.deaf_to(first.place.address)
    time.sleep(8.0)

    for machine in fleet.machines[1:]:
        assert "failed" not in machine.changes("n1")[before[machine.name] :]
    assert last.sees()["n1"] in (*HERE, "suspect")


def test_one_that_hears_nobody_is_in_doubt_and_knows_that_it_is_alone(fleet: Fleet) -> None:
    *others, last = fleet.machines

    last.place.deaf_to(*(one.place.address for one in others))

    wait_for(others[0], n1="here", n2="here", n3="here", n4="here", n5="suspect")
    wait_until(lambda: last.cluster()["cluster"]["state"] == "isolated", seconds=10, why="it knows")
    assert "unanswered" in last.warnings()


def test_a_killed_agent_comes_back_at_another_address_as_who_it_was(fleet: Fleet) -> None:
    *others, last = fleet.machines
    before = others[0].node("n5")

    os.kill(last.process.pid, signal.SIGKILL)
    began = time.perf_counter()
    wait_for(others[0], n5="failed")
    took_seconds = time.perf_counter() - began
    last.kill()
    last.place.move("10.88.0.77")
    last.start()

    fleet.all_here()
    after = others[0].node("n5")
    assert took_seconds < 8.0  # refused ports are told at once; how fast is measured elsewhere
    assert (before["address"], after["address"]) == (f"10.88.0.5:{PORT}", f"10.88.0.77:{PORT}")
    assert after["id"] == before["id"]
    assert after["epoch"] > before["epoch"]


@pytest.mark.parametrize(
    ("seconds", "may_fail"),
    [
        pytest.param(5.0, False, id="5s"),
        pytest.param(10.0, True, id="10s", marks=pytest.mark.slow),
        pytest.param(20.0, True, id="20s", marks=pytest.mark.slow),
    ],
)
def test_a_paused_agent_is_suspect_and_accuses_nobody_when_it_is_back(
    fleet: Fleet, seconds: float, may_fail: bool
) -> None:
    *others, last = fleet.machines
    before = {one.name: len(one.changes("n5")) for one in others}
    own = {one.name: len(last.changes(one.name)) for one in others}

    os.kill(last.process.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(last.process.pid, signal.SIGCONT)
    fleet.all_here()

    for machine in others:
        seen = machine.changes("n5")[before[machine.name] :]
        assert "suspect" in seen
        assert ("failed" in seen) is may_fail
        assert set(last.changes(machine.name)[own[machine.name] :]) <= {"alive", "degraded"}


def test_a_torn_epoch_file_is_reported_and_peers_say_how_far_the_node_was(fleet: Fleet) -> None:
    first, *_, last = fleet.machines
    last.kill()
    last.start()  # so that it is in a life that an empty disk would not count to
    fleet.all_here()
    epoch = first.node("n5")["epoch"]

    last.kill()
    (last.state / "epoch").write_bytes((last.state / "epoch").read_bytes()[:10])
    (last.state / "heads").unlink(missing_ok=True)
    last.start()

    fleet.all_here()
    wait_until(lambda: first.node("n5")["epoch"] > epoch > 1, seconds=10, why="a higher epoch")
    assert last.node("n5")["epoch"] == first.node("n5")["epoch"]
    assert "is damaged" in last.process.log_path.read_text()


def states_of(machine: Machine, name: str) -> dict[str, str]:
    """The ids of all nodes of a name, by state."""
    nodes = machine.cluster()["nodes"]
    return {node["state"]: node["id"] for node in nodes if node["name"] == name}


def test_a_reimaged_machine_is_another_node_of_the_same_name(tmp_path: Path) -> None:
    with fleet_of(2, tmp_path) as fleet:
        first, last = fleet.machines
        before = first.node("n2")["id"]
        last.kill()
        wait_for(first, n2="failed")
        last.state.rename(last.state.with_name("n2-of-the-old-disk"))

        fleet.machines.remove(last)
        last = fleet.add("n2", place=last.place)
        last.start()

        wait_until(
            lambda: sorted(states_of(first, "n2")) == ["alive", "failed"],
            seconds=20,
            why="the new key is in, the old one is gone",
        )
        ids = states_of(first, "n2")
        assert ids["failed"] == before != ids["alive"]
        assert "forget n2" in first.warnings()["name-reused"]


def on_a_small_disk(machine: Machine) -> None:
    """Its state folder is a disk of its own, of 400 kB, that nobody else sees."""
    image = machine.state.with_name(f"{machine.name}-image")
    machine.state.rename(image)
    machine.state.mkdir()
    machine.within = private_mounts(
        f"mount -t tmpfs -o size=400k,mode=700 none '{machine.state}'"
        f" && cp -a '{image}/.' '{machine.state}'"
    )


def introduced(cluster: Cluster) -> dict[str, str]:
    """An operator's record, as operators hand it in; every member has to keep it."""
    cluster_id = cluster.authority.authority.cluster_id
    record = OperatorRecord(
        cluster_id=cluster_id,
        sequence=1,
        previous=log_root(cluster_id),
        statement=OperatorAdded(certificate_der=cluster.operator.certificate.der),
        signed_by=OperatorId(cluster_id),
        written_unix_seconds=unix_seconds(),
    )
    signed = sign_record(record, cluster.authority.signer)
    return {
        "payload": base64.b64encode(signed.payload).decode(),
        "signature": base64.b64encode(signed.signature).decode(),
    }


def test_an_agent_whose_disk_fills_up_goes_on_says_so_and_recovers(tmp_path: Path) -> None:
    with ExitStack() as stack:
        fleet = Fleet(tmp_path, stack)
        first, second = fleet.add("n1"), fleet.add("n2")
        on_a_small_disk(second)
        first.start()
        second.start()
        fleet.all_here()
        disk = Path(f"/proc/{second.process.pid}/root{second.state}")
        with (disk / "fill").open("wb", buffering=0) as fill, contextlib.suppress(OSError):
            while True:
                fill.write(bytes(4096))

        spoken = first.post("/v1/control/cluster/records", introduced(fleet.cluster))
        wait_until(lambda: "not-kept" in second.warnings(), seconds=15, why="it says so")
        told, metrics = second.warnings()["not-kept"], second.metrics()
        fleet.all_here()
        (disk / "fill").unlink()

        assert spoken.status == 200, spoken.text
        assert "operator.log: No space left on device" in told
        assert "esnode_cpus" in metrics
        wait_until(lambda: "not-kept" not in second.warnings(), seconds=15, why="it recovers")
        assert "Traceback" not in second.process.log_path.read_text()


def hog(machine: Machine, stack: ExitStack) -> "subprocess.Popen[bytes]":
    """Another program that has the port."""
    script = (
        "import socket,time; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        f"s.bind(('0.0.0.0', {PORT})); print('bound', flush=True); time.sleep(600)"
    )
    process = subprocess.Popen(
        [*machine.place.within, sys.executable, "-c", script], stdout=subprocess.PIPE
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    assert process.stdout is not None
    assert process.stdout.readline() == b"bound\n"
    stack.callback(process.stdout.close)
    return process


def test_an_agent_whose_port_is_taken_serves_says_so_and_joins_when_it_is_free(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        fleet = Fleet(tmp_path, stack)
        first, second = fleet.add("n1"), fleet.add("n2")
        first.start()
        taken = hog(second, stack)
        second.start()

        refused = second.get("/v1/cluster")
        metrics = second.metrics()
        taken.kill()

        assert refused.status == 409
        assert f"UDP port {PORT} is in use" in refused.text
        assert refused.json()["code"] == "cluster-unavailable"
        assert "esnode_cpus" in metrics
        wait_for(first, n1="here", n2="here")


def test_a_node_behind_a_translator_is_told_where_peers_see_it(tmp_path: Path) -> None:
    with ExitStack() as stack:
        fleet = Fleet(tmp_path, stack)
        first = fleet.add("n1")
        first.start()
        router, inner = fleet.network.translated_place()
        behind = fleet.add("n2", place=inner)
        behind.start()
        wait_until(lambda: "address-differs" in behind.warnings(), seconds=15, why="it knows")
        told, shown = behind.warnings()["address-differs"], behind.run("status")

        behind.kill()
        behind.flags = ("--cluster-advertise", router.seed)
        behind.start()

        assert f"announces 192.168.9.2:{PORT}" in told
        assert f"peers see it at {router.address}" in told
        assert told in " ".join(shown.split())
        wait_until(
            lambda: first.node("n2")["address"] == router.seed, seconds=15, why="the new address"
        )
        wait_for(first, n2="here")
        assert "address-differs" not in behind.warnings()


def test_nobody_is_given_up_where_a_tenth_is_lost(fleet: Fleet) -> None:
    before = {
        one.name: {name: len(one.changes(name)) for name in one.sees()} for one in fleet.machines
    }
    addresses = [one.place.address for one in fleet.machines]
    for machine in fleet.machines:
        machine.place.deaf_to(*addresses, loss_percent=10)

    time.sleep(8.0)

    for machine in fleet.machines:
        for name, count in before[machine.name].items():
            assert "failed" not in machine.changes(name)[count:]


def test_a_cluster_comes_together_over_a_slow_line_that_loses_some(tmp_path: Path) -> None:
    if not NETLAG.is_file():
        pytest.skip(f"no {NETLAG.name}: what delays packets is not beside this checkout")
    with ExitStack() as stack:
        fleet = Fleet(tmp_path, stack)
        one, other = (fleet.network.place(is_on_bridge=False) for _ in range(2))
        fleet.add("n1", place=one)
        fleet.add("n2", place=other)
        line = fleet.network.slow_line(
            one, other, NETLAG, "delay=0.08", "jitter=0.04", "loss=0.05", "dup=0.02"
        )
        for machine in fleet.machines:
            machine.start()

        fleet.all_here()
        time.sleep(4.0)

        first = fleet.machines[0]
        assert line.poll() is None
        assert "failed" not in first.changes("n2")
        assert 0.1 < first.node("n2")["round_trip_seconds"] < 0.4
