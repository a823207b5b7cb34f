"""Rosters of several members, and operators' records for them."""

from cluster import keyring
from cluster.assembly import chain_of, judge_with
from cluster.enrolment import NodeKeys, OperatorKeys, add_operator
from cluster.identity.operator_log import read_log
from cluster.identity.operator_records import (
    OperatorAdded,
    OperatorRecord,
    SignedRecord,
    Statement,
    log_root,
    sign_record,
)
from cluster.ids import OperatorId, parse_node_name
from cluster.keyring import Ed25519Verifier
from cluster.papers import decode_papers
from cluster.roster import Roster
from cluster.signatures import Signer
from tests.identities import NOW, Lab


def roster_of(keys: NodeKeys) -> Roster:
    roster = Roster(
        authority=keys.authority,
        own=keys.identity,
        signer=keys.signer,
        verifier=Ed25519Verifier(),
        judge_chain=judge_with(keys.authority),
        read_certificate=keyring.read_certificate,
    )
    roster.learn([chain_of(keys)])
    return roster


class Club:
    """A founder and whoever it lets in."""

    def __init__(self, seed: int = 1) -> None:
        self.lab = Lab(seed)
        self.founder = self.lab.join(self.lab.invite(may_found=True, uses=1), "n1")
        self.roster = roster_of(self.founder)
        self.roster.found(now_unix_seconds=NOW)
        self.operator: OperatorKeys = add_operator(
            self.lab.keys,
            parse_node_name("ada"),
            now_unix_seconds=NOW,
            random_bytes=self.lab.random_bytes,
        )
        self.records: list[SignedRecord] = []

    def newcomer(self, name: str, **wish: object) -> NodeKeys:
        return self.lab.join(self.lab.invite(**wish), name)

    def admit(self, keys: NodeKeys, now: int = NOW) -> None:
        _, refused = self.roster.welcome(chain_of(keys), now_unix_seconds=now)
        assert refused is None

    def introduce_operator(self) -> SignedRecord:
        added = OperatorAdded(certificate_der=self.operator.certificate.der)
        authority = OperatorId(self.lab.keys.authority.cluster_id)
        return self.say(added, signer=self.lab.keys.signer, operator_id=authority)

    def say(
        self,
        statement: Statement,
        *,
        signer: Signer | None = None,
        operator_id: OperatorId | None = None,
    ) -> SignedRecord:
        log = read_log(
            self.records,
            self.lab.keys.authority,
            verifier=Ed25519Verifier(),
            read_certificate=keyring.read_certificate,
        )
        cluster_id = self.lab.keys.authority.cluster_id
        head = log.heads[0] if log.heads else None
        record = OperatorRecord(
            cluster_id=cluster_id,
            sequence=1 if head is None else head.record.sequence + 1,
            previous=log_root(cluster_id) if head is None else head.hash,
            statement=statement,
            signed_by=operator_id or self.operator.operator.operator_id,
            written_unix_seconds=NOW,
        )
        signed = sign_record(record, signer or self.operator.signer)
        self.records.append(signed)
        return signed


def tell(to: Roster, of: Roster) -> None:
    """All that one has, for the other."""
    to.learn(decode_papers(of.give((), to.marks())))
