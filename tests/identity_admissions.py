"""One cluster with a founder, and admissions signed by its members."""

from cluster.enrolment import NodeKeys, OpenedInvite
from cluster.identity.admission import (
    AdmissionRecord,
    SignedAdmission,
    sign_admission,
)
from cluster.identity.chains import IssuingRights
from cluster.identity.refusals import Rule
from cluster.identity.settlement import Settlement
from tests.identities import NOW, Lab

LAB = Lab()
FOUNDING = LAB.invite(uses=1, may_found=True)
FOUNDER = LAB.join(FOUNDING, "gpu-01")


def admit(
    node: NodeKeys, by: NodeKeys, at: int = NOW, uses: int = 1, invite: int | None = None
) -> SignedAdmission:
    identity = node.identity
    record = AdmissionRecord(
        cluster_id=identity.cluster_id,
        invite_serial=identity.rights.serial if invite is None else invite,
        node_id=identity.node_id,
        name=identity.name,
        rack=identity.rack,
        roles=identity.roles,
        uses=uses,
        admitted_by=by.identity.node_id,
        admitted_unix_seconds=at,
    )
    return sign_admission(record, by.signer)


FOUNDED = admit(FOUNDER, by=FOUNDER)


def invites(*opened: OpenedInvite) -> dict[int, IssuingRights]:
    return {one.rights.serial: one.rights for one in (FOUNDING, *opened)}


def names(settlement: Settlement) -> list[str]:
    return [one.record.name for one in settlement.standing]


def flags(settlement: Settlement) -> list[tuple[str, Rule]]:
    return [(one.admission.record.name, one.refused.rule) for one in settlement.flagged]
