"""From `cluster init` to a renewed node, and what an invite does not allow."""

from dataclasses import replace

import pytest

from cluster.enrolment import (
    InviteWish,
    NotAccepted,
    add_operator,
    delegate_issuer,
    issue_invite,
    open_invite,
    renew,
    renew_by_issuer,
)
from cluster.errors import Misuse, PeerFault
from cluster.identity.extensions import Kind
from cluster.identity.refusals import Rule
from cluster.ids import NamePrefix, parse_node_name
from tests.identities import DAY, HOUR, NOW, POWER, R01, R02, Lab


def test_one_invite_makes_many_nodes_with_keys_of_their_own() -> None:
    lab = Lab()
    invite = lab.invite()

    nodes = [lab.join(invite, f"gpu-{number}") for number in range(3)]

    assert len({node.identity.node_id for node in nodes}) == 3
    assert len({node.identity.serial for node in nodes}) == 3
    assert {node.identity.rights.serial for node in nodes} == {invite.rights.serial}


def test_a_reimaged_node_keeps_its_name_and_gets_another_id() -> None:
    lab = Lab()

    before, after = lab.join(lab.invite(), "gpu-17"), lab.join(lab.invite(), "gpu-17")

    assert before.identity.name == after.identity.name
    assert before.identity.node_id != after.identity.node_id


def test_a_node_lives_no_longer_than_its_invite() -> None:
    lab = Lab()

    node = lab.join(lab.invite(lifetime_days=10, ttl_seconds=9 * DAY), "gpu-17", now=NOW + 5 * DAY)

    assert node.identity.window.begin_unix_seconds == NOW + 5 * DAY - HOUR
    assert node.identity.window.end_unix_seconds == NOW + 10 * DAY


@pytest.mark.parametrize(
    ("name", "now", "rule"),
    [
        pytest.param("cpu-1", NOW, Rule.NAME_PREFIX, id="another-prefix"),
        pytest.param("gpu-1", NOW + DAY + 1, Rule.ADMISSION_ENDED, id="too-late"),
        pytest.param("gpu-1", NOW - DAY, Rule.LIFETIME, id="a-clock-that-is-behind"),
    ],
)
def test_joining_is_refused_at_once_where_others_would_refuse_later(
    name: str, now: int, rule: Rule
) -> None:
    lab = Lab()
    invite = lab.invite(name_prefix=NamePrefix("gpu-"))

    with pytest.raises(NotAccepted) as caught:
        lab.join(invite, name, now=now)

    assert caught.value.refused.rule is rule
    assert str(caught.value) == caught.value.refused.line


def test_renewal_keeps_key_and_name_and_takes_the_fresh_invite_s_terms() -> None:
    lab = Lab()
    node = lab.join(lab.invite(), "gpu-17")

    renewed = renew(
        node,
        lab.invite(R02, roles=(POWER,)),
        now_unix_seconds=NOW + HOUR,
        random_bytes=lab.random_bytes,
    )

    assert renewed.identity.node_id == node.identity.node_id
    assert renewed.identity.name == "gpu-17"
    assert (renewed.identity.rack, renewed.identity.roles) == (R02, (POWER,))


def test_renewal_by_another_cluster_s_invite_is_refused() -> None:
    lab, other = Lab(), Lab(seed=2, name="other")
    node = lab.join(lab.invite(), "gpu-17")

    with pytest.raises(PeerFault, match=r"the invite is to cluster other \(.*this node is of lab"):
        renew(node, other.invite(), now_unix_seconds=NOW, random_bytes=lab.random_bytes)


def test_a_delegated_issuer_renews_only_within_its_racks_and_roles() -> None:
    lab = Lab()
    issuer = delegate_issuer(
        lab.keys, (R01,), roles=(POWER,), now_unix_seconds=NOW, random_bytes=lab.random_bytes
    )
    plain = lab.join(lab.invite(roles=(POWER,)), "gpu-1").identity
    rich = lab.join(lab.invite(), "gpu-2").identity

    def ask(node: object) -> Rule | None:
        try:
            certificate = renew_by_issuer(
                issuer,
                node,
                lab.keys.authority,
                now_unix_seconds=NOW,
                random_bytes=lab.random_bytes,
            )
        except NotAccepted as refused:
            return refused.refused.rule
        assert certificate.public_key == plain.public_key
        return None

    assert issuer.rights.kind is Kind.ISSUER
    assert ask(plain) is None
    assert ask(rich) is Rule.ROLES
    assert ask(replace(plain, rack=R02)) is Rule.NAME_CONSTRAINT


def test_a_delegated_issuer_s_key_makes_no_invite() -> None:
    lab = Lab()
    issuer = delegate_issuer(lab.keys, (R01,), now_unix_seconds=NOW, random_bytes=lab.random_bytes)
    token = issue_invite(
        lab.keys,
        InviteWish(rack=R01, ttl_seconds=DAY),
        now_unix_seconds=NOW,
        random_bytes=lab.random_bytes,
    )
    forged = replace(token, invite_der=issuer.certificate.der, invite_seed=issuer.signer.to_seed())

    with pytest.raises(PeerFault):
        open_invite(forged)


@pytest.mark.parametrize(
    "wish",
    [
        pytest.param({"may_found": True}, id="many-founders"),
        pytest.param({"ttl_seconds": 0}, id="no-time"),
        pytest.param({"lifetime_days": -1}, id="no-life"),
        pytest.param({"name_prefix": "NOT A PREFIX"}, id="a-prefix-that-was-not-parsed"),
    ],
)
def test_an_invite_that_makes_no_sense_is_a_bug_of_ours(wish: dict[str, object]) -> None:
    lab = Lab()

    with pytest.raises(Misuse):
        issue_invite(
            lab.keys,
            InviteWish(**{"rack": R01, "ttl_seconds": DAY, **wish}),
            now_unix_seconds=NOW,
            random_bytes=lab.random_bytes,
        )


def test_operators_have_keys_of_their_own() -> None:
    lab = Lab()

    alice, bob = (
        add_operator(
            lab.keys, parse_node_name(name), now_unix_seconds=NOW, random_bytes=lab.random_bytes
        )
        for name in ("alice", "bob")
    )

    assert alice.operator.operator_id != bob.operator.operator_id
    assert alice.signer.public_key == alice.operator.public_key
