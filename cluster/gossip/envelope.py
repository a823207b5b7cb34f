"""What is around every datagram, and the door at which it is judged, cheapest question first.

Its own file because it decides what junk may cost. The order: length, format, cluster, known
sender, freshness, signature; only then does anybody decode the rest. Freshness is a window over the
sender's own numbers, as in IPsec, so reordered datagrams pass and repeated ones do not. Each
source may fail so many signatures a second; then what it sends is dropped without a look.

A datagram that only carries statements needs no second signature: it proves nothing about its
sender, moves no window, and its statements are verified one by one.

It must not know messages. Layout: `docs/protocol.md`. Source of the window: RFC 4303, section
3.4.3.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from cluster.gossip.messages import Address, Version
from cluster.gossip.settings import DATAGRAM_BYTES_MAX, GossipSettings
from cluster.ids import ClusterId, NodeId
from cluster.signatures import SIGNATURE_BYTES, Purpose, Signer, Verifier

_SIGNED = 0xE1
_BARE = 0xE2
"""The format; another one would have other first bytes."""
_HEAD = struct.Struct(">B16s16sQQ")
HEAD_BYTES = _HEAD.size
PAYLOAD_BYTES_MAX = DATAGRAM_BYTES_MAX - HEAD_BYTES - SIGNATURE_BYTES
_WINDOW = 64
_SOURCES_MAX = 1024


class Reason(StrEnum):
    """Why something that came in was dropped; each is a counter."""

    LENGTH = "length"
    FORMAT = "format"
    CLUSTER = "cluster"
    OWN = "own"
    UNKNOWN = "unknown-sender"
    EXCLUDED = "excluded"
    REPLAYED = "replayed"
    BUDGET = "budget"
    SIGNATURE = "signature"
    MALFORMED = "malformed"
    CONTRADICTS_CERTIFICATE = "contradicts-certificate"
    UNANCHORED = "unanchored"
    """An application's message before the sender has answered a question of this life of ours."""
    NOT_ALLOWED = "not-allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A datagram that came through the door."""

    sender: NodeId
    version: Version
    is_signed: bool
    payload: bytes = field(repr=False)
    datagram: bytes = field(repr=False)


def seal(
    payload: bytes,
    *,
    cluster_id: ClusterId,
    sender: NodeId,
    version: Version,
    signer: Signer | None,
) -> bytes:
    """A datagram; without a signer one that may only carry statements."""
    form = _BARE if signer is None else _SIGNED
    data = _HEAD.pack(form, cluster_id, sender, version.epoch, version.sequence) + payload
    return data if signer is None else data + signer.sign(Purpose.DATAGRAM.wrap(data))


def look(datagram: bytes, cluster_id: ClusterId) -> Envelope | Reason:
    """A datagram as far as its head tells. Nothing is proved by it."""
    if not HEAD_BYTES < len(datagram) <= DATAGRAM_BYTES_MAX:
        return Reason.LENGTH
    form, cluster, sender, epoch, sequence = _HEAD.unpack_from(datagram)
    if form not in (_SIGNED, _BARE):
        return Reason.FORMAT
    if cluster != cluster_id:
        return Reason.CLUSTER
    end = len(datagram) - (SIGNATURE_BYTES if form == _SIGNED else 0)
    if end <= HEAD_BYTES:
        return Reason.LENGTH
    return Envelope(
        sender=NodeId(sender),
        version=Version(epoch=epoch, sequence=sequence),
        is_signed=form == _SIGNED,
        payload=datagram[HEAD_BYTES:end],
        datagram=datagram,
    )


def claimed_sender(datagram: bytes) -> NodeId:
    """Who a datagram of the right length and cluster says that it is from. Anybody can say so."""
    return NodeId(_HEAD.unpack_from(datagram)[2])


@dataclass(slots=True)
class _Window:
    epoch: int = 0
    highest: int = 0
    seen_bits: int = 0
    is_anchored: bool = False

    def admits(self, version: Version) -> bool:
        if version.epoch != self.epoch:
            return version.epoch > self.epoch
        behind = self.highest - version.sequence
        return behind < 0 or (behind < _WINDOW and not self.seen_bits >> behind & 1)

    def mark(self, version: Version) -> None:
        if version.epoch != self.epoch:
            self.epoch, self.highest, self.seen_bits = version.epoch, version.sequence, 1
            return
        ahead = version.sequence - self.highest
        if ahead > 0:
            kept = self.seen_bits << ahead if ahead < _WINDOW else 0
            self.seen_bits = (kept | 1) & (2**_WINDOW - 1)
            self.highest = version.sequence
        else:
            self.seen_bits |= 1 << -ahead


@dataclass(slots=True)
class _Allowance:
    left_count: float
    at_seconds: float


class Door:
    """Judges what comes in, for one node of one cluster."""

    def __init__(
        self,
        *,
        cluster_id: ClusterId,
        own_id: NodeId,
        verifier: Verifier,
        settings: GossipSettings,
        public_key_of: Callable[[NodeId], bytes | Reason],
    ) -> None:
        self._cluster_id = cluster_id
        self._own_id = own_id
        self._verifier = verifier
        self._settings = settings
        self._public_key_of = public_key_of
        self._windows: dict[NodeId, _Window] = {}
        self._allowances: dict[Address, _Allowance] = {}
        every = settings.failed_checks_all_per_second
        self._everybody = _Allowance(left_count=every, at_seconds=0.0)
        self.checks_total = 0
        """Signatures that were checked."""

    def open(self, datagram: bytes, source: Address, now: float) -> Envelope | Reason:
        """Let a datagram in, or say why not."""
        seen = look(datagram, self._cluster_id)
        if isinstance(seen, Reason):
            return seen
        if seen.sender == self._own_id:
            return Reason.OWN
        public_key = self._public_key_of(seen.sender)
        if isinstance(public_key, Reason):
            return public_key
        if not seen.is_signed:
            return seen
        window = self._windows.setdefault(seen.sender, _Window())
        if not window.admits(seen.version):
            return Reason.REPLAYED
        refusal = self._check(seen, public_key, source, now)
        if refusal is not None:
            return refusal
        window.mark(seen.version)
        return seen

    def open_relayed(
        self, datagram: bytes, sender: NodeId, source: Address, now: float
    ) -> Envelope | Reason:
        """Let in what a helper passes on from whom it asked. Its nonce shows that it is fresh."""
        seen = look(datagram, self._cluster_id)
        if isinstance(seen, Reason):
            return seen
        public_key = self._public_key_of(seen.sender)
        if isinstance(public_key, Reason):
            return public_key
        if seen.sender != sender or not seen.is_signed:
            return Reason.NOT_ALLOWED
        return self._check(seen, public_key, source, now) or seen

    def verify(self, check: Callable[[], bool], source: Address, now: float) -> Reason | None:
        """Ask a question that costs a signature, on the account of a source."""
        if not self._may_check(source, now):
            return Reason.BUDGET
        self.checks_total += 1
        if check():
            return None
        self._charge(source)
        return Reason.SIGNATURE

    def anchor(self, sender: NodeId) -> None:
        """A sender has answered a nonce of ours: what is in its window was said in our time."""
        window = self._windows.setdefault(sender, _Window())
        if not window.is_anchored:
            window.is_anchored = True
            # What it sent before this answer may be somebody's recording.
            window.seen_bits = 2**_WINDOW - 1

    def is_anchored(self, sender: NodeId) -> bool:
        """Whether a sender has done so since we started."""
        window = self._windows.get(sender)
        return window is not None and window.is_anchored

    def floor(self, sender: NodeId, epoch: int) -> None:
        """Refuse lives of a sender before this one."""
        window = self._windows.setdefault(sender, _Window())
        if epoch > window.epoch:
            window.epoch, window.highest, window.seen_bits = epoch, 0, 0

    def _check(
        self, seen: Envelope, public_key: bytes, source: Address, now: float
    ) -> Reason | None:
        signed = seen.datagram[:-SIGNATURE_BYTES]
        signature = seen.datagram[-SIGNATURE_BYTES:]
        return self.verify(
            lambda: self._verifier.verify(
                public_key=public_key,
                signature=signature,
                message=Purpose.DATAGRAM.wrap(signed),
            ),
            source,
            now,
        )

    def _may_check(self, source: Address, now: float) -> bool:
        every = self._settings.failed_checks_all_per_second
        _refill(self._everybody, every, now)
        allowance = self._allowances.get(source)
        if allowance is None:
            return self._everybody.left_count >= 1
        _refill(allowance, self._settings.failed_checks_per_second, now)
        return allowance.left_count >= 1 and self._everybody.left_count >= 1

    def _charge(self, source: Address) -> None:
        now = self._everybody.at_seconds
        allowance = self._allowances.get(source)
        if allowance is None:
            if len(self._allowances) >= _SOURCES_MAX:
                self._allowances.pop(next(iter(self._allowances)))
            allowance = _Allowance(self._settings.failed_checks_per_second, now)
            self._allowances[source] = allowance
        allowance.left_count -= 1
        self._everybody.left_count -= 1


def _refill(allowance: _Allowance, per_second: float, now: float) -> None:
    elapsed = max(0.0, now - allowance.at_seconds)
    allowance.left_count = min(per_second, allowance.left_count + elapsed * per_second)
    allowance.at_seconds = now
