"""Who is let in: `--ttl`, `--uses`, `--approve`, and the record that says so."""

from dataclasses import replace

import pytest

from cluster.codec import encode_document
from cluster.enrolment import NodeKeys, OpenedInvite, delegate_issuer, renew_by_issuer
from cluster.errors import Malformed
from cluster.identity.admission import (
    AdmissionRecord,
    Admissions,
    SignedAdmission,
    check_admission,
    decode_admission,
    decode_serial,
    encode_admission,
    encode_serial,
)
from cluster.identity.chains import NodeIdentity, judge_node
from cluster.identity.refusals import Refused, Rule
from cluster.identity.settlement import MayAdmit, Settlement, decide_admission, settle
from cluster.identity.standing import Revocations
from cluster.ids import ClusterId, NodeId
from cluster.keyring import Ed25519Verifier
from tests.identities import DAY, NOW, POWER, R01, R02
from tests.identity_admissions import FOUNDED, FOUNDER, FOUNDING, LAB, admit, invites

VERIFIER = Ed25519Verifier()


def test_an_admission_is_read_back_from_its_bytes() -> None:
    record = FOUNDED.record

    assert decode_admission(encode_admission(record)) == record


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="empty"),
        pytest.param(encode_document((1, "admission")), id="nothing-said"),
        pytest.param(encode_document((2, *range(10))), id="another-format"),
        pytest.param(
            encode_admission(replace(FOUNDED.record, roles=(POWER, POWER))), id="roles-twice"
        ),
        pytest.param(encode_admission(replace(FOUNDED.record, uses=0)), id="no-use"),
    ],
)
def test_what_is_no_admission_is_refused(payload: bytes) -> None:
    with pytest.raises(Malformed):
        decode_admission(payload)


@pytest.mark.parametrize("serial", [1, 255, 256, 2**127 + 1, 2**159 - 1])
def test_a_serial_is_read_back_from_its_bytes(serial: int) -> None:
    assert decode_serial(encode_serial(serial)) == serial


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1", b"x" * 21])
def test_what_is_no_serial_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode_serial(data)


@pytest.mark.parametrize(
    ("change", "cluster_id", "signer", "rule"),
    [
        pytest.param({}, LAB.keys.authority.cluster_id, FOUNDER, None, id="as-signed"),
        pytest.param(
            {"uses": 2}, LAB.keys.authority.cluster_id, FOUNDER, Rule.SIGNATURE, id="altered"
        ),
        pytest.param({}, ClusterId(b"x" * 16), FOUNDER, Rule.FOREIGN_CLUSTER, id="elsewhere"),
        pytest.param(
            {},
            LAB.keys.authority.cluster_id,
            LAB.join(FOUNDING, "gpu-02"),
            Rule.OTHER_SUBJECT,
            id="somebody-else",
        ),
    ],
)
def test_an_admission_is_worth_its_signature(
    change: dict[str, object], cluster_id: ClusterId, signer: NodeKeys, rule: Rule | None
) -> None:
    admission = SignedAdmission(
        record=replace(FOUNDED.record, **change), signature=FOUNDED.signature
    )

    refused = check_admission(
        admission, cluster_id=cluster_id, public_key=signer.signer.public_key, verifier=VERIFIER
    )

    assert (refused.rule if refused else None) is rule


def decide(
    identity: NodeIdentity,
    *admissions: SignedAdmission,
    now: int = NOW,
    revocations: Revocations | None = None,
    approved: frozenset[tuple[NodeId, int]] = frozenset(),
    opened: tuple[OpenedInvite, ...] = (),
) -> AdmissionRecord | MayAdmit | Refused:
    settlement = settle(
        Admissions().merge((FOUNDED, *admissions)), invites=invites(*opened), approved=approved
    )
    return decide_admission(
        identity,
        settlement,
        revocations=revocations or Revocations(),
        approved=approved,
        now_unix_seconds=now,
    )


def rule_of(decision: AdmissionRecord | MayAdmit | Refused) -> Rule:
    assert isinstance(decision, Refused), decision
    return decision.rule


def test_an_invite_admits_until_its_end_and_not_a_second_longer() -> None:
    invite = LAB.invite(ttl_seconds=DAY)
    node = LAB.join(invite, "gpu-02").identity

    assert decide(node, now=NOW + DAY) == MayAdmit(uses=1)
    late = decide(node, now=NOW + DAY + 1)
    assert rule_of(late) is Rule.ADMISSION_ENDED
    assert isinstance(late, Refused)
    assert late.line == "gpu-02: its invite has ended; `esnode cluster invite` prints a new one"
    assert rule_of(decide(node, now=NOW - DAY)) is Rule.LIFETIME


def test_an_invite_admits_as_many_as_it_says() -> None:
    invite = LAB.invite(uses=2)
    first, second, third = (LAB.join(invite, f"gpu-1{number}") for number in range(3))
    one, two = admit(first, by=FOUNDER), admit(second, by=FOUNDER, at=NOW + 1, uses=2)

    assert decide(first.identity, opened=(invite,)) == MayAdmit(uses=1)
    assert decide(second.identity, one, opened=(invite,)) == MayAdmit(uses=2)
    assert rule_of(decide(third.identity, one, two, opened=(invite,))) is Rule.USES_SPENT


def test_a_node_that_is_in_stays_in_when_it_comes_again() -> None:
    invite = LAB.invite(uses=1)
    node = LAB.join(invite, "gpu-02")
    admission = admit(node, by=FOUNDER)

    again = decide(node.identity, admission, now=NOW + 9 * DAY, opened=(invite,))

    assert again == admission.record


def test_an_invite_with_approval_waits_for_an_operator() -> None:
    invite = LAB.invite(needs_approval=True)
    node = LAB.join(invite, "gpu-02").identity
    word = frozenset({(node.node_id, invite.rights.serial)})

    assert rule_of(decide(node)) is Rule.AWAITS_APPROVAL
    assert decide(node, approved=word) == MayAdmit(uses=1)
    assert rule_of(decide(node, approved=frozenset({(node.node_id, 1)}))) is Rule.AWAITS_APPROVAL


def test_what_is_revoked_is_not_admitted() -> None:
    invite = LAB.invite()
    node = LAB.join(invite, "gpu-02").identity

    by_key = decide(node, revocations=Revocations(node_ids=frozenset({node.node_id})))
    by_invite = decide(node, revocations=Revocations(serials=frozenset({invite.rights.serial})))

    assert rule_of(by_key) is Rule.REVOKED
    assert rule_of(by_invite) is Rule.REVOKED


def test_a_delegated_issuer_renews_members_and_admits_nobody() -> None:
    issuer = delegate_issuer(
        LAB.keys, (R01, R02), now_unix_seconds=NOW, random_bytes=LAB.random_bytes
    )

    def renewed(node: NodeIdentity) -> NodeIdentity:
        certificate = renew_by_issuer(
            issuer,
            node,
            LAB.keys.authority,
            now_unix_seconds=NOW,
            random_bytes=LAB.random_bytes,
        )
        judged = judge_node((certificate, issuer.certificate), LAB.keys.authority, VERIFIER)
        assert isinstance(judged, NodeIdentity)
        return judged

    stranger = LAB.join(LAB.invite(), "gpu-02").identity
    member = FOUNDER.identity

    assert decide(renewed(member)) == FOUNDED.record
    assert rule_of(decide(renewed(stranger))) is Rule.NOT_ADMITTED
    assert rule_of(decide(renewed(replace(member, rack=R02)))) is Rule.OTHER_SUBJECT
    plain = replace(FOUNDED.record, roles=(POWER,))
    settlement = Settlement(by_node={member.node_id: plain})
    beyond = decide_admission(
        renewed(member), settlement, revocations=Revocations(), now_unix_seconds=NOW
    )
    assert rule_of(beyond) is Rule.ROLES
