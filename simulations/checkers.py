"""What must never happen, looked for after every event.

Its own file because these are the promises of the cluster; stories only say who is well. The rules:

1. No datagram is larger than the wire allows.
2. Nobody who is well and reached is *failed* to anybody who is well.
3. Nobody's version is raised but by its own key, and nothing is believed of a node that its key did
   not sign: each belief is compared with what the witness heard being signed.
4. Whoever an operator removed is not shown as taking part one second after the record came.
5. No node takes more for members than an invite's uses and an operator's word allow.
6. Whoever may never be let in, as a story says, is shown by nobody.

Rule 3 reads whole views. In small fleets a view is read whenever its digest has changed. Beside
that, and in large fleets, so many members a second of virtual time and at the end are read as a
budget allows. Checkers change nothing, and ask the core only what everybody may ask.
"""

from collections import Counter
from dataclasses import dataclass

from cluster.gossip.effects import MemberChanged, Status
from cluster.gossip.fields import DecodeError
from cluster.gossip.messages import Address, Version
from cluster.gossip.settings import DATAGRAM_BYTES_MAX
from cluster.gossip.statements import read_member, read_state
from cluster.gossip.view import MemberView
from cluster.ids import NodeId
from simulations.fleet import Fleet
from simulations.node import Node
from simulations.sightings import view_of

_SMALL_COUNT = 64
_MEMBERS_PER_SECOND = 5_000
_MEMBERS_AT_THE_END = 250_000
_REMOVED_SECONDS = 1.0
_VIOLATIONS_MAX = 100
_GONE = (Status.REMOVED, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Something that must not happen has happened."""

    at_seconds: float
    node: str
    what: str


class Checkers:
    """Looks after one fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._witness = fleet.witness
        self._unwell: dict[NodeId, None] = {}
        self._barred: dict[NodeId, None] = {}
        self._digests: dict[int, int] = {}
        self._turn = 0
        self._addresses: dict[tuple[NodeId, Version], tuple[Address | None, ...]] = {}
        self.violations: list[Violation] = []
        self.violations_total = 0
        self.events_total = 0
        hooks = fleet.hooks
        hooks.sent.append(self._check_size)
        hooks.changed.append(self._check_change)
        hooks.removed.append(self._expect_removal)
        hooks.learned.append(self._check_admitted)
        hooks.stepped.append(self._check_step)
        fleet.world.after(1.0, self._check_some)

    def excuse(self, *nodes: Node) -> None:
        """These are not well from now on: they may be given up, and what they say of others too."""
        for node in nodes:
            self._unwell[node.node_id] = None

    def vouch(self, *nodes: Node) -> None:
        """These are well from now on."""
        for node in nodes:
            self._unwell.pop(node.node_id, None)

    def bar(self, *nodes: Node) -> None:
        """These may not be let in from now on."""
        for node in nodes:
            self._barred[node.node_id] = None

    def unbar(self, *nodes: Node) -> None:
        """These may come from now on."""
        for node in nodes:
            self._barred.pop(node.node_id, None)

    def is_well(self, node: Node) -> bool:
        """Whether nothing was done to it."""
        return node.node_id not in self._unwell

    def accuse(self, node: str, what: str) -> None:
        """Write a violation down."""
        self.violations_total += 1
        if len(self.violations) < _VIOLATIONS_MAX:
            when = round(self._fleet.now, 6)
            self.violations.append(Violation(at_seconds=when, node=node, what=what))

    def check_all(self) -> None:
        """Read every view once; of large fleets so many, by turns, as the budget allows."""
        running = self._fleet.running
        self._check_turns(min(len(running), 1 + _MEMBERS_AT_THE_END // max(1, len(running))))

    def check_beliefs(self, node: Node) -> None:
        """Whether all that a node believes was said."""
        for member in view_of(self._fleet, node).members:
            self._check_belief(node, member)

    def _check_size(self, node: Node, to: Address, datagram: bytes) -> None:
        if len(datagram) > DATAGRAM_BYTES_MAX:
            self.accuse(node.name, f"sent {len(datagram)} bytes in one datagram to {to}")

    def _check_change(self, node: Node, change: MemberChanged) -> None:
        if change.node_id in self._barred:
            name = self._fleet.by_id[change.node_id].name
            self.accuse(node.name, f"shows {name}, which may not be in: {change.reason}")
        subject = self._fleet.by_id.get(change.node_id)
        if subject is None or change.after is not Status.FAILED:
            return
        if not self.is_well(node) or not self.is_well(subject):
            return
        if self._fleet.network.is_open(node.address, subject.address):
            what = f"gave up {subject.name}, which is well and can be reached: {change.reason}"
            self.accuse(node.name, what)

    def _expect_removal(self, node: Node, subject: NodeId) -> None:
        self._fleet.world.after(_REMOVED_SECONDS, self._check_removal, node, subject, node.epoch)

    def _check_removal(self, node: Node, subject: NodeId, epoch: int) -> None:
        if node.core is None or node.epoch != epoch:
            return
        member = view_of(self._fleet, node).get(subject)
        if member is not None and member.status not in _GONE:
            name = self._fleet.by_id[subject].name
            self.accuse(node.name, f"shows {name} as {member.status}, which was removed")
        self._fleet.world.after(_REMOVED_SECONDS, self._check_removal, node, subject, epoch)

    def _check_admitted(self, node: Node) -> None:
        office = self._fleet.office
        if office is None or node.core is None:
            return
        brought: Counter[int] = Counter()
        for node_id, identity in node.peer.roster.identities().items():
            serial = identity.rights.serial
            if (node_id, serial) in office.approved:
                continue
            brought[serial] += 1
            if serial in office.unapproved:
                what = f"has let {identity.name} in, for whom no operator has spoken"
                self.accuse(node.name, what)
        for serial, uses in office.uses.items():
            if brought[serial] > uses:
                what = f"has let {brought[serial]} in by an invite for {uses}"
                self.accuse(node.name, what)

    def _check_step(self, node: Node) -> None:
        self.events_total += 1
        if len(self._fleet.nodes) > _SMALL_COUNT or node.gossip is None:
            return
        digest = node.gossip.digest
        if self._digests.get(node.number) != digest:
            self._digests[node.number] = digest
            self.check_beliefs(node)

    def _check_some(self) -> None:
        count = len(self._fleet.nodes)
        self._check_turns(min(count, max(1, _MEMBERS_PER_SECOND // count)))
        self._fleet.world.after(1.0, self._check_some)

    def _check_turns(self, count: int) -> None:
        running = self._fleet.running
        for _ in range(count):
            self._turn = (self._turn + 1) % max(1, len(running))
            if running:
                self.check_beliefs(running[self._turn])

    def _addresses_said(self, node_id: NodeId, version: Version) -> tuple[Address | None, ...]:
        bodies = self._witness.bodies(node_id, version, is_state=False)
        known = self._addresses.get((node_id, version))
        if known is None or len(known) != len(bodies):
            known = self._addresses[node_id, version] = tuple(_address(one) for one in bodies)
        return known

    def _check_belief(self, node: Node, member: MemberView) -> None:
        subject = self._fleet.by_id.get(member.node_id)
        if subject is None:
            self.accuse(node.name, f"believes in {member.name}, which does not exist")
            return
        if member.node_id in self._barred:
            self.accuse(node.name, f"shows {subject.name}, which may not be in")
        newest = self._witness.newest(member.node_id)
        if newest is None or member.version > newest:
            what = f"holds version {member.version} of {subject.name}, whose key said at most"
            self.accuse(node.name, f"{what} {newest}")
            return
        said = self._addresses_said(member.node_id, member.version)
        if member.status is not Status.LEFT and member.address not in said:
            what = f"has {subject.name} at {member.address}, which its key never said"
            self.accuse(node.name, what)
        if member.state is not None:
            states = self._witness.bodies(member.node_id, member.state_version, is_state=True)
            if not any(_says_state(body, member.state) for body in states):
                self.accuse(node.name, f"has a state of {subject.name} that its key never signed")


def _address(body: bytes) -> Address | None:
    try:
        addresses = read_member(body).addresses
    except DecodeError:
        # A farewell names no address.
        return None
    return addresses[0] if addresses else None


def _says_state(body: bytes, state: bytes) -> bool:
    try:
        return read_state(body) == state
    except DecodeError:
        return False
