"""Which exchanges of papers are wanted, and how many run at once.

Its own file because gossip asks for them as it meets strangers, many times for one address, and a
stream costs a hundred datagrams: wishes for one address are joined, those that run are bounded, and
one that fails is dropped, since gossip asks again. It must not know what is exchanged.
"""

import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import trio

from cluster.conversation import StreamFailed
from cluster.peer import Exchange
from cluster.wishes import Narrow, is_for_somebody_near, is_granted_by, join_wishes, take_wish

if TYPE_CHECKING:
    from cluster.gossip.messages import Address

RUNNING_MAX = 4
"""Some may knock where nobody answers for seconds."""
BURST_COUNT = 3
PACE_SECONDS = 0.4
"""Beyond the burst one exchange begins in so long. In a mass join everybody meets many strangers
within a second, and whoever waits a little gets most of their papers from one member. A node that
has just started has one exchange and no burst, for the same reason."""
WANTED_MAX = 1024
GATHER_SECONDS = 0.01
"""Wishes that come together are answered together."""


class Exchanges:
    """Runs exchanges, one an address at a time."""

    def __init__(
        self,
        run_one: Callable[[Exchange], Awaitable[None]],
        narrow: Narrow,
        near: Callable[[], "Address | None"] = lambda: None,
    ) -> None:
        """`narrow` tells what of a wish has not been granted meanwhile by others.

        `near` names a member with whom a connection is open: it is asked first, since a handshake
        costs more than all the rest, and whoever let us in knows most.
        """
        self._near = near
        self._avoided: Address | None = None
        """Who was near and could not grant all of a wish."""
        self._run_one = run_one
        self._narrow = narrow
        self._wanted: dict[Address, Exchange] = {}
        self._running: dict[Address, Exchange] = {}
        self._places = trio.Semaphore(RUNNING_MAX)
        self._allowance_count = 1.0
        self._allowance_seconds = math.inf
        self._has_more = trio.Event()
        self.failures_total = 0
        self.dropped_total = 0
        self.last_failure: str | None = None
        """What the latest one failed with, in one line; None after one that went well."""

    def want(self, exchange: Exchange) -> None:
        """One more wish."""
        running = self._running.get(exchange.ask)
        if running is not None and is_granted_by(running, exchange):
            return
        held = self._wanted.get(exchange.ask)
        if held is None and len(self._wanted) >= WANTED_MAX:
            self.dropped_total += 1
            return
        self._wanted[exchange.ask] = exchange if held is None else join_wishes(held, exchange)
        self._has_more.set()

    async def run(self) -> None:
        """Run what is wanted, until cancelled."""
        self._allowance_seconds = trio.current_time()
        async with trio.open_nursery() as nursery:
            while True:
                await self._has_more.wait()
                self._has_more = trio.Event()
                await trio.sleep(GATHER_SECONDS)
                await self._wait_for_allowance()
                await self._places.acquire()
                wish = take_wish(self._wanted, self._running, self._narrow)
                if wish is None:
                    self._places.release()
                    continue
                self._allowance_count -= 1.0
                asked = self._nearest(wish)
                begun = replace(wish, ask=asked)
                self._running[asked] = begun
                nursery.start_soon(self._serve, begun, wish)
                if self._wanted:
                    self._has_more.set()

    async def _wait_for_allowance(self) -> None:
        now = trio.current_time()
        earned = (now - self._allowance_seconds) / PACE_SECONDS
        self._allowance_count = min(float(BURST_COUNT), self._allowance_count + earned)
        self._allowance_seconds = now
        if self._allowance_count < 1.0:
            await trio.sleep((1.0 - self._allowance_count) * PACE_SECONDS)
            self._allowance_count, self._allowance_seconds = 1.0, trio.current_time()

    def _nearest(self, wish: Exchange) -> "Address":
        near = self._near() if is_for_somebody_near(wish) else None
        is_free = near is not None and near not in self._running and near != self._avoided
        return near if near is not None and is_free else wish.ask

    async def _serve(self, wish: Exchange, meant: Exchange) -> None:
        try:
            await self._run_one(wish)
            self.last_failure = None
            self._settle(wish, meant)
        except StreamFailed as error:
            self.failures_total += 1
            self.last_failure = str(error)
        finally:
            self._places.release()
            self._running.pop(wish.ask, None)
            if self._wanted:
                self._has_more.set()

    def _settle(self, wish: Exchange, meant: Exchange) -> None:
        """Ask whoever was meant for what somebody nearer did not know."""
        if wish.ask == meant.ask:
            self._avoided = None
            return
        left = self._narrow(meant)
        if left is not None:
            self._avoided = wish.ask
            self._allowance_count += 1.0  # a detour; it does not count
            self.want(left)
