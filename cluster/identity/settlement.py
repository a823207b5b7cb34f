"""Who is in: what the admissions that are known amount to, and whether one more may come.

Its own file because gathering records (`admission`) and weighing them are two rules. Weighing
begins with those that may admit themselves (founders) and those for whom an operator spoke, and
goes on to whomever they admitted: whoever was never let in can let nobody in. An invite's uses go
to its earliest admissions, by (time, id). Where two members admitted at once and together exceeded
them, the rest are flagged, for an operator to approve or remove. Which admissions stand depends on
the set of records alone, never on the order in which they came.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.identity.admission import AdmissionRecord, Admissions, Rank, SignedAdmission, rank
from cluster.identity.chains import IssuingRights, NodeIdentity
from cluster.identity.extensions import Kind
from cluster.identity.refusals import Refused, Rule
from cluster.identity.standing import Revocations, check_revocation
from cluster.ids import NodeId, NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Flagged:
    """An admission that does not stand, and why."""

    admission: SignedAdmission
    refused: Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class MayAdmit:
    """The node may be let in; a member signs an `AdmissionRecord` for it."""

    uses: int
    """What the record shall say: the invite's uses with this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Which admissions stand."""

    standing: tuple[SignedAdmission, ...] = ()
    """One for each node and invite, in the order in which they were accepted."""
    flagged: tuple[Flagged, ...] = ()
    by_node: Mapping[NodeId, AdmissionRecord] = field(default_factory=dict)
    """The latest standing record of each node."""
    uses: Mapping[int, int] = field(default_factory=dict)
    """How many nodes each invite, by serial, has brought without an operator's word."""
    pairs: frozenset[tuple[NodeId, int]] = frozenset()
    """Which node has come by which invite."""

    def holds(self, node_id: NodeId, invite_serial: int) -> bool:
        """Whether the node's admission by this invite stands."""
        return (node_id, invite_serial) in self.pairs

    def shared_names(
        self, forgotten: frozenset[tuple[NodeName, NodeId]] = frozenset()
    ) -> Mapping[NodeName, tuple[NodeId, ...]]:
        """Names that several keys go by: reimaged machines, or a conflict; oldest first.

        `forgotten` are the names that operators have taken from a key.
        """
        keys: dict[NodeName, list[NodeId]] = {}
        for admission in sorted(self.standing, key=rank):
            name, node_id = admission.record.name, admission.record.node_id
            ids = keys.setdefault(name, [])
            if node_id not in ids and (name, node_id) not in forgotten:
                ids.append(node_id)
        return {name: tuple(ids) for name, ids in keys.items() if len(ids) > 1}


def settle(
    admissions: Admissions,
    *,
    invites: Mapping[int, IssuingRights],
    approved: frozenset[tuple[NodeId, int]] = frozenset(),
) -> Settlement:
    """Weigh the admissions. `invites` by serial; `approved` are (node, invite serial) pairs."""
    weighing = _Weighing(invites, approved)
    waiting: dict[NodeId, list[SignedAdmission]] = {}
    ready: list[tuple[Rank, SignedAdmission]] = []
    for admission in admissions.records:
        if weighing.needs_no_admitter(admission.record):
            heapq.heappush(ready, (rank(admission), admission))
        else:
            waiting.setdefault(admission.record.admitted_by, []).append(admission)
    while ready:
        _, admission = heapq.heappop(ready)
        if weighing.accept(admission):
            for next_one in waiting.pop(admission.record.node_id, []):
                heapq.heappush(ready, (rank(next_one), next_one))
    for stranded in waiting.values():
        for admission in stranded:
            weighing.flag_stranded(admission)
    return weighing.result()


class _Weighing:
    """The state of one `settle`."""

    def __init__(
        self,
        invites: Mapping[int, IssuingRights],
        approved: frozenset[tuple[NodeId, int]],
    ) -> None:
        self._invites = invites
        self._approved = approved
        self._standing: dict[tuple[NodeId, int], SignedAdmission] = {}
        self._flagged: list[Flagged] = []
        self._uses: dict[int, int] = {}

    def needs_no_admitter(self, record: AdmissionRecord) -> bool:
        """A founder's own word, or one that an operator has confirmed."""
        invite = self._invites.get(record.invite_serial)
        is_founder = invite is not None and invite.terms.may_found
        is_own_word = record.admitted_by == record.node_id
        return (is_founder and is_own_word) or self._is_approved(record)

    def accept(self, admission: SignedAdmission) -> bool:
        """Let it stand, or flag it. True where the node stands now."""
        record = admission.record
        key = (record.node_id, record.invite_serial)
        if key in self._standing:
            return True
        if refused := self._judge(record):
            self._flagged.append(Flagged(admission=admission, refused=refused))
            return False
        self._standing[key] = admission
        if not self._is_approved(record):
            # An approval is on top of the invite's uses: it must not push out who is in already.
            self._uses[record.invite_serial] = self._uses.get(record.invite_serial, 0) + 1
        return True

    def flag_stranded(self, admission: SignedAdmission) -> None:
        """An admission by somebody who was never let in."""
        record = admission.record
        if record.admitted_by == record.node_id:
            line = f"{record.name} admitted itself, which its invite does not allow"
            refused = Refused(rule=Rule.SELF_ADMISSION, line=line)
        else:
            line = f"{record.name} was admitted by {record.admitted_by.short}, who is not a member"
            refused = Refused(rule=Rule.UNKNOWN_ADMITTER, line=line)
        self._flagged.append(Flagged(admission=admission, refused=refused))

    def result(self) -> Settlement:
        """What it came to."""
        standing = tuple(self._standing.values())
        by_node = {one.record.node_id: one.record for one in sorted(standing, key=rank)}
        # A record that was flagged for its admitter may stand by another one's word.
        flagged = [
            one
            for one in self._flagged
            if (one.admission.record.node_id, one.admission.record.invite_serial)
            not in self._standing
        ]
        return Settlement(
            standing=standing,
            flagged=tuple(sorted(flagged, key=lambda one: rank(one.admission))),
            by_node=by_node,
            uses=dict(self._uses),
            pairs=frozenset(self._standing),
        )

    def _judge(self, record: AdmissionRecord) -> Refused | None:
        invite = self._invites.get(record.invite_serial)
        if invite is None:
            line = f"{record.name} came by an invite that is not known here"
            return Refused(rule=Rule.NOT_ADMITTED, line=line)
        if self._is_approved(record):
            return None
        if record.rack not in invite.racks:
            line = f"{record.name} was admitted to rack {record.rack}, which its invite is not for"
            return Refused(rule=Rule.RACK, line=line)
        if refused := check_time(invite, record.name, record.admitted_unix_seconds):
            return refused
        if invite.terms.needs_approval:
            return _awaits_approval(record.name)
        return _check_uses(invite, record.name, self._uses.get(record.invite_serial, 0))

    def _is_approved(self, record: AdmissionRecord) -> bool:
        return (record.node_id, record.invite_serial) in self._approved


def decide_admission(
    identity: NodeIdentity,
    settlement: Settlement,
    *,
    revocations: Revocations,
    approved: frozenset[tuple[NodeId, int]] = frozenset(),
    now_unix_seconds: int,
) -> AdmissionRecord | MayAdmit | Refused:
    """Whether a member may let this node in now; the record where it is in already."""
    rights = identity.rights
    if refused := check_revocation(identity, revocations):
        return refused
    if rights.serial in revocations.serials:
        line = f"{identity.name}: an operator revoked its invite {rights.serial:x}"
        return Refused(rule=Rule.REVOKED, line=line)
    if rights.kind is Kind.ISSUER:
        return _decide_renewal(identity, settlement)
    if settlement.holds(identity.node_id, rights.serial):
        return settlement.by_node[identity.node_id]
    uses = settlement.uses.get(rights.serial, 0)
    if (identity.node_id, rights.serial) in approved:
        return MayAdmit(uses=uses + 1)
    if refused := check_time(rights, identity.name, now_unix_seconds):
        return refused
    if rights.terms.needs_approval:
        return _awaits_approval(identity.name)
    return _check_uses(rights, identity.name, uses) or MayAdmit(uses=uses + 1)


def check_time(rights: IssuingRights, name: NodeName, unix_seconds: int) -> Refused | None:
    """Whether an invite lets nodes in at this time."""
    until = rights.terms.admit_until_unix_seconds
    if unix_seconds < rights.window.begin_unix_seconds:
        line = f"{name}: its invite has not begun; compare the clocks"
        return Refused(rule=Rule.LIFETIME, line=line)
    if until is None or unix_seconds > until:
        line = f"{name}: its invite has ended; `esnode cluster invite` prints a new one"
        return Refused(rule=Rule.ADMISSION_ENDED, line=line)
    return None


def _check_uses(rights: IssuingRights, name: NodeName, uses: int) -> Refused | None:
    if rights.terms.uses is None or uses < rights.terms.uses:
        return None
    line = f"{name}: its invite was for {rights.terms.uses} and has brought as many"
    return Refused(rule=Rule.USES_SPENT, line=line)


def _awaits_approval(name: NodeName) -> Refused:
    line = f"{name}: waits for an operator's approval"
    return Refused(rule=Rule.AWAITS_APPROVAL, line=line)


def _decide_renewal(identity: NodeIdentity, settlement: Settlement) -> AdmissionRecord | Refused:
    """A delegated issuer only renews: same key, same name, same rack, no further role."""
    record = settlement.by_node.get(identity.node_id)
    if record is None:
        line = f"{identity.name}: a delegated issuer renews members, it does not admit new ones"
        return Refused(rule=Rule.NOT_ADMITTED, line=line)
    if (record.name, record.rack) != (identity.name, identity.rack):
        line = f"{identity.name}: was admitted as {record.name} in rack {record.rack}"
        return Refused(rule=Rule.OTHER_SUBJECT, line=line)
    if any(role not in record.roles for role in identity.roles):
        line = f"{identity.name}: a renewal gives no role that its admission did not"
        return Refused(rule=Rule.ROLES, line=line)
    return record
