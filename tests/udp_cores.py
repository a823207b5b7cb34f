"""A state machine for tests of the driver: it writes down what comes and does as it is told."""

import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import trio

from cluster.binding import open_udp_socket
from cluster.gossip.effects import Send
from cluster.gossip.inputs import Datagram, Input, Refused
from cluster.gossip.messages import Address
from cluster.udp import Datagrams


@dataclass(frozen=True)
class Noted:
    """An effect that is not a datagram."""

    what: str


@dataclass
class ScriptedCore:
    """Remembers inputs; answers with whatever `reply` makes of them."""

    reply: Callable[[Input], Sequence[Send | Noted]] = lambda came: ()
    due_seconds: float | None = None
    interval_seconds: float = math.inf
    came: list[Input] = field(default_factory=list)
    advanced: list[float] = field(default_factory=list)

    def receive(self, came: Input, now: float) -> Sequence[Send | Noted]:
        self.came.append(came)
        return self.reply(came)

    def advance(self, now: float) -> Sequence[Send | Noted]:
        self.advanced.append(now)
        self.due_seconds = now + self.interval_seconds
        return ()

    def deadline(self) -> float | None:
        return self.due_seconds

    @property
    def datagrams(self) -> list[bytes]:
        return [one.data for one in self.came if isinstance(one, Datagram)]

    @property
    def refused(self) -> list[Address]:
        return [one.address for one in self.came if isinstance(one, Refused)]


class Driven:
    """One core, its socket and its driver."""

    def __init__(self, core: ScriptedCore, host: str = "127.0.0.1") -> None:
        self.core = core
        self.socket = open_udp_socket(host, 0)
        self.carried_out: list[Noted] = []
        self.driver: Datagrams[Any] = Datagrams(
            udp_socket=self.socket,
            core=core,
            carry_out=self.carried_out.append,
            clock=trio.current_time,
        )

    @property
    def port(self) -> int:
        return int(self.driver.address.rpartition(":")[2])

    def send(self, to: str, data: bytes = b"x") -> None:
        self.driver.submit([Send(to=Address(to), datagram=data)])


@asynccontextmanager
async def driven(*all_driven: Driven) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        for one in all_driven:
            nursery.start_soon(one.driver.run)
        yield
        nursery.cancel_scope.cancel()
    for one in all_driven:
        one.socket.close()


async def until(what: Callable[[], object], seconds: float = 5.0) -> None:
    with trio.fail_after(seconds):
        while not what():  # noqa: ASYNC110  # it becomes true in a task that knows nothing of us
            await trio.sleep(0.005)


def unused_port(host: str) -> int:
    with open_udp_socket(host, 0) as one:
        return int(one.getsockname()[1])
