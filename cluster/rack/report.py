"""What one member answers over the stream when another rack, or `cluster status`, asks for detail.

Its own file because it is neither gossip nor a claim that others relay: it is one member's word
about what it sees, asked for when somebody looks. A report is one part of an answer for each node.
It must not know streams.
"""

from dataclasses import dataclass, field

from cluster.codec import Value, decode_document, encode_document
from cluster.errors import Malformed
from cluster.ids import NodeId

RACK = "rack"
"""The kind of question that is answered with a report on each node of the answerer's rack."""
VIEW = "view"
"""The same for every member, without states: what the answerer takes each for."""
_FORMAT = 1
_TENTHS = 10
STATUS_CHARACTERS_MAX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """One node as one member sees it. The answerer itself is the first, with nothing unheard."""

    node_id: NodeId
    status: str
    status_age_seconds: float | None = None
    heard_age_seconds: float | None = None
    state: bytes | None = field(repr=False, default=None)
    """As it was gossiped (`wire.decode_node_state`)."""
    state_age_seconds: float | None = None
    view_digest: int | None = None
    """Of the answerer's view; with its report on itself."""


def encode_report(report: NodeReport) -> bytes:
    """One part of an answer."""
    return encode_document(
        (
            _FORMAT,
            bytes(report.node_id),
            report.status,
            _scale(report.status_age_seconds),
            _scale(report.heard_age_seconds),
            report.state,
            _scale(report.state_age_seconds),
            report.view_digest,
        )
    )


def decode_report(part: bytes) -> NodeReport:
    """One part of an answer.

    Raises:
        Malformed: it is none.
    """
    match decode_document(part):
        case (1, bytes() as node_id, str() as status, since, heard, state, state_age, digest, *_):
            is_text = len(status) <= STATUS_CHARACTERS_MAX and status.isprintable()
            if not is_text or not (state is None or isinstance(state, bytes)):
                raise Malformed("a report that says what it cannot")
            return NodeReport(
                node_id=NodeId.from_wire(node_id),
                status=status,
                status_age_seconds=_read(since),
                heard_age_seconds=_read(heard),
                state=state,
                state_age_seconds=_read(state_age),
                view_digest=digest if isinstance(digest, int) else None,
            )
        case _:
            raise Malformed("not a report on a node")


def _scale(seconds: float | None) -> int | None:
    return None if seconds is None else max(0, round(seconds * _TENTHS))


def _read(value: Value) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Malformed("a report with an age that is none")
    return value / _TENTHS
