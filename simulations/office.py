"""Who may be in, in a simulated cluster: its authority, invites, certificates and operator.

Its own file because it stands for the desk at which people type `esnode cluster`. The authority,
the operator and what they sign are real. A node's certificates are a few bytes that are looked up
in a table here: what certificates must look like is not what a simulation asks. It must not know
the fleet.
"""

import random
from collections.abc import Iterable
from itertools import count

from cluster.enrolment import DEFAULT_ROLES, add_operator, found_cluster
from cluster.errors import Malformed
from cluster.gossip.introduction import Introduction
from cluster.identity.admission import (
    AdmissionRecord,
    SignedAdmission,
    encode_serial,
    sign_admission,
)
from cluster.identity.certificates import Window
from cluster.identity.chains import IssuingRights, NodeIdentity
from cluster.identity.extensions import Kind, Terms
from cluster.identity.operator_records import (
    NodeApproved,
    NodeRemoved,
    NodeRevoked,
    OperatorAdded,
    OperatorRecord,
    SignedRecord,
    Statement,
    log_root,
    sign_record,
)
from cluster.ids import ClusterName, KeyId, NodeId, NodeName, OperatorId, RackId
from cluster.papers import Chain, Paper
from cluster.signatures import RandomBytes, Signer

UNIX_BEGIN_SECONDS = 1_800_000_000
"""What all wall clocks show when a run begins: a Friday in January 2027."""
_DAY_SECONDS = 86_400
_ROLES = tuple(sorted(DEFAULT_ROLES))
_WINDOW = Window(
    begin_unix_seconds=UNIX_BEGIN_SECONDS,
    end_unix_seconds=UNIX_BEGIN_SECONDS + 730 * _DAY_SECONDS,
)
_AUTHORITY = found_cluster(
    ClusterName("simulated"),
    now_unix_seconds=UNIX_BEGIN_SECONDS,
    random_bytes=random.Random("the authority of all simulations").randbytes,
)
CLUSTER = _AUTHORITY.authority.cluster_id
"""Of all simulations, so that a datagram can be forged before there is a fleet."""


class Office:
    """The desk of one cluster."""

    def __init__(self, random_bytes: RandomBytes) -> None:
        self.authority = _AUTHORITY.authority
        self._operator = add_operator(
            _AUTHORITY,
            NodeName("ada"),
            now_unix_seconds=UNIX_BEGIN_SECONDS,
            random_bytes=random_bytes,
        )
        self._identities: dict[Chain, NodeIdentity] = {}
        self._serials = count(1)
        self._records: list[SignedRecord] = []
        self.uses: dict[int, int] = {}
        """How many each invite that says so may bring, by its serial."""
        self.unapproved: dict[int, None] = {}
        """The invites whose nodes need an operator's word."""
        self.approved: dict[tuple[NodeId, int], None] = {}
        """For whom an operator has spoken: node and invite."""
        added = OperatorAdded(certificate_der=self._operator.certificate.der)
        self.first_record = self._sign(
            added, _AUTHORITY.signer, OperatorId(CLUSTER), UNIX_BEGIN_SECONDS
        )
        """That there is an operator; the first node is handed it when it founds the cluster."""

    def invite(
        self,
        rack: RackId,
        *,
        until_unix_seconds: int = UNIX_BEGIN_SECONDS + _DAY_SECONDS,
        uses: int | None = None,
        needs_approval: bool = False,
        may_found: bool = False,
    ) -> IssuingRights:
        """What `esnode cluster invite` makes."""
        serial = next(self._serials)
        if uses is not None:
            self.uses[serial] = uses
        if needs_approval:
            self.unapproved[serial] = None
        return IssuingRights(
            kind=Kind.INVITE,
            key_id=KeyId(serial.to_bytes(16, "big")),
            serial=serial,
            racks=(rack,),
            terms=Terms(
                kind=Kind.INVITE,
                roles=_ROLES,
                admit_until_unix_seconds=until_unix_seconds,
                uses=uses,
                needs_approval=needs_approval,
                may_found=may_found,
            ),
            window=_WINDOW,
        )

    def enrol(self, who: Introduction, invite: IssuingRights) -> tuple[NodeIdentity, Chain]:
        """What `esnode cluster join` makes: who a node is, and the certificates that it shows."""
        serial = next(self._serials)
        identity = NodeIdentity(
            node_id=who.node_id,
            cluster_id=CLUSTER,
            name=who.name,
            rack=who.rack,
            roles=_ROLES,
            public_key=who.public_key,
            serial=serial,
            window=_WINDOW,
            rights=invite,
        )
        chain = Chain(
            node_der=b"node " + who.node_id + encode_serial(serial),
            issuer_der=b"invite " + encode_serial(invite.serial),
        )
        self._identities[chain] = identity
        return identity, chain

    def judge(self, chain: Chain) -> NodeIdentity:
        """What a chain proves.

        Raises:
            Malformed: no certificates that this office has made.
        """
        identity = self._identities.get(chain)
        if identity is None:
            raise Malformed("not certificates of this cluster")
        return identity

    def removed_by(self, statement: Statement) -> tuple[NodeId, ...]:
        """Whom an operator's record makes a stranger."""
        match statement:
            case NodeRevoked(node_id=node_id):
                return (node_id,)
            case NodeRemoved(node_id=node_id, serial=serial):
                enrolled = self._identities.values()
                return (node_id,) if any(one.serial == serial for one in enrolled) else ()
            case _:
                return ()

    def old_papers(
        self, members: Iterable[tuple[NodeIdentity, Chain]], founder: NodeIdentity, signer: Signer
    ) -> tuple[Paper, ...]:
        """What all members of an old cluster have: the founder let everybody in, long ago."""
        papers: list[Paper] = [self.first_record]
        uses: dict[int, int] = {}
        for identity, chain in members:
            serial = identity.rights.serial
            uses[serial] = uses.get(serial, 0) + 1
            papers += [chain, _admission(identity, uses[serial], founder, signer)]
        return tuple(papers)

    def say(self, statement: Statement, *, now_unix_seconds: int) -> SignedRecord:
        """An operator's record, after all those before it."""
        if isinstance(statement, NodeApproved):
            self.approved[statement.node_id, statement.invite_serial] = None
        operator = self._operator
        return self._sign(
            statement, operator.signer, operator.operator.operator_id, now_unix_seconds
        )

    def _sign(
        self, statement: Statement, signer: Signer, by: OperatorId, at_unix_seconds: int
    ) -> SignedRecord:
        record = OperatorRecord(
            cluster_id=CLUSTER,
            sequence=len(self._records) + 1,
            previous=self._records[-1].hash if self._records else log_root(CLUSTER),
            statement=statement,
            signed_by=by,
            written_unix_seconds=at_unix_seconds,
        )
        self._records.append(sign_record(record, signer))
        return self._records[-1]


def _admission(
    identity: NodeIdentity, uses: int, founder: NodeIdentity, signer: Signer
) -> SignedAdmission:
    record = AdmissionRecord(
        cluster_id=CLUSTER,
        invite_serial=identity.rights.serial,
        node_id=identity.node_id,
        name=identity.name,
        rack=identity.rack,
        roles=identity.roles,
        uses=uses,
        admitted_by=founder.node_id,
        admitted_unix_seconds=UNIX_BEGIN_SECONDS,
    )
    return sign_admission(record, signer)
