"""What an operator should look at, in the cluster document: one line each, with a code.

Its own file because it is the list of everything that can be wrong. The codes are a contract. It
must not know how a warning is shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cluster.identity.chains import NodeIdentity
from cluster.identity.standing import Validity, judge_standing
from cluster.ids import NodeId, NodeName
from esnode.status.cluster_rows import STALE_SECONDS, NodeRow, RackRow, rack_state
from esnode.status.gpu import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubles:
    """What is wrong beside the states of nodes."""

    shared_names: Mapping[NodeName, tuple[NodeId, ...]]
    alarms: tuple[str, ...] = ()
    waiting: tuple[NodeIdentity, ...] = ()
    disk: str | None = None
    streams: str | None = None
    """Why nobody could be reached over a stream, while this node knows nobody."""
    address_line: str | None = None
    """Announced here, seen there."""
    is_unanswered: bool = False
    is_contested: bool = False
    """Another machine goes on with this node's key."""
    now_unix_seconds: float = 0.0


def find_warnings(
    rows: Sequence[NodeRow], racks: Sequence[RackRow], troubles: Troubles, *, own: NodeIdentity
) -> list[Document]:
    """All of them, the most severe first."""
    found = [
        *_of_this_node(troubles, own),
        *_of_racks(racks),
        *_of_nodes(rows),
        *_of_names(rows, troubles),
        *_of_certificates(rows, troubles),
        *_of_versions(rows),
    ]
    order = {"critical": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda one: order[str(one["severity"])])


def _warning(
    code: str, severity: str, subject: str, text: str, since_seconds: float | None = None
) -> Document:
    return {
        "code": code,
        "severity": severity,
        "subject": subject,
        "text": text,
        "since_seconds": None if since_seconds is None else round(since_seconds, 1),
    }


def _of_this_node(troubles: Troubles, own: NodeIdentity) -> Iterator[Document]:
    if troubles.is_contested:
        text = (
            "another machine goes on with this node's key (a cloned disk?): stop one of them, and "
            "let it leave and join anew with a token"
        )
        yield _warning("key-contested", "critical", own.name, text)
    if troubles.is_unanswered:
        text = "no other member answers this node; look at its network and at cluster_advertise"
        yield _warning("unanswered", "critical", own.name, text)
    if troubles.disk is not None:
        yield _warning("not-kept", "critical", own.name, troubles.disk)
    if troubles.streams is not None:
        yield _warning("no-stream", "warning", own.name, troubles.streams)
    if troubles.address_line is not None:
        yield _warning("address-differs", "warning", own.name, troubles.address_line)
    for identity in troubles.waiting:
        text = (
            f"waits to be let into rack {identity.rack}: `esnode cluster approve "
            f"{identity.node_id.hex()} --invite {identity.rights.serial:x}`"
        )
        yield _warning("awaits-approval", "info", identity.name, text)
    for line in troubles.alarms:
        yield _warning("identity", "warning", "cluster", line)


def _of_racks(racks: Sequence[RackRow]) -> Iterator[Document]:
    for rack in racks:
        if rack_state(rack.state) == "dark":
            text = "no node of this rack is reachable"
            yield _warning("rack-dark", "critical", rack.rack, text)


def _of_nodes(rows: Sequence[NodeRow]) -> Iterator[Document]:
    for row in rows:
        since = row.status_age_seconds
        match row.status:
            case "failed":
                text = "does not answer, and was given up; `esnode cluster remove` if it is gone"
                yield _warning("node-failed", "critical", row.name, text, since)
            case "suspect":
                by = f" (says {', '.join(row.accusers[:3])})" if row.accusers else ""
                yield _warning("node-suspect", "warning", row.name, f"does not answer{by}", since)
            case "degraded" if row.is_quarantined:
                text = "says two things at once: a cloned disk? its figures are not used"
                yield _warning("node-contradicts", "critical", row.name, text, since)
            case "degraded":
                yield _warning("node-degraded", "warning", row.name, _why_degraded(row))
            case "alive" if _is_stale(row):
                text = "answers, but has not told how it is"
                yield _warning("node-stale", "warning", row.name, text, row.state_age_seconds)
            case _:
                pass


def _why_degraded(row: NodeRow) -> str:
    """Flaps count suspicions and restarts; without them it is degraded by what it answers now."""
    if row.flaps_ratio < 1.0:
        return "hard to reach: it has not answered lately"
    return (
        f"unsteady: restarted or suspected {row.flaps_ratio:.0f} times lately; a crash loop, a bad "
        "link, or a cloned disk"
    )


def _is_stale(row: NodeRow) -> bool:
    age = row.state_age_seconds
    return age is not None and age > STALE_SECONDS


def _of_names(rows: Sequence[NodeRow], troubles: Troubles) -> Iterator[Document]:
    """Two keys under one name: a reimaged machine, or two machines that claim to be one."""
    status = {row.node_id: row.status for row in rows}
    for name, node_ids in sorted(troubles.shared_names.items()):
        live = [one for one in node_ids if status.get(one) in ("alive", "degraded", "suspect")]
        ids = ", ".join(one.short for one in node_ids)
        if len(live) > 1:
            text = (
                f"{len(live)} live machines have this name ({ids}); let one leave and join anew "
                "under another --name, or revoke it"
            )
            yield _warning("name-conflict", "critical", name, text)
        elif len(node_ids) > 1 and live:
            text = (
                f"was reimaged: {len(node_ids)} keys had this name ({ids}); "
                f"`esnode cluster forget {name}`"
            )
            yield _warning("name-reused", "info", name, text)


def _of_certificates(rows: Sequence[NodeRow], troubles: Troubles) -> Iterator[Document]:
    severities = {
        Validity.ENDING: "info",
        Validity.ENDED: "warning",
        Validity.NOT_YET: "warning",
    }
    for row in rows:
        if row.identity is None or row.status in ("left", "removed"):
            continue
        standing = judge_standing(row.identity, int(troubles.now_unix_seconds))
        if standing.alarm is not None:
            code = f"certificate-{standing.validity}"
            yield _warning(code, severities[standing.validity], row.name, standing.alarm)


def _of_versions(rows: Sequence[NodeRow]) -> Iterator[Document]:
    """Agents more than one minor version apart are not tested together."""
    versions = dict.fromkeys(row.state.agent_version for row in rows if row.state is not None)
    known = {parsed: text for text in versions if (parsed := _minor(text)) is not None}
    if not known:
        return
    lowest, highest = min(known), max(known)
    if lowest[0] != highest[0] or highest[1] - lowest[1] > 1:
        text = f"agents run {known[lowest]} and {known[highest]}; update the older ones"
        yield _warning("version-skew", "warning", "cluster", text)


def _minor(version: str) -> tuple[int, int] | None:
    parts = version.split(".")
    if len(parts) < 2 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        return None
    return int(parts[0]), int(parts[1])
