"""The driver of datagrams: one socket, one pure state machine, one loop.

Its own file because it is the only place where gossip meets a socket. The theory of operation:

1. The loop waits until the socket is readable or the machine's deadline has come, whichever is
   first. It takes at most `BATCH_COUNT` datagrams, hands each to `receive`, calls `advance` if that
   is due, and waits again. Waiting lets other tasks run, even if there is nothing to wait for; so a
   flood delays timers and tasks by one batch (about 10 ms) and no more.
2. Anybody else in the same thread that has effects (a request to the machine, the end of an
   exchange over a stream) hands them to `submit`. They are carried out at once and in order; what
   they lead to comes after them. The loop then waits for the new deadline.
3. A refused port (ICMP) comes back through the socket's error queue, with the address that it is
   about, and is handed in as `Refused`. The kernel reports the same error a second time on
   whatever is sent or received next; that report is about somebody else and is only counted.
4. What the network does wrong is counted and never ends the loop: UDP loses things. An error of the
   machine is a bug of ours and does end it.

`clock` should be CLOCK_BOOTTIME, which goes on while the machine sleeps: gossip knows by how late
it is called that it was not running, and by CLOCK_MONOTONIC a night's suspend takes no time at all.

It must not know what a datagram holds, nor whom it is from.
"""

import errno
import math
import socket
import struct
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

import trio

from cluster.addresses import SocketAddress, read_socket_address, to_socket_address
from cluster.gossip.effects import Send
from cluster.gossip.inputs import Datagram, Input, Refused
from cluster.gossip.messages import Address
from cluster.gossip.settings import DATAGRAM_BYTES_MAX
from cluster.traffic import Direction

BATCH_COUNT = 64
"""Datagrams taken in one go. Measured with trio: three times as many a second as one at a time."""
_RECEIVE_BYTES = DATAGRAM_BYTES_MAX + 1
"""One more than allowed, so that a longer one is seen to be too long."""
_PLACES_MAX = 8192
_TRIES = 3

_EXTENDED_ERROR = struct.Struct("=IBBBBII")
"""Number, origin, type, code, padding, info, data. Source: sock_extended_err, linux/errqueue.h."""
_ERROR_SPACE_BYTES = 256
_RECVERR_LEVELS = (socket.IPPROTO_IP, socket.IPPROTO_IPV6)
_LOCAL = 1
_PORT_UNREACHABLE = {(2, 3, 3), (3, 1, 4)}
"""Origin, type, code: of ICMP and of ICMPv6. Source: RFC 792; RFC 4443, section 3.1."""

_ABOUT_THIS_ONE = (errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EMSGSIZE, errno.EPERM)
"""What `sendto` says of the datagram at hand; other errors may be about an earlier one."""
_EffectT = TypeVar("_EffectT")
_CoreEffectT = TypeVar("_CoreEffectT", covariant=True)


class Core(Protocol[_CoreEffectT]):
    """The state machine that is driven: Swim, or Peer around it."""

    def receive(self, came: Input, now: float) -> Sequence[_CoreEffectT]:
        """Something came from the network."""
        ...

    def advance(self, now: float) -> Sequence[_CoreEffectT]:
        """Time has passed."""
        ...

    def deadline(self) -> float | None:
        """When `advance` is wanted, by the clock of `now`."""
        ...


class Datagrams(Generic[_EffectT]):
    """Drives one state machine over one UDP socket.

    `Send` is done here; every other effect is given to `carry_out`, in order. It must not wait, and
    may call `submit` itself. The socket is closed by whoever opened it, after `run` has ended.
    """

    def __init__(
        self,
        *,
        udp_socket: socket.socket,
        core: Core[_EffectT],
        carry_out: Callable[[_EffectT], None],
        clock: Callable[[], float],
    ) -> None:
        self._socket = udp_socket
        self._core = core
        self._carry_out = carry_out
        self._clock = clock
        self._waiting = trio.CancelScope()
        self._asked_seconds = math.inf
        self._due_seconds = math.inf
        self._effects: deque[_EffectT] = deque()
        self._is_busy = False
        self._refused: deque[Address] = deque(maxlen=BATCH_COUNT)
        self._places: dict[Address, SocketAddress | None] = {}
        self._sources: dict[SocketAddress, Address] = {}
        self._lag_max_seconds = 0.0
        self.address = read_socket_address(udp_socket.getsockname())
        """Where the socket is bound; the port is real even if 0 was asked for."""
        self.received = Direction()
        self.sent = Direction()
        self.errors_total: Counter[str] = Counter()
        """What went wrong, by the name of the error: `send-eperm`, `icmp-ehostunreach`."""
        self.lag_seconds = 0.0
        """How late the loop was for its latest deadline."""

    def take_lag_max_seconds(self) -> float:
        """How late the loop was at worst since this was asked before."""
        worst, self._lag_max_seconds = self._lag_max_seconds, 0.0
        return worst

    def submit(self, effects: Iterable[_EffectT]) -> None:
        """Carry out effects that the machine returned to somebody else; wake for its deadline."""
        self._do(effects)
        self._arm()

    async def run(self) -> None:
        """Drive until cancelled."""
        while True:
            with trio.CancelScope() as self._waiting:
                self._arm()
                await trio.lowlevel.wait_readable(self._socket)
            self._receive_batch()
            self._tell_refused()
            now = self._clock()
            if now >= self._due_seconds:
                self._note_lag(now - self._due_seconds)
                self._do(self._core.advance(now))

    def _arm(self) -> None:
        """Ask to be woken for the deadline that now holds, or at once if something is left."""
        asked = self._core.deadline()
        asked_seconds = math.inf if asked is None else asked
        now = self._clock()
        if asked_seconds != self._asked_seconds:
            self._asked_seconds = asked_seconds
            # What is asked for in the past has only just become due: that is no lag of the loop.
            self._due_seconds = max(asked_seconds, now)
        if self._refused:
            self._waiting.deadline = -math.inf
        else:
            self._waiting.deadline = trio.current_time() + max(0.0, self._due_seconds - now)

    def _note_lag(self, late_seconds: float) -> None:
        self.lag_seconds = late_seconds
        self._lag_max_seconds = max(self._lag_max_seconds, late_seconds)

    def _do(self, effects: Iterable[_EffectT]) -> None:
        self._effects.extend(effects)
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._effects:
                effect = self._effects.popleft()
                if isinstance(effect, Send):
                    self._send(effect.to, effect.datagram)
                else:
                    self._carry_out(effect)
        finally:
            self._is_busy = False

    def _receive_batch(self) -> None:
        for taken in range(BATCH_COUNT):
            try:
                data, where = self._socket.recvfrom(_RECEIVE_BYTES)
            except BlockingIOError:
                if taken == 0:
                    # Woken by the error queue, or by a datagram whose checksum was wrong.
                    self._read_errors()
                return
            except OSError:
                # An earlier send of ours failed; the error queue says which and why.
                self._read_errors()
                continue
            self.received.count(data)
            came = Datagram(source=self._source(where), data=data)
            self._do(self._core.receive(came, self._clock()))

    def _tell_refused(self) -> None:
        for _ in range(len(self._refused)):
            self._do(self._core.receive(Refused(address=self._refused.popleft()), self._clock()))

    def _send(self, to: Address, datagram: bytes) -> None:
        where = self._place(to)
        if where is None:
            self.errors_total["send-no-address"] += 1
            return
        for _ in range(_TRIES):
            try:
                self._socket.sendto(datagram, where)
            except OSError as error:
                number = error.errno or 0
                was_earlier = self._read_errors() or number == errno.ECONNREFUSED
                if was_earlier and number not in _ABOUT_THIS_ONE:
                    continue
                self.errors_total[f"send-{_name(number)}"] += 1
                return
            self.sent.count(datagram)
            return
        self.errors_total["send-errors-of-earlier"] += 1

    def _read_errors(self) -> bool:
        """Empty the error queue; whether anything was in it."""
        for read in range(BATCH_COUNT):
            try:
                _, ancillary, _, where = self._socket.recvmsg(
                    0, _ERROR_SPACE_BYTES, socket.MSG_ERRQUEUE
                )
            except OSError:
                return read > 0
            for level, _, data in ancillary:
                if level in _RECVERR_LEVELS and len(data) >= _EXTENDED_ERROR.size:
                    self._note_error(data, where)
        return True

    def _note_error(self, data: bytes, where: SocketAddress) -> None:
        number, origin, kind, code, *_ = _EXTENDED_ERROR.unpack_from(data)
        if origin == _LOCAL:
            return  # `sendto` has said so as well
        self.errors_total[f"icmp-{_name(number)}"] += 1
        if number == errno.ECONNREFUSED and (origin, kind, code) in _PORT_UNREACHABLE:
            self._refused.append(self._source(where))

    def _place(self, address: Address) -> SocketAddress | None:
        if address not in self._places:
            if len(self._places) >= _PLACES_MAX:
                self._places.clear()
            self._places[address] = to_socket_address(address, self._socket.family)
        return self._places[address]

    def _source(self, where: SocketAddress) -> Address:
        if where not in self._sources:
            if len(self._sources) >= _PLACES_MAX:
                self._sources.clear()
            self._sources[where] = read_socket_address(where)
        return self._sources[where]


def _name(number: int) -> str:
    return errno.errorcode.get(number, "unknown").lower()
