"""Which exchanges of papers are wanted, and how many run at once.

Its own file because gossip asks for them as it meets strangers, many times for one address, and a
stream costs a hundred datagrams: wishes for one address are joined, those that run are bounded, and
one that fails is dropped, since gossip asks again. It must not know what is exchanged.
"""

from collections.abc import Awaitable, Callable

import trio

from cluster.conversation import StreamFailed
from cluster.gossip.messages import Address
from cluster.peer import Exchange

RUNNING_MAX = 8
WANTED_MAX = 1024
GATHER_SECONDS = 0.01
"""Wishes that come together are answered together."""
_IDS_MAX = 512


class Exchanges:
    """Runs exchanges, one an address at a time."""

    def __init__(self, run_one: Callable[[Exchange], Awaitable[None]]) -> None:
        self._run_one = run_one
        self._wanted: dict[Address, Exchange] = {}
        self._running: dict[Address, None] = {}
        self._places = trio.CapacityLimiter(RUNNING_MAX)
        self._has_more = trio.Event()
        self.failures_total = 0
        self.dropped_total = 0
        self.last_failure: str | None = None
        """What the latest one failed with, in one line; None after one that went well."""

    def want(self, exchange: Exchange) -> None:
        """One more wish."""
        held = self._wanted.get(exchange.ask)
        if held is None and len(self._wanted) >= WANTED_MAX:
            self.dropped_total += 1
            return
        self._wanted[exchange.ask] = exchange if held is None else _joined(held, exchange)
        self._has_more.set()

    async def run(self) -> None:
        """Run what is wanted, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                await self._has_more.wait()
                self._has_more = trio.Event()
                await trio.sleep(GATHER_SECONDS)
                for address in [one for one in self._wanted if one not in self._running]:
                    self._running[address] = None
                    nursery.start_soon(self._serve, address)

    async def _serve(self, address: Address) -> None:
        try:
            async with self._places:
                wish = self._wanted.pop(address, None)
                if wish is not None:
                    await self._run_one(wish)
                    self.last_failure = None
        except StreamFailed as error:
            self.failures_total += 1
            self.last_failure = str(error)
        finally:
            self._running.pop(address, None)
            if address in self._wanted:
                self._has_more.set()


def _joined(first: Exchange, second: Exchange) -> Exchange:
    is_all = not first.node_ids or not second.node_ids
    ids = () if is_all else tuple(dict.fromkeys((*first.node_ids, *second.node_ids)))
    return Exchange(
        ask=first.ask,
        node_ids=ids if len(ids) <= _IDS_MAX else (),
        offered=tuple(dict.fromkeys((*first.offered, *second.offered))),
    )
