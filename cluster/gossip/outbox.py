"""Effects on their way out, and datagrams filled to the brim.

Its own file because every part of gossip sends, and each datagram should also carry news. What a
part must say comes first; what is free afterwards is shared out by `rumors`. It must not know why
anything is sent.
"""

from collections.abc import Iterable, Sequence

from cluster.errors import Misuse
from cluster.gossip.effects import Effect, Rejected, Send
from cluster.gossip.envelope import PAYLOAD_BYTES_MAX, Reason
from cluster.gossip.members import Members
from cluster.gossip.messages import Address, Kind, Message, OperatorNews, Statement
from cluster.gossip.own import Own
from cluster.gossip.rumors import News, Urgency, copies
from cluster.gossip.settings import GossipSettings
from cluster.gossip.wire import encode_message, join_messages
from cluster.ids import NodeId

OPAQUE_BYTES_MAX = 1200
"""Of a message or record that gossip does not look into; with its frame it fits a datagram."""
_FRAME_BYTES = 2
_MESSAGES_MAX = 255


class Outbox:
    """Collects effects until a public verb hands them over."""

    def __init__(self, own: Own, settings: GossipSettings, members: Members) -> None:
        self._own = own
        self._members = members
        self._settings = settings
        self._effects: list[Effect] = []
        self.news = News()
        self.is_urgent = False
        """News that should not wait for the next round."""

    def emit(self, effect: Effect) -> None:
        """One more thing to do."""
        self._effects.append(effect)

    def reject(self, reason: Reason, source: Address) -> None:
        """Count something that was dropped."""
        self._effects.append(Rejected(reason=reason, source=source))

    def drain(self) -> list[Effect]:
        """What is to be done, in order."""
        effects, self._effects = self._effects, []
        return effects

    def send(self, to: Address, messages: Sequence[Message], *, has_news: bool = True) -> None:
        """One datagram. What does not fit is left out from the end; a lost one would be too."""
        parts: list[bytes] = []
        free = PAYLOAD_BYTES_MAX - _FRAME_BYTES
        for message in messages:
            encoded = encode_message(message)
            if len(encoded) + 2 <= free:
                parts.append(encoded)
                free -= len(encoded) + 2
        is_signed = not all(isinstance(one, Statement | OperatorNews) for one in messages)
        if has_news:
            parts.extend(one for one in self.news.fill(free) if one not in parts)
        if parts:
            payload = join_messages(parts[:_MESSAGES_MAX])
            self.emit(Send(to=to, datagram=self._own.seal(payload, is_signed=is_signed)))

    def send_all(self, to: Address, statements: Iterable[Statement], datagrams_max: int) -> None:
        """Statements in as few datagrams as hold them, up to a bound; reconciliation goes on."""
        batch: list[Statement] = []
        used = 0
        for statement in statements:
            size = len(statement.encoded) + 8
            if used + size > PAYLOAD_BYTES_MAX - _FRAME_BYTES:
                self.send(to, batch, has_news=False)
                batch, used = [], 0
                datagrams_max -= 1
                if datagrams_max <= 0:
                    return
            batch.append(statement)
            used += size
        if batch:
            self.send(to, batch, has_news=False)

    def spread(self, statement: Statement, urgency: Urgency, subject: NodeId | None = None) -> None:
        """Repeat a statement to the cluster."""
        self.spread_as(news_key(statement.kind, statement.signer, subject), statement, urgency)

    def spread_as(self, key: tuple[object, ...], statement: Statement, urgency: Urgency) -> None:
        """The same, in the place of whatever has this key."""
        self.news.add(key, encode_message(statement), urgency, self._copies_count)
        self.is_urgent = self.is_urgent or urgency is Urgency.CLAIM

    def spread_record(self, record: bytes) -> None:
        """Repeat an operator's record to the cluster."""
        encoded = encode_message(OperatorNews(record=record))
        self.news.add((record,), encoded, Urgency.CLAIM, self._copies_count)
        self.is_urgent = True

    @property
    def _copies_count(self) -> int:
        size = max(self._members.here_count, self._settings.expected_members_count)
        return copies(size, self._settings.transmissions_multiplier)


def news_key(kind: Kind, signer: NodeId, subject: NodeId | None) -> tuple[object, ...]:
    """What a newer statement replaces in the queue."""
    if subject is not None:
        return ("claim", signer, subject)
    return ("summary" if kind is Kind.SUMMARY else "member", signer)


def check_opaque(opaque: bytes) -> None:
    """Whether something that gossip does not look into fits a datagram.

    Raises:
        Misuse: it does not.
    """
    if len(opaque) > OPAQUE_BYTES_MAX:
        raise Misuse(f"{len(opaque)} bytes do not fit into a datagram; send them by stream")
