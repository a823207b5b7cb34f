"""The operators' log: which records stand, in which order, where they fork, and what follows.

Its own file because gathering is trivial (records are a set, keyed by their hash) and reading is
not. What the log says is a function of the set of records alone, so members that have the same
records agree, in whatever order they came. The rules:

1. A record stands when the authority, or an operator that the authority certified, signed it.
2. The authority alone can revoke an operator: else a stolen operator key could revoke the others.
   Of a revoked operator, what came before the revocation in the log stands; the rest does not.
3. Two records after the same one are a fork: both are kept, and the fork is reported.
4. A record whose predecessor is missing waits. Only what withdraws trust (revoked, removed) counts
   at once, since to wait with it is the more dangerous mistake.

It must not know files or peers. Signatures are judged by a verifier that is handed in, certificates
by a reader that is handed in.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from cluster.errors import Malformed
from cluster.identity.certificates import CertificateFacts, Window
from cluster.identity.chains import OperatorIdentity, TrustedAuthority, judge_operator
from cluster.identity.operator_records import (
    CertificateRevoked,
    NameForgotten,
    NodeApproved,
    NodeRemoved,
    NodeRevoked,
    OperatorAdded,
    SignedRecord,
    check_record,
    log_root,
)
from cluster.identity.refusals import Refused, Rule
from cluster.identity.standing import IN_FORCE, Revocations, judge_validity
from cluster.ids import NodeId, NodeName, OperatorId
from cluster.signatures import Verifier

CertificateReader = Callable[[bytes], CertificateFacts]
"""Facts out of DER; raises `Malformed`. The keyring's `read_certificate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """Several records that name the same one before them."""

    previous: bytes = field(repr=False)
    branches: tuple[SignedRecord, ...]

    @property
    def line(self) -> str:
        """What to tell the operators."""
        sequence = self.branches[0].record.sequence
        signers = ", ".join(branch.record.signed_by.short for branch in self.branches)
        return (
            f"operator log forks at record {sequence}: {len(self.branches)} records by {signers}; "
            "all are kept"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorLog:
    """What a set of operator records says."""

    records: tuple[SignedRecord, ...] = ()
    """Those that stand, each after the one it names; at a fork by hash."""
    waiting: tuple[SignedRecord, ...] = ()
    """Signed, but a record before them has not arrived."""
    refused: tuple[tuple[SignedRecord, Refused], ...] = ()
    forks: tuple[Fork, ...] = ()
    heads: tuple[SignedRecord, ...] = ()
    """Those that no other one follows: the next record names the first of them."""
    operators: Mapping[OperatorId, OperatorIdentity] = field(default_factory=dict)
    """Those whose new records count."""
    revocations: Revocations = field(default_factory=Revocations)
    approved: frozenset[tuple[NodeId, int]] = frozenset()
    """Node and invite serial, for `settle`."""
    forgotten: frozenset[tuple[NodeName, NodeId]] = frozenset()


def gather(*known: Iterable[SignedRecord]) -> tuple[SignedRecord, ...]:
    """All records of several members, each once; commutative, associative, idempotent.

    Two signatures over one content are one record; the smaller is kept so that all keep the same.
    """
    by_hash: dict[bytes, SignedRecord] = {}
    for records in known:
        for signed in records:
            kept = by_hash.get(signed.hash)
            if kept is None or signed.signature < kept.signature:
                by_hash[signed.hash] = signed
    return tuple(sorted(by_hash.values(), key=_order))


def read_log(
    records: Iterable[SignedRecord],
    authority: TrustedAuthority,
    *,
    verifier: Verifier,
    read_certificate: CertificateReader,
) -> OperatorLog:
    """What these records say, in whatever order they are handed in."""
    reading = _Reading(gather(records), authority, verifier)
    reading.find_operators(read_certificate)
    reading.check_signatures()
    reading.link()
    reading.drop_revoked_operators()
    return reading.result()


class _Reading:
    """The state of one `read_log`."""

    def __init__(
        self, records: tuple[SignedRecord, ...], authority: TrustedAuthority, verifier: Verifier
    ) -> None:
        self._records = records
        self._authority = authority
        self._verifier = verifier
        self._authority_id = OperatorId(authority.cluster_id)
        self._operators: dict[OperatorId, OperatorIdentity] = {}
        self._refused: dict[bytes, tuple[SignedRecord, Refused]] = {}
        self._signed: dict[bytes, SignedRecord] = {}
        self._linked: dict[bytes, SignedRecord] = {}
        self._revoked_operators: dict[OperatorId, list[SignedRecord]] = {}

    def find_operators(self, read_certificate: CertificateReader) -> None:
        """An operator's certificate is its own proof: it counts wherever in the log it stands."""
        for signed in self._records:
            if not isinstance(signed.record.statement, OperatorAdded):
                continue
            judged = self._judge_operator(signed.record.statement, read_certificate)
            if isinstance(judged, Refused):
                self._refuse(signed, judged)
            else:
                self._operators[judged.operator_id] = judged

    def check_signatures(self) -> None:
        """Keep what an operator of this cluster, or its authority, has signed."""
        for signed in self._records:
            if signed.hash in self._refused:
                continue
            if refused := self._check(signed):
                self._refuse(signed, refused)
            else:
                self._signed[signed.hash] = signed

    def link(self) -> None:
        """Keep apart what can be reached from the root of the log."""
        root = log_root(self._authority.cluster_id)
        for signed in self._signed.values():  # by sequence, so predecessors come first
            record = signed.record
            before = self._linked.get(record.previous)
            if record.previous == root:
                expected = 1
            elif before is not None:
                expected = before.record.sequence + 1
            else:
                continue
            if record.sequence == expected:
                self._linked[signed.hash] = signed
            else:
                line = f"operator record {record.sequence} stands where {expected} should"
                self._refuse(signed, Refused(rule=Rule.CHAIN_ORDER, line=line))

    def drop_revoked_operators(self) -> None:
        """Rule 2: what a revoked operator signed stands only before the revocation."""
        for signed in self._signed.values():
            statement = signed.record.statement
            if not isinstance(statement, CertificateRevoked) or signed.hash in self._refused:
                continue
            for operator_id, operator in self._operators.items():
                if operator.serial == statement.serial:
                    self._revoked_operators.setdefault(operator_id, []).append(signed)
        for operator_id, revocations in self._revoked_operators.items():
            spared = set(self._before(revocations[0]))
            for revocation in revocations[1:]:
                spared &= set(self._before(revocation))
            for signed in tuple(self._signed.values()):
                if signed.record.signed_by == operator_id and signed.hash not in spared:
                    line = f"operator record {signed.record.sequence} is by a revoked operator"
                    self._refuse(signed, Refused(rule=Rule.REVOKED_OPERATOR, line=line))

    def result(self) -> OperatorLog:
        standing = [one for one in self._linked.values() if one.hash not in self._refused]
        waiting = [
            one
            for one in self._signed.values()
            if one.hash not in self._linked and one.hash not in self._refused
        ]
        followed = {one.record.previous for one in standing}
        return OperatorLog(
            records=tuple(standing),
            waiting=tuple(waiting),
            refused=tuple(self._refused[key] for key in sorted(self._refused)),
            forks=_forks((*standing, *waiting)),
            heads=tuple(one for one in standing if one.hash not in followed),
            operators={
                key: value
                for key, value in self._operators.items()
                if key not in self._revoked_operators
            },
            revocations=_revocations((*standing, *waiting)),
            approved=frozenset(
                (one.record.statement.node_id, one.record.statement.invite_serial)
                for one in standing
                if isinstance(one.record.statement, NodeApproved)
            ),
            forgotten=frozenset(
                (one.record.statement.name, one.record.statement.node_id)
                for one in standing
                if isinstance(one.record.statement, NameForgotten)
            ),
        )

    def _judge_operator(
        self, statement: OperatorAdded, read_certificate: CertificateReader
    ) -> OperatorIdentity | Refused:
        try:
            certificate = read_certificate(statement.certificate_der)
        except Malformed as error:
            return Refused(
                rule=Rule.UNKNOWN_OPERATOR, line=f"the operator's certificate is {error}"
            )
        return judge_operator(certificate, self._authority, self._verifier)

    def _check(self, signed: SignedRecord) -> Refused | None:
        record = signed.record
        if record.signed_by == self._authority_id:
            public_key = self._authority.certificate.public_key or b""
            window = self._authority.certificate.window
        elif operator := self._operators.get(record.signed_by):
            public_key, window = operator.public_key, operator.window
        else:
            line = f"operator record {record.sequence} is by nobody that the authority certified"
            return Refused(rule=Rule.UNKNOWN_OPERATOR, line=line)
        refused = check_record(
            signed,
            cluster_id=self._authority.cluster_id,
            public_key=public_key,
            verifier=self._verifier,
        )
        return refused or _check_time(signed, window) or self._check_powers(signed)

    def _check_powers(self, signed: SignedRecord) -> Refused | None:
        statement = signed.record.statement
        is_about_operator = isinstance(statement, CertificateRevoked) and any(
            operator.serial == statement.serial for operator in self._operators.values()
        )
        if is_about_operator and signed.record.signed_by != self._authority_id:
            line = f"operator record {signed.record.sequence}: only the authority revokes operators"
            return Refused(rule=Rule.AUTHORITY_ONLY, line=line)
        return None

    def _before(self, signed: SignedRecord) -> list[bytes]:
        """The hashes of the records before this one, as far as they have arrived."""
        hashes: list[bytes] = []
        at = self._signed.get(signed.record.previous)
        while at is not None:
            hashes.append(at.hash)
            at = self._signed.get(at.record.previous)
        return hashes

    def _refuse(self, signed: SignedRecord, refused: Refused) -> None:
        self._refused[signed.hash] = (signed, refused)


def _check_time(signed: SignedRecord, window: Window) -> Refused | None:
    """By the record's own time: the log says the same to whoever reads it, and whenever."""
    if judge_validity(window, signed.record.written_unix_seconds) in IN_FORCE:
        return None
    line = (
        f"operator record {signed.record.sequence} was written outside of the lifetime of its "
        "operator's certificate; compare the clocks"
    )
    return Refused(rule=Rule.LIFETIME, line=line)


def _order(signed: SignedRecord) -> tuple[int, bytes]:
    return signed.record.sequence, signed.hash


def _forks(records: Iterable[SignedRecord]) -> tuple[Fork, ...]:
    branches: dict[bytes, list[SignedRecord]] = {}
    for signed in sorted(records, key=_order):
        branches.setdefault(signed.record.previous, []).append(signed)
    return tuple(
        Fork(previous=previous, branches=tuple(several))
        for previous, several in branches.items()
        if len(several) > 1
    )


def _revocations(records: Iterable[SignedRecord]) -> Revocations:
    node_ids: set[NodeId] = set()
    serials: set[int] = set()
    removals: set[tuple[NodeId, int]] = set()
    for signed in records:
        match signed.record.statement:
            case NodeRevoked(node_id=node_id):
                node_ids.add(node_id)
            case CertificateRevoked(serial=serial):
                serials.add(serial)
            case NodeRemoved(node_id=node_id, serial=serial):
                removals.add((node_id, serial))
            case _:
                pass
    return Revocations(
        node_ids=frozenset(node_ids), serials=frozenset(serials), removals=frozenset(removals)
    )
