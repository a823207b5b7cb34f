"""Rack power over real hosts on loopback, with devices in memory: what a node does, and refuses."""

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio

from cluster.host import Host
from cluster.identity.operator_records import Other
from cluster.ids import NodeId
from cluster.peer import Effect
from cluster.rack.ledger.decrees import BudgetSet, Decree, Founded, Slot, encode_decree
from cluster.rack.model import NodeState
from cluster.rack.units import SHARES_TOTAL, CurrencyId
from cluster.rack.wire import encode_node_state
from esnode.control.supply import Efficiency
from esnode.gate import Gate
from esnode.powering.audit import PowerAudit
from esnode.powering.devices import Devices
from esnode.powering.driver import Powering
from esnode.powering.hardware import PowerHardware
from esnode.powering.known import known_of
from esnode.powering.logs import PowerLogs
from esnode.powering.means import Means, PowerTerms
from esnode.readings.gpu import GpuIdentity, GpuReading
from esnode.setter import Journal, PowerSetter
from esnode.snapshot import GpuState, NodePower, PowerState, Snapshot
from tests.hosts import Cluster, Machine, boottime_seconds, sees, unix_seconds, until
from tests.limit_devices import MemoryDevice, MemoryDevices

RACK = CurrencyId("rack:r01")
SETTLE_SECONDS = 0.2
REST_WATTS = 100
FLOOR_WATTS = 300
"""The rest, and one GPU at its lowest."""


class Ears(list[Effect]):
    """Tells rack power what a host's peer brings."""

    def __init__(self) -> None:
        super().__init__()
        self.powering: Powering | None = None

    def append(self, effect: Effect) -> None:
        super().append(effect)
        if self.powering is not None:
            self.powering.hear(effect)


@dataclass
class Node:
    """One machine with one GPU, and what its work would draw."""

    name: str
    machine: Machine
    device: MemoryDevice = field(default_factory=MemoryDevice)
    wished_watts: float = 80.0
    host: Host | None = None
    powering: Powering | None = None
    told: list[str] = field(default_factory=list)

    @property
    def node_id(self) -> NodeId:
        return self.machine.keys.identity.node_id

    @property
    def state(self) -> str:
        return "" if self.powering is None else known_of(self.powering).state

    @property
    def share_watts(self) -> int:
        assert self.powering is not None
        view = known_of(self.powering).view
        return 0 if view is None else view.ledgers[0].own_watts

    def make(self, terms: PowerTerms) -> Powering:
        folder = self.machine.folder
        (folder / "power").mkdir(exist_ok=True)
        setter = PowerSetter([MemoryDevices({"gpu": self.device})], Journal(folder / "power"))
        devices = Devices(
            settle_seconds=SETTLE_SECONDS,
            rest_watts=REST_WATTS,
            efficiency=Efficiency(points=((0, 1.0),)),
        )
        hardware = PowerHardware(
            setter, devices, clock=boottime_seconds, tell=lambda told: self.told.append(told.line)
        )
        means = Means(
            terms=terms,
            gate=Gate(),
            logs=PowerLogs(folder, self.told.append),
            audit=PowerAudit(folder / "power", lambda: float(unix_seconds())),
            clock=boottime_seconds,
            rng=random.Random(self.name),
            read_boot_id=lambda: "boot",
            tell=self.told.append,
        )
        return Powering(means, hardware)

    def snapshot(self) -> Snapshot:
        cap = self.device.enforced_watts
        draw = min(self.wished_watts, float(cap))
        reasons = ("sw_power_cap",) if self.wished_watts > cap else ()
        identity = GpuIdentity(uuid="gpu", index=0, name="a GPU", vendor="nobody")
        reading = GpuReading(identity=identity, power_average_watts=draw, throttle_reasons=reasons)
        return Snapshot(
            taken_at_seconds=0.0,
            sequence=1,
            gpus=(GpuState(uuid="gpu", is_up=True, index=0, reading=reading, age_seconds=0.0),),
            power=PowerState(
                node=NodePower(
                    power_watts=draw + 0.9 * REST_WATTS,
                    source="meter",
                    is_estimated=False,
                    age_seconds=0.0,
                )
            ),
        )

    async def tick_for_ever(self) -> None:
        while True:
            assert self.powering is not None
            self.powering.tick(self.snapshot())
            state = self.powering.dress(NodeState(agent_version="0"))
            if self.host is not None:
                self.host.publish(encode_node_state(state), None)
            await trio.sleep(0.2)

    @asynccontextmanager
    async def running(self, terms: PowerTerms | None = None) -> AsyncIterator["Node"]:
        ears = Ears()
        self.machine.heard = ears
        self.powering = self.make(terms or PowerTerms(settle_seconds=SETTLE_SECONDS))
        ears.powering = self.powering
        async with self.machine.running() as host, trio.open_nursery() as nursery:
            self.host = host
            self.powering.begin(host)
            nursery.start_soon(self.powering.run)
            nursery.start_soon(self.tick_for_ever)
            yield self
            nursery.cancel_scope.cancel()
        self.powering.end()
        self.host = None

    @asynccontextmanager
    async def alone(self) -> AsyncIterator["Node"]:
        """The same agent while its part of the cluster cannot begin."""
        self.powering = self.make(PowerTerms(settle_seconds=SETTLE_SECONDS))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.powering.run)
            nursery.start_soon(self.tick_for_ever)
            yield self
            nursery.cancel_scope.cancel()


class Rack:
    """Two nodes, and their operator."""

    def __init__(self, folder: Path) -> None:
        self.cluster = Cluster(folder / "cluster")
        self.first = Node("gpu-01", self.cluster.enrol("gpu-01", may_found=True))
        self.second: Node | None = None

    @property
    def nodes(self) -> list[Node]:
        return [self.first] if self.second is None else [self.first, self.second]

    async def enter(self, stack: AsyncExitStack) -> None:
        await stack.enter_async_context(self.first.running())
        assert self.first.host is not None
        machine = self.cluster.enrol("gpu-02", seeds=(self.first.host.address,))
        self.second = Node("gpu-02", machine)
        await stack.enter_async_context(self.second.running())
        for node in self.nodes:
            assert node.host is not None
            host = node.host
            await until(lambda host=host: "alive" in sees(host).values())  # type: ignore[misc]  # bound here

    def sign(self, decree: Decree) -> None:
        assert self.first.host is not None
        if not self.cluster.records:
            assert self.first.host.hear_operator(self.cluster.introduce_operator()) is None
        kind, body = encode_decree(decree)
        record = self.cluster.say(Other(kind=kind, body=body))
        assert self.first.host.hear_operator(record) is None

    def genesis(self, shared_watts: int, *nodes: Node) -> Founded:
        slots = tuple(
            Slot(name=node.name, floor_watts=FLOOR_WATTS, node_id=node.node_id) for node in nodes
        )
        each, rest = divmod(SHARES_TOTAL, len(nodes))
        return Founded(
            currency=RACK,
            budget_watts=shared_watts + FLOOR_WATTS * len(nodes),
            margin_ppm=0,
            slots=slots,
            shares=tuple(
                (node.node_id, each + (rest if at == 0 else 0)) for at, node in enumerate(nodes)
            ),
        )


@pytest.fixture
def rack(tmp_path: Path) -> Rack:
    return Rack(tmp_path)


async def test_nothing_is_written_before_an_operator_says_so(rack: Rack) -> None:
    async with rack.first.running() as node:
        await until(lambda: node.state == "ungoverned")
        await trio.sleep(0.5)

        assert node.powering is not None
        assert node.powering.means.gate.is_open
        assert node.device.requested_watts == 700


async def test_two_nodes_hold_a_budget_trade_and_obey_a_cut(rack: Rack) -> None:
    async with AsyncExitStack() as stack:
        await rack.enter(stack)
        first, second = rack.nodes
        rack.sign(rack.genesis(400, first, second))
        await until(lambda: all(node.state == "enforcing" for node in rack.nodes))
        even = [node.device.enforced_watts for node in rack.nodes]

        second.wished_watts = 650.0
        await until(lambda: second.share_watts > 330, seconds=20)
        assert first.device.enforced_watts + second.device.enforced_watts <= 2 * 200 + 400

        rack.sign(BudgetSet(currency=RACK, budget_watts=2 * FLOOR_WATTS + 200))
        await until(
            lambda: first.device.enforced_watts + second.device.enforced_watts <= 2 * 200 + 200
        )

        assert even == [400, 400]
        assert first.told == second.told == []


async def test_a_node_comes_back_with_its_shares_and_its_cap(rack: Rack) -> None:
    async with rack.first.running() as node:
        rack.sign(rack.genesis(150, node))
        await until(lambda: node.state == "enforcing")
    assert node.device.enforced_watts == 350  # nothing was raised at the end

    node.device.enforced_watts = node.device.requested_watts = 700  # a reboot
    async with node.running():
        assert node.powering is not None
        gate = node.powering.means.gate
        await until(lambda: gate.is_governed)
        assert not gate.is_open
        await until(lambda: gate.is_open)
        assert node.device.enforced_watts == 350


async def test_a_machine_that_holds_watts_keeps_its_cap_without_its_cluster(rack: Rack) -> None:
    async with rack.first.running() as node:
        rack.sign(rack.genesis(150, node))
        await until(lambda: node.state == "enforcing")
        assert node.host is not None
        assert await node.host.kept() is None
    node.device.enforced_watts = node.device.requested_watts = 700  # a reboot

    async with node.alone():
        assert node.powering is not None
        powering = node.powering
        gate = powering.means.gate
        await until(lambda: gate.is_governed)
        assert not gate.is_open
        powering.end()  # a host tried to begin, and could not bind
        await until(lambda: gate.is_open)
        assert node.device.enforced_watts == 350
        known = known_of(powering)
        assert (known.state, known.node) == ("enforcing", "gpu-01")
        assert "its part of the cluster does not run" in known.detail

        async with node.machine.running() as host:
            powering.begin(host)
            await until(lambda: powering.governed is not None and powering.host is host)
            await until(lambda: known_of(powering).detail == "shares of rack:r01")
            assert node.device.enforced_watts == 350
            powering.end()


async def test_a_lost_ledger_holds_nothing(rack: Rack) -> None:
    async with rack.first.running() as node:
        rack.sign(rack.genesis(150, node))
        await until(lambda: node.state == "enforcing")
        host = node.host
        assert host is not None
        assert await host.kept() is None
    (node.machine.folder / "power" / "ledger-rack:r01.log").unlink()

    async with node.running():
        await until(lambda: node.state == "quarantined")
        await until(lambda: node.device.enforced_watts == 200)

    assert any("its book is missing" in line for line in node.told)


async def test_hardware_that_refuses_keeps_its_watts_and_shuts_the_gate(rack: Rack) -> None:
    rack.first.device.refuses = True
    async with rack.first.running() as node:
        rack.sign(rack.genesis(150, node))
        assert node.powering is not None
        means = node.powering.means
        await until(lambda: means.counts["refusals"] > 0, seconds=20)

        view = known_of(node.powering).view
        assert view is not None
        assert view.actuator.is_refusing
        assert not means.gate.is_open


@pytest.mark.parametrize(
    ("terms", "state"),
    [
        pytest.param(
            PowerTerms(settle_seconds=1.0, static_reason="not root"), "static", id="static"
        ),
        pytest.param(
            PowerTerms(settle_seconds=1.0, static_reason="observe", is_observing=True),
            "observing",
            id="observing",
        ),
    ],
)
async def test_a_node_that_may_not_write_opens_no_ledger_and_shows_its_rack(
    rack: Rack, terms: PowerTerms, state: str
) -> None:
    async with rack.first.running(terms) as node:
        rack.sign(rack.genesis(150, node))
        assert node.powering is not None
        powering = node.powering
        await until(lambda: bool(known_of(powering).charters))

        assert node.state == state
        assert powering.means.gate.is_open
        assert node.device.requested_watts == 700
        assert not list((node.machine.folder / "power").glob("ledger-*"))


async def test_a_member_that_nobody_let_in_is_parked_at_its_lowest(rack: Rack) -> None:
    async with AsyncExitStack() as stack:
        await rack.enter(stack)
        first, second = rack.nodes
        rack.sign(rack.genesis(300, first))
        await until(lambda: second.state == "parked")
        await until(lambda: second.device.enforced_watts == 200)

        assert second.powering is not None
        assert known_of(second.powering).view is not None
        gate = second.powering.means.gate
        await until(lambda: "stands in no slot" in gate.reason)
        assert not gate.is_open


async def test_a_disk_that_refuses_delays_a_gift_and_nothing_is_given_without_it(
    rack: Rack,
) -> None:
    async with AsyncExitStack() as stack:
        await rack.enter(stack)
        first, second = rack.nodes
        rack.sign(rack.genesis(400, first, second))
        await until(lambda: all(node.state == "enforcing" for node in rack.nodes))
        assert first.powering is not None
        logs = first.powering.means.logs
        await until(lambda: logs.waiting_count == 0)
        ledger = logs.folder / "ledger-rack:r01.log"
        aside = ledger.with_name("aside")
        ledger.rename(aside)
        ledger.mkdir()

        second.wished_watts = 650.0
        await until(lambda: logs.trouble is not None, seconds=20)
        await trio.sleep(1.0)
        during = (first.share_watts, second.share_watts, second.device.enforced_watts)
        known = known_of(first.powering)
        ledger.rmdir()
        aside.rename(ledger)
        await until(lambda: second.share_watts > 330, seconds=20)

        assert during == (200, 200, 400)
        assert known.has_disk_trouble
        assert known.alarms
        assert logs.trouble is None
