"""Who is in, by the papers that one node has seen."""

import itertools

import pytest

from cluster.assembly import chain_of
from cluster.errors import Malformed
from cluster.identity.operator_records import (
    CertificateRevoked,
    NameForgotten,
    NodeApproved,
    NodeRemoved,
    NodeRevoked,
)
from cluster.identity.refusals import Rule
from cluster.papers import Chain, decode_papers, encode_wanted, read_wanted
from cluster.roster import Roster
from tests.identities import DAY, HOUR, NOW
from tests.rosters import Club, roster_of, tell


def names(roster: Roster) -> list[str]:
    return sorted(identity.name for identity in roster.identities().values())


def test_a_founder_admits_itself_and_nobody_else_does() -> None:
    club = Club()
    other = roster_of(club.newcomer("n2"))

    other.found(now_unix_seconds=NOW)

    assert club.roster.is_own_in
    assert not other.is_own_in


def test_a_newcomer_is_countersigned_and_hears_that_it_is_in() -> None:
    club = Club()
    keys = club.newcomer("n2")
    mine = roster_of(keys)

    learned, refused = club.roster.welcome(chain_of(keys), now_unix_seconds=NOW)
    tell(mine, club.roster)

    assert refused is None
    assert [one.name for one in learned.introduced] == ["n2"]
    assert mine.is_own_in
    assert names(mine) == ["n1", "n2"]


def test_who_is_in_already_costs_no_second_admission() -> None:
    club = Club()
    keys = club.newcomer("n2", uses=1)
    club.admit(keys)
    before = club.roster.marks()

    club.admit(keys)

    assert club.roster.marks() == before


def test_a_third_member_learns_of_a_newcomer_with_all_who_admitted_it() -> None:
    club = Club()
    second, third = club.newcomer("n2"), club.newcomer("n3")
    club.admit(second)
    admitting = roster_of(second)
    tell(admitting, club.roster)
    _, refused = admitting.welcome(chain_of(third), now_unix_seconds=NOW)
    assert refused is None
    fresh = roster_of(club.newcomer("n4"))

    fresh.learn(decode_papers(admitting.give((third.identity.node_id,))))

    assert "n3" in names(fresh)


def test_papers_mean_the_same_in_whatever_order_they_come() -> None:
    club = Club()
    for name in ("n2", "n3"):
        club.admit(club.newcomer(name))
    papers = decode_papers(club.roster.give(()))
    outcomes = set()
    for order in itertools.permutations(papers[:5]):
        roster = roster_of(club.newcomer("n9"))
        for paper in (*order, *papers[5:]):
            roster.learn([paper])
        outcomes.add(tuple(names(roster)))

    assert outcomes == {("n1", "n2", "n3")}


@pytest.mark.parametrize(
    ("wish", "later_seconds", "rule"),
    [
        pytest.param({"ttl_seconds": HOUR}, 2 * HOUR, Rule.ADMISSION_ENDED, id="ended"),
        pytest.param({"needs_approval": True}, 0, Rule.AWAITS_APPROVAL, id="waits"),
    ],
)
def test_a_newcomer_whose_invite_does_not_allow_it_stays_out(
    wish: dict[str, object], later_seconds: int, rule: Rule
) -> None:
    club = Club()
    keys = club.newcomer("n2", **wish)

    _, refused = club.roster.welcome(chain_of(keys), now_unix_seconds=NOW + later_seconds)

    assert refused is not None
    assert refused.rule is rule
    assert names(club.roster) == ["n1"]


def test_an_invite_brings_as_many_as_it_says() -> None:
    club = Club()
    invite = club.lab.invite(uses=2)
    members = [club.lab.join(invite, f"n{number}") for number in range(2, 5)]

    outcomes = [club.roster.welcome(chain_of(keys), now_unix_seconds=NOW)[1] for keys in members]

    assert outcomes[:2] == [None, None]
    assert outcomes[2] is not None
    assert outcomes[2].rule is Rule.USES_SPENT


def test_an_operator_lets_in_who_waits() -> None:
    club = Club()
    keys = club.newcomer("n2", needs_approval=True)
    club.roster.welcome(chain_of(keys), now_unix_seconds=NOW)
    club.roster.learn([club.introduce_operator()])
    approval = NodeApproved(
        node_id=keys.identity.node_id, invite_serial=keys.identity.rights.serial
    )

    club.roster.learn([club.say(approval)])
    club.admit(keys)

    assert names(club.roster) == ["n1", "n2"]


@pytest.mark.parametrize("kind", ["revoked", "removed", "certificate"])
def test_a_withdrawn_node_is_out_and_is_told_why(kind: str) -> None:
    club = Club()
    keys = club.newcomer("n2")
    club.admit(keys)
    mine = roster_of(keys)
    tell(mine, club.roster)
    identity = keys.identity
    statement = {
        "revoked": NodeRevoked(node_id=identity.node_id, note="lost"),
        "removed": NodeRemoved(node_id=identity.node_id, serial=identity.serial),
        "certificate": CertificateRevoked(serial=identity.serial),
    }[kind]
    club.roster.learn([club.introduce_operator()])

    learned = club.roster.learn([club.say(statement)])

    assert [node_id for node_id, _ in learned.excluded] == [identity.node_id]
    assert names(club.roster) == ["n1"]
    _, refused = club.roster.welcome(chain_of(keys), now_unix_seconds=NOW)
    assert refused is not None
    assert refused.rule in (Rule.REVOKED, Rule.REMOVED)
    told = mine.learn(decode_papers(club.roster.give_records()))
    assert identity.node_id in dict(told.excluded)


def test_a_removed_node_returns_with_a_new_certificate_and_a_revoked_one_does_not() -> None:
    from cluster.enrolment import renew

    for statement, returns in ((NodeRemoved, True), (NodeRevoked, False)):
        club = Club()
        keys = club.newcomer("n2")
        club.admit(keys)
        club.roster.learn([club.introduce_operator()])
        identity = keys.identity
        said = (
            NodeRemoved(node_id=identity.node_id, serial=identity.serial)
            if statement is NodeRemoved
            else NodeRevoked(node_id=identity.node_id)
        )
        club.roster.learn([club.say(said)])
        renewed = renew(
            keys,
            club.lab.invite(),
            now_unix_seconds=NOW + DAY,
            random_bytes=club.lab.random_bytes,
        )

        learned, refused = club.roster.welcome(chain_of(renewed), now_unix_seconds=NOW)

        assert (refused is None) is returns
        assert bool(learned.readmitted) is returns


def test_a_node_may_be_revoked_before_anybody_has_seen_its_certificate() -> None:
    club = Club()
    keys = club.newcomer("n2")
    club.roster.learn([club.introduce_operator()])

    learned = club.roster.learn([club.say(NodeRevoked(node_id=keys.identity.node_id))])

    assert [node_id for node_id, _ in learned.excluded] == [keys.identity.node_id]
    _, refused = club.roster.welcome(chain_of(keys), now_unix_seconds=NOW)
    assert refused is not None


def test_a_record_of_nobody_does_not_stand() -> None:
    club = Club()
    keys = club.newcomer("n2")
    club.admit(keys)
    forged = club.say(NodeRevoked(node_id=keys.identity.node_id))  # ada is not introduced

    refused = club.roster.judge_record(forged)
    club.roster.learn([forged])

    assert refused is not None
    assert refused.rule is Rule.UNKNOWN_OPERATOR
    assert names(club.roster) == ["n1", "n2"]


def test_a_renewed_certificate_takes_the_place_of_the_one_before() -> None:
    from cluster.enrolment import renew

    club = Club()
    keys = club.newcomer("n2")
    club.admit(keys)
    renewed = renew(
        keys, club.lab.invite(), now_unix_seconds=NOW + DAY, random_bytes=club.lab.random_bytes
    )

    club.admit(renewed)

    held = club.roster.identity_of(keys.identity.node_id)
    assert held is not None
    assert held.serial == renewed.identity.serial


def test_two_keys_under_one_name_are_shown_until_an_operator_says_otherwise() -> None:
    club = Club()
    first, second = club.newcomer("n2"), club.newcomer("n2")
    club.admit(first, NOW)
    club.admit(second, NOW + 1)
    club.roster.learn([club.introduce_operator()])
    shared = club.roster.settlement.shared_names()
    assert shared == {"n2": (first.identity.node_id, second.identity.node_id)}

    said = NameForgotten(name=first.identity.name, node_id=first.identity.node_id)
    club.roster.learn([club.say(said)])

    assert club.roster.settlement.shared_names(club.roster.log.forgotten) == {}


def test_junk_is_passed_over_and_the_rest_is_learned() -> None:
    club = Club()
    keys = club.newcomer("n2")
    club.admit(keys)
    parts = (b"junk", b"", *club.roster.give(()), b"\x93\x01\xa5chain\xc4\x01x")

    fresh = roster_of(club.newcomer("n3"))
    fresh.learn(decode_papers(parts))

    assert names(fresh) == ["n1", "n2"]
    with pytest.raises(Malformed):
        fresh.welcome(Chain(node_der=b"x", issuer_der=b"y"), now_unix_seconds=NOW)


def test_a_chain_of_another_cluster_is_nobody() -> None:
    club, other = Club(seed=1), Club(seed=2)
    stranger = other.newcomer("n2")

    _, refused = club.roster.welcome(chain_of(stranger), now_unix_seconds=NOW)

    assert refused is not None
    assert names(club.roster) == ["n1"]


def test_who_is_asked_asks_back_for_what_the_asker_has_and_it_lacks() -> None:
    club = Club()
    members = [club.newcomer(f"n{number}") for number in range(2, 90)]
    for keys in members:
        club.admit(keys)
    poor = roster_of(club.newcomer("x1"))

    lacking = poor.dossiers.lacking(club.roster.marks())
    wanted = read_wanted([b"junk", encode_wanted(lacking)])
    poor.learn(decode_papers(club.roster.dossiers.by_marks(wanted)))

    assert names(poor) == names(club.roster)
    assert poor.dossiers.lacking(club.roster.marks()) == ()
    assert read_wanted(club.roster.give(())) == ()


def test_who_was_let_in_beyond_an_invite_on_one_side_of_a_cut_is_out_once_both_are_known() -> None:
    club = Club()
    second = club.newcomer("n2")
    club.admit(second)
    other_side = roster_of(second)
    tell(other_side, club.roster)
    invite = club.lab.invite(uses=1)
    early, late = club.lab.join(invite, "n3"), club.lab.join(invite, "n4")
    club.admit(early, NOW)
    _, refused = other_side.welcome(chain_of(late), now_unix_seconds=NOW + 1)
    assert refused is None
    assert "n4" in names(other_side)

    learned = other_side.learn(decode_papers(club.roster.give(())))
    tell(club.roster, other_side)

    assert [node_id for node_id, _ in learned.excluded] == [late.identity.node_id]
    assert names(other_side) == names(club.roster) == ["n1", "n2", "n3"]
    approval = NodeApproved(
        node_id=late.identity.node_id, invite_serial=late.identity.rights.serial
    )
    records = [club.introduce_operator(), club.say(approval)]
    again = [other_side.learn([record]) for record in records]
    assert [one.name for one in again[1].readmitted] == ["n4"]
    assert "n4" in names(other_side)
