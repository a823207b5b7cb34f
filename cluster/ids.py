"""What clusters, nodes, operators, racks and roles are called, and how those names are written.

Its own file because every other one speaks of them. Node, cluster and operator are known by a hash
of a public key, so nobody can choose to be somebody else; racks, names and roles are chosen by
people. They are parts of DNS names in certificates, therefore lower case. It must not know where
a name came from: every rule is a function of the text alone.
"""

import hashlib
import re
from typing import NewType, Self

from cluster.errors import Malformed, Misuse

KEY_BYTES = 32
"""An Ed25519 public key, and the seed of a private one. Source: RFC 8032, section 5.1.5."""
KEY_ID_BYTES = 16
"""Half of a SHA-256. To make a second key with a given id takes 2**128 tries; that is what counts,
since an id speaks only for whoever holds the key."""
SHORT_CHARACTERS = 8

NODE_NAME_CHARACTERS_MAX = 63
"""A common name in X.509 ends at 64. Source: RFC 5280, appendix A, ub-common-name."""
CLUSTER_NAME_CHARACTERS_MAX = 32
RACK_CHARACTERS_MAX = 32
ROLE_CHARACTERS_MAX = 24
ROLES_MAX = 8

ClusterName = NewType("ClusterName", str)
NodeName = NewType("NodeName", str)
NamePrefix = NewType("NamePrefix", str)
RackId = NewType("RackId", str)
Role = NewType("Role", str)

ANY_NAME = NamePrefix("")
"""The prefix of every name."""

POWER = Role("power")
"""May hold shares of the rack's power and raise its cap within them."""
WORK = Role("work")
"""May be given jobs of others."""

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_ROLE = re.compile(r"[a-z][a-z0-9-]*")
_PREFIX = re.compile(r"[a-z0-9][a-z0-9.-]*")


class KeyId(bytes):
    """The first 16 bytes of the SHA-256 of an Ed25519 public key; ordered as bytes."""

    __slots__ = ()

    def __new__(cls, value: bytes) -> Self:
        """An id of exactly these bytes; another length is a bug of ours."""
        if len(value) != KEY_ID_BYTES:
            raise Misuse(f"an id of a key has {KEY_ID_BYTES} bytes, not {len(value)}")
        return super().__new__(cls, value)

    @classmethod
    def of_public_key(cls, public_key: bytes) -> Self:
        """The id of whoever holds the private half of this key."""
        if len(public_key) != KEY_BYTES:
            raise Misuse(f"an Ed25519 public key has {KEY_BYTES} bytes, not {len(public_key)}")
        return cls(hashlib.sha256(public_key).digest()[:KEY_ID_BYTES])

    @classmethod
    def from_wire(cls, value: object) -> Self:
        """An id that a peer sent.

        Raises:
            Malformed: it is none.
        """
        if not isinstance(value, bytes) or len(value) != KEY_ID_BYTES:
            raise Malformed(f"{_noun(cls)} is {KEY_ID_BYTES} bytes")
        return cls(value)

    @classmethod
    def parse(cls, text: str) -> Self:
        """An id as people write it: 32 hexadecimal digits.

        Raises:
            Malformed: it is none.
        """
        written = text.strip().lower()
        if not re.fullmatch(rf"[0-9a-f]{{{2 * KEY_ID_BYTES}}}", written):
            digits = 2 * KEY_ID_BYTES
            raise Malformed(f"{_shown(text)} is not {_noun(cls)}: {digits} hexadecimal digits")
        return cls(bytes.fromhex(written))

    @property
    def short(self) -> str:
        """The first eight digits, for tables that people read; never to tell two apart."""
        return self.hex()[:SHORT_CHARACTERS]

    def __str__(self) -> str:
        return self.hex()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.short}...)"


class NodeId(KeyId):
    """A node: whoever holds its private key, at whatever address and under whatever name."""

    __slots__ = ()


class ClusterId(KeyId):
    """A cluster: the hash of its authority's public key."""

    __slots__ = ()


class OperatorId(KeyId):
    """Who signs operator records: an operator's key, or the authority's own."""

    __slots__ = ()


def parse_node_name(text: str) -> NodeName:
    """The name of a node: labels as in DNS, lower case, joined by dots.

    Raises:
        Malformed: it is none.
    """
    _check_length(text, "node name", NODE_NAME_CHARACTERS_MAX)
    if not all(_LABEL.fullmatch(label) for label in text.split(".")):
        raise Malformed(f"node name {_shown(text)} {_label_rule(text)}, joined by dots")
    return NodeName(text)


def parse_name_prefix(text: str) -> NamePrefix:
    """What the names of an invite's nodes begin with; the empty prefix allows every name.

    Raises:
        Malformed: no name can begin like this.
    """
    if text:
        _check_length(text, "name prefix", NODE_NAME_CHARACTERS_MAX - 1)
        if not _PREFIX.fullmatch(text) or ".." in text or "-." in text or ".-" in text:
            raise Malformed(f"name prefix {_shown(text)}: no node name can begin with it")
    return NamePrefix(text)


def parse_rack(text: str) -> RackId:
    """The id of a rack: one label.

    Raises:
        Malformed: it is none.
    """
    return RackId(_label(text, "rack", RACK_CHARACTERS_MAX))


def parse_cluster_name(text: str) -> ClusterName:
    """What operators call the cluster: one label, since it is also the name of a folder.

    Raises:
        Malformed: it is none.
    """
    return ClusterName(_label(text, "cluster name", CLUSTER_NAME_CHARACTERS_MAX))


def parse_roles(text: str) -> tuple[Role, ...]:
    """Roles joined by commas, in any order; sorted and without repeats in the answer.

    Roles that this version does not know are kept: a later one may.

    Raises:
        Malformed: one of them is no role, or there are too many.
    """
    written = sorted({part.strip() for part in text.split(",")}) if text.strip() else []
    for role in written:
        _check_length(role, "role", ROLE_CHARACTERS_MAX)
        if not _ROLE.fullmatch(role):
            raise Malformed(f"role {_shown(role)} is not lower-case letters, digits and hyphens")
    if len(written) > ROLES_MAX:
        raise Malformed(f"{len(written)} roles; at most {ROLES_MAX} are kept")
    return tuple(Role(role) for role in written)


def _label(text: str, what: str, characters_max: int) -> str:
    _check_length(text, what, characters_max)
    if not _LABEL.fullmatch(text):
        raise Malformed(f"{what} {_shown(text)} {_label_rule(text)}")
    return text


def _check_length(text: str, what: str, characters_max: int) -> None:
    if not text:
        raise Malformed(f"{what} is empty")
    if len(text) > characters_max:
        raise Malformed(f"{what} {_shown(text)} is longer than {characters_max} characters")


def _label_rule(text: str) -> str:
    if text != text.lower():
        return f"must be lower case: {_shown(text.lower())}"
    return "must be letters a-z, digits and inner hyphens"


def _noun(kind: type[KeyId]) -> str:
    return {NodeId: "a node id", ClusterId: "a cluster id", OperatorId: "an operator id"}.get(
        kind, "an id of a key"
    )


def _shown(text: str) -> str:
    """A text from outside on one line, shortened, without control characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
