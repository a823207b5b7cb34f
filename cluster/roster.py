"""Roster: who is in, by the papers that one node has seen. Pure; the page to read after `swim`.

Gossip asks it whose signatures count and knows no certificate; it knows no datagram. It gathers
papers (chains, admissions, operators' records) in whatever order they come, and what it concludes
is a function of the set alone (`settlement`, `operator_log`), so members that have the same papers
agree. The rules:

1. A node is in while one of its chains holds, an admission by that chain's invite stands, and no
   operator has withdrawn it. Of several such chains the newest counts.
2. An admission counts once the chain that it is about and the admitting member's own are known: so
   papers about a node always travel with those of whoever admitted it, up to a founder (`give`).
3. Nothing is forgotten: a chain that is out keeps its node from being admitted as a stranger.

Whatever changes is told as `Learned`. Invites are judged by wall time, which is handed in.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cluster.countersigned import Countersigned
from cluster.dossiers import Dossiers
from cluster.errors import Malformed
from cluster.gossip.members import Introduction
from cluster.identity.admission import (
    AdmissionRecord,
    SignedAdmission,
    sign_admission,
)
from cluster.identity.chains import NodeIdentity, TrustedAuthority
from cluster.identity.operator_log import CertificateReader, OperatorLog, gather, read_log
from cluster.identity.operator_records import SignedRecord
from cluster.identity.refusals import Refused
from cluster.identity.settlement import MayAdmit, Settlement, decide_admission, settle
from cluster.identity.standing import check_revocation
from cluster.ids import NodeId
from cluster.learned import NOTHING, Learned
from cluster.papers import Chain, Paper, encode_paper
from cluster.signatures import RememberingVerifier, Signer, Verifier

_STRANGERS_MAX = 16_384
"""Nodes whose chain holds and that nobody has admitted: they wait for a word or a paper."""
_SAME_MAX = 16
"""Certificates of one node by one invite: each return by the same token makes one."""

_LOST = "its admission does not stand any more; an operator can approve it"
"""Two sides of a cut let in more than an invite was for: the later ones are out on both."""

JudgeChain = Callable[[Chain], NodeIdentity | Refused]
"""What a chain proves; raises `Malformed` for bytes that are no certificates."""


@dataclass(slots=True)
class _Change:
    papers: list[Paper] = field(default_factory=list)
    is_log_new: bool = False


class Roster:
    """The papers of one node of one cluster."""

    def __init__(
        self,
        *,
        authority: TrustedAuthority,
        own: NodeIdentity,
        signer: Signer,
        verifier: Verifier,
        judge_chain: JudgeChain,
        read_certificate: CertificateReader,
    ) -> None:
        self._authority = authority
        self._own = own
        self._signer = signer
        self._verifier = RememberingVerifier(verifier)
        self._judge_chain = judge_chain
        self._read_certificate = read_certificate
        self._dossiers = Dossiers()
        self._by_chain: dict[bytes, NodeIdentity] = {}
        self._chains: dict[NodeId, dict[int, tuple[Chain, NodeIdentity]]] = {}
        self._admissions = Countersigned(
            cluster_id=authority.cluster_id,
            chains=self._chains,
            dossiers=self._dossiers,
            verifier=self._verifier,
        )
        self._records: tuple[SignedRecord, ...] = ()
        self._standing: dict[NodeId, tuple[Chain, NodeIdentity]] = {}
        self._out: dict[NodeId, str] = {}
        self._alarmed: dict[str, None] = {}
        self.log = OperatorLog()
        self.settlement = Settlement()

    # -- questions --------------------------------------------------------------------------------

    def identity_of(self, node_id: NodeId) -> NodeIdentity | None:
        """Who a node that is in is, by its certificate."""
        held = self._standing.get(node_id)
        return None if held is None else held[1]

    def identity_by(self, chain: Chain) -> NodeIdentity | None:
        """Whose chain this is, if that node is in and this chain holds, the newest or not."""
        identity = self._by_chain.get(chain.hash)
        if identity is None or identity.node_id not in self._standing:
            return None
        is_void = check_revocation(identity, self.log.revocations) is not None
        return None if is_void or not self._is_admitted(identity) else identity

    def identities(self) -> Mapping[NodeId, NodeIdentity]:
        """Everybody who is in, by id."""
        return {node_id: held[1] for node_id, held in self._standing.items()}

    def waiting(self) -> tuple[NodeIdentity, ...]:
        """Who has shown a chain whose invite needs an operator's word, and has not had it."""
        return tuple(
            identity
            for node_id, chains in self._chains.items()
            if node_id not in self._standing and node_id not in self._out
            for _, identity in chains.values()
            if identity.rights.terms.needs_approval
        )

    def withdrawals(self) -> Mapping[NodeId, str]:
        """Who is out because an operator said so, and why."""
        return dict(self._out)

    def standing_alarms(self) -> tuple[str, ...]:
        """What operators should look at, until it is mended."""
        forks = (fork.line for fork in self.log.forks)
        flagged = (one.refused.line for one in self.settlement.flagged)
        return tuple(dict.fromkeys((*forks, *flagged)))

    @property
    def is_own_in(self) -> bool:
        """Whether this node itself has been let in, as far as it knows."""
        return self._own.node_id in self._standing

    def judge_record(self, record: SignedRecord) -> Refused | None:
        """Why an operator's record does not stand beside those that are known."""
        # It is this signature that is judged, not that of the same record as it is held.
        others = (one for one in self._records if one.hash != record.hash)
        log = self._read((*others, record))
        return next((why for one, why in log.refused if one.hash == record.hash), None)

    def introductions(self) -> tuple[Introduction, ...]:
        """Everybody who is in, for gossip."""
        return tuple(_introduce(identity) for _, identity in self._standing.values())

    def marks(self) -> tuple[bytes, ...]:
        """What this node has."""
        return self._dossiers.marks()

    @property
    def dossiers(self) -> Dossiers:
        """The papers as they came."""
        return self._dossiers

    def give(self, node_ids: Iterable[NodeId], marks: Iterable[bytes] = ()) -> tuple[bytes, ...]:
        """Papers for somebody who has those of `marks`: of these nodes, or all if none is named.

        Operators' records are always among them, first, since they may say whom not to believe.
        """
        has = tuple(marks)
        return (*self.give_records(has), *self._dossiers.about(node_ids, has))

    def give_records(self, marks: Iterable[bytes] = ()) -> tuple[bytes, ...]:
        """Operators' records alone: also for a node that they have withdrawn, so that it knows."""
        return self._dossiers.records(marks)

    def own_papers(self) -> tuple[bytes, ...]:
        """What proves this node to somebody who has never heard of it; its own come first."""
        return self._dossiers.about((self._own.node_id,))

    # -- requests ---------------------------------------------------------------------------------

    def learn(self, papers: Iterable[Paper]) -> Learned:
        """Papers from a peer, from disk, or from this machine's operator."""
        change = _Change()
        encoded = {encode_paper(one): one for one in papers}
        new = {key: one for key, one in encoded.items() if not self._dossiers.has(key)}
        # Admissions count once the chains are known that they are about.
        for key, paper in sorted(new.items(), key=lambda one: not isinstance(one[1], Chain)):
            if not isinstance(paper, SignedRecord) and self._take(paper, key):
                change.papers.append(paper)
        change.papers.extend(self._admissions.take_waiting())
        records = self._take_records([one for one in new.values() if isinstance(one, SignedRecord)])
        change.papers.extend(records)
        change.is_log_new = bool(records)
        return self._conclude(change)

    def welcome(self, chain: Chain, *, now_unix_seconds: int) -> tuple[Learned, Refused | None]:
        """Somebody shows this chain: let the node in if it may come, countersigned by us.

        Raises:
            Malformed: these are no certificates.
        """
        if self.identity_by(chain) is not None:
            return NOTHING, None
        judged = self._judge_chain(chain)
        if isinstance(judged, Refused):
            return NOTHING, judged
        learned = self.learn([chain])
        decided = decide_admission(
            judged,
            self.settlement,
            revocations=self.log.revocations,
            approved=self.log.approved,
            now_unix_seconds=now_unix_seconds,
        )
        if isinstance(decided, Refused):
            return learned, decided
        if not isinstance(decided, MayAdmit):
            return learned, None
        admission = self._admission_of(judged, decided.uses, now_unix_seconds)
        return learned.joined(self.learn([admission])), None

    def found(self, *, now_unix_seconds: int) -> Learned:
        """Admit this node itself, where its invite allows that: a cluster's first one."""
        if self.is_own_in or not self._own.rights.terms.may_found:
            return NOTHING
        return self.learn([self._admission_of(self._own, 1, now_unix_seconds)])

    # -- machinery --------------------------------------------------------------------------------

    def _admission_of(
        self, identity: NodeIdentity, uses: int, now_unix_seconds: int
    ) -> SignedAdmission:
        record = AdmissionRecord(
            cluster_id=self._authority.cluster_id,
            invite_serial=identity.rights.serial,
            node_id=identity.node_id,
            name=identity.name,
            rack=identity.rack,
            roles=identity.roles,
            uses=uses,
            admitted_by=self._own.node_id,
            admitted_unix_seconds=now_unix_seconds,
        )
        return sign_admission(record, self._signer)

    def _take(self, paper: Chain | SignedAdmission, encoded: bytes) -> bool:
        """Keep one paper, if it is what it claims to be."""
        if isinstance(paper, Chain):
            return self._take_chain(paper, encoded)
        return self._admissions.take(paper, encoded)

    def _take_chain(self, chain: Chain, encoded: bytes) -> bool:
        try:
            identity = self._judge_chain(chain)
        except Malformed:
            return False
        if isinstance(identity, Refused):
            return False
        held = self._chains.get(identity.node_id)
        if held is None and len(self._chains) - len(self._standing) >= _STRANGERS_MAX:
            return False  # whoever holds an invite that has ended can make as many as they like
        serial = identity.rights.serial
        if sum(one.rights.serial == serial for _, one in (held or {}).values()) >= _SAME_MAX:
            return False
        known = self.identity_of(identity.node_id)
        if known is not None and (known.name, known.rack) != (identity.name, identity.rack):
            return False  # made for somebody else's key: a node moves under a new one
        self._chains.setdefault(identity.node_id, {})[identity.serial] = (chain, identity)
        self._by_chain[chain.hash] = identity
        self._dossiers.keep_chain(identity.node_id, encoded)
        return True

    def _take_records(self, records: Sequence[SignedRecord]) -> list[SignedRecord]:
        """Keep those that stand. The log is read once for all whose content is new."""
        fresh: dict[bytes, SignedRecord] = {}
        known = {one.hash for one in self._records}
        for one in records:
            if one.hash not in known:
                fresh.setdefault(one.hash, one)
        taken: list[SignedRecord] = []
        if len(fresh) > 1:
            refused = {one.hash for one, _ in self._read((*self._records, *fresh.values())).refused}
            taken = [one for one in fresh.values() if one.hash not in refused]
            self._records = gather(self._records, taken)
            for one in taken:
                self._dossiers.keep_record(encode_paper(one))
        rest = (one for one in records if not self._dossiers.has(encode_paper(one)))
        return [*taken, *(one for one in rest if self._take_record(one))]

    def _take_record(self, record: SignedRecord) -> bool:
        """A record is kept if it stands or waits; one that is refused may be offered again."""
        held = next((one for one in self._records if one.hash == record.hash), None)
        if held is not None and held.signature <= record.signature:
            return False  # `gather` would not keep it either
        if self.judge_record(record) is not None:
            return False
        self._records = gather(self._records, [record])
        self._dossiers.keep_record(encode_paper(record))
        return True

    def _read(self, records: Iterable[SignedRecord]) -> OperatorLog:
        return read_log(
            records,
            self._authority,
            verifier=self._verifier,
            read_certificate=self._read_certificate,
        )

    def _conclude(self, change: _Change) -> Learned:
        if not change.papers:
            return NOTHING
        records: tuple[SignedRecord, ...] = ()
        if change.is_log_new:
            known = {one.hash for one in (*self.log.records, *self.log.waiting)}
            self.log = self._read(self._records)
            both = (*self.log.records, *self.log.waiting)
            records = tuple(one for one in both if one.hash not in known)
        self._settle()
        introduced, readmitted, excluded = self._compare()
        return Learned(
            introduced=introduced,
            readmitted=readmitted,
            excluded=excluded,
            papers=tuple(change.papers),
            records=records,
            alarms=self._new_alarms(),
        )

    def _settle(self) -> None:
        invites = {
            identity.rights.serial: identity.rights
            for chains in self._chains.values()
            for _, identity in chains.values()
        }
        self.settlement = settle(
            self._admissions.all(), invites=invites, approved=self.log.approved
        )

    def _compare(
        self,
    ) -> tuple[tuple[Introduction, ...], tuple[Introduction, ...], tuple[tuple[NodeId, str], ...]]:
        before, was_out = self._standing, self._out
        self._standing, self._out = {}, {}
        introduced: list[Introduction] = []
        readmitted: list[Introduction] = []
        excluded: list[tuple[NodeId, str]] = []
        for node_id in self._chains:
            held, reason = self._judge_node(node_id)
            was_in = node_id in before or was_out.get(node_id) == _LOST
            if held is None and reason is None and was_in and node_id != self._own.node_id:
                reason = _LOST
            if held is not None:
                self._standing[node_id] = held
                if node_id in was_out:
                    readmitted.append(_introduce(held[1]))
                elif node_id not in before or before[node_id][1] != held[1]:
                    introduced.append(_introduce(held[1]))
            elif reason is not None:
                self._out[node_id] = reason
                if node_id not in was_out:
                    excluded.append((node_id, reason))
        for node_id in sorted(self.log.revocations.node_ids - self._chains.keys()):
            self._out[node_id] = "revoked by an operator"
            if node_id not in was_out:
                excluded.append((node_id, self._out[node_id]))
        return tuple(introduced), tuple(readmitted), tuple(excluded)

    def _judge_node(self, node_id: NodeId) -> tuple[tuple[Chain, NodeIdentity] | None, str | None]:
        """The chain by which a node is in; else why it is out, if an operator said so."""
        reason = None
        newest = sorted(
            self._chains[node_id].values(),
            key=lambda held: (held[1].window.begin_unix_seconds, held[1].serial),
            reverse=True,
        )
        for chain, identity in newest:
            if refused := check_revocation(identity, self.log.revocations):
                reason = refused.line
            elif self._is_admitted(identity):
                return (chain, identity), None
        return None, reason

    def _is_admitted(self, identity: NodeIdentity) -> bool:
        """By the chain's own invite; a renewal by an issuer rests on the admission before it."""
        decided = self.settlement.by_node.get(identity.node_id)
        if decided is None:
            return False
        if self.settlement.holds(identity.node_id, identity.rights.serial):
            return True
        is_issuer = identity.rights.kind.value == "issuer"
        return is_issuer and (decided.name, decided.rack) == (identity.name, identity.rack)

    def _new_alarms(self) -> tuple[str, ...]:
        new = tuple(line for line in self.standing_alarms() if line not in self._alarmed)
        self._alarmed.update(dict.fromkeys(new))
        return new


def _introduce(identity: NodeIdentity) -> Introduction:
    return Introduction(
        node_id=identity.node_id,
        public_key=identity.public_key,
        name=identity.name,
        rack=identity.rack,
    )
