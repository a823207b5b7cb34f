"""What one member that lies may do to the others with its own signature: nothing that lasts."""

from dataclasses import replace

import pytest

from cluster import countersigned
from cluster.assembly import chain_of
from cluster.enrolment import NodeKeys, renew
from cluster.identity.admission import AdmissionRecord, SignedAdmission, sign_admission
from cluster.identity.operator_records import NodeRevoked
from cluster.ids import NodeId, NodeName, RackId
from tests.identities import NOW, R01, R02
from tests.rosters import Club, roster_of, tell


def word(liar: NodeKeys, about: NodeKeys, **changes: object) -> SignedAdmission:
    """A countersignature that the liar makes."""
    record = AdmissionRecord(
        cluster_id=liar.authority.cluster_id,
        invite_serial=about.identity.rights.serial,
        node_id=about.identity.node_id,
        name=about.identity.name,
        rack=about.identity.rack,
        roles=about.identity.roles,
        uses=1,
        admitted_by=liar.identity.node_id,
        admitted_unix_seconds=NOW + 1,
    )
    return sign_admission(replace(record, **changes), liar.signer)  # type: ignore[arg-type]


@pytest.fixture
def club() -> Club:
    return Club()


@pytest.fixture
def liar(club: Club) -> NodeKeys:
    keys = club.newcomer("liar")
    club.admit(keys)
    return keys


def invented(number: int) -> dict[str, object]:
    return {"node_id": NodeId(number.to_bytes(16)), "name": NodeName(f"x{number}")}


def test_nobody_spends_the_uses_of_an_invite_on_nodes_that_never_were(
    club: Club, liar: NodeKeys
) -> None:
    honest = club.newcomer("n2", uses=2)
    club.admit(honest, now=NOW + 60)

    club.roster.learn([word(liar, honest, **invented(number)) for number in range(9)])

    assert club.roster.identity_of(honest.identity.node_id) is not None
    assert club.roster.standing_alarms() == ()


def test_admissions_of_invented_nodes_leave_nothing_behind(club: Club, liar: NodeKeys) -> None:
    marks = club.roster.marks()

    for batch in range(30):
        lies = [word(liar, liar, **invented(batch * 100 + number)) for number in range(100)]
        assert club.roster.learn(lies).papers == ()

    assert club.roster.marks() == marks


def test_of_one_member_about_one_node_only_a_few_admissions_are_kept(
    club: Club, liar: NodeKeys
) -> None:
    honest = club.newcomer("n2")
    club.admit(honest)
    before = len(club.roster.marks())

    for later in range(50):
        club.roster.learn([word(liar, honest, admitted_unix_seconds=NOW + 100 - later)])

    assert len(club.roster.marks()) == before + countersigned.SAME_MAX


def test_a_flood_of_admissions_that_wait_keeps_no_honest_one_out(
    club: Club, liar: NodeKeys
) -> None:
    other = roster_of(liar)
    other.learn([word(liar, liar, **invented(number)) for number in range(3000)])

    tell(other, club.roster)

    assert other.is_own_in


@pytest.mark.parametrize(
    ("name", "rack"),
    [pytest.param("n9", R01, id="another-name"), pytest.param("n2", R02, id="another-rack")],
)
def test_nobody_gives_a_member_another_name_or_rack(
    club: Club, liar: NodeKeys, name: str, rack: RackId
) -> None:
    honest = club.newcomer("n2")
    club.admit(honest)
    invite = club.lab.invite(rack)
    renamed = replace(honest, identity=replace(honest.identity, name=NodeName(name)))
    made = renew(renamed, invite, now_unix_seconds=NOW + 60, random_bytes=club.lab.random_bytes)

    club.roster.learn([chain_of(made), word(liar, made)])

    held = club.roster.identity_of(honest.identity.node_id)
    assert held is not None
    assert (held.name, held.rack) == ("n2", R01)


def test_certificates_of_one_node_by_one_invite_are_bounded(club: Club) -> None:
    invite = club.lab.invite()
    keys = club.lab.join(invite, "n2")
    club.admit(keys)

    for later in range(40):
        again = renew(
            keys, invite, now_unix_seconds=NOW + later, random_bytes=club.lab.random_bytes
        )
        club.roster.learn([chain_of(again)])
    fresh = renew(
        keys, club.lab.invite(), now_unix_seconds=NOW + 90, random_bytes=club.lab.random_bytes
    )
    club.admit(fresh)

    assert len(club.roster.marks()) < 30
    held = club.roster.identity_of(keys.identity.node_id)
    assert held is not None
    assert held.serial == fresh.identity.serial


def test_a_long_log_is_learned_at_once_as_one_by_one(club: Club) -> None:
    records = [club.introduce_operator()]
    records += [club.say(NodeRevoked(node_id=NodeId(bytes([n]) * 16))) for n in range(1, 30)]
    slow = Club().roster

    learned = club.roster.learn(reversed(records))
    for record in records:
        slow.learn([record])

    assert len(learned.records) == 30
    assert club.roster.log.records == slow.log.records
    assert len(club.roster.withdrawals()) == 29
