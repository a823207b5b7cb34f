"""How rack and name of a node are written as one DNS name, and when such a name is permitted.

Its own file because a rack is a name constraint: the invite permits the DNS names below
``rack-R.esnode.invalid``, and openssl, TLS libraries and we must agree on what lies below it. The
names are never looked up: ``.invalid`` resolves nowhere (RFC 2606). It must not know certificates.
"""

from cluster.errors import Malformed
from cluster.ids import NodeName, RackId, parse_node_name, parse_rack

SUFFIX = "esnode.invalid"
_RACK_LABEL = "rack-"


def rack_domain(rack: RackId) -> str:
    """What an invite for this rack permits, and everything below it."""
    return f"{_RACK_LABEL}{rack}.{SUFFIX}"


def node_domain(name: NodeName, rack: RackId) -> str:
    """The one alternative name of a node's certificate."""
    return f"{name}.{rack_domain(rack)}"


def parse_rack_domain(domain: str) -> RackId:
    """The rack that a permitted name is about.

    Raises:
        Malformed: it is about none.
    """
    label = domain.removesuffix(f".{SUFFIX}")
    if label == domain or not label.startswith(_RACK_LABEL):
        raise Malformed("a permitted name that is no rack's")
    return parse_rack(label.removeprefix(_RACK_LABEL))


def parse_node_domain(domain: str) -> tuple[NodeName, RackId]:
    """Name and rack of a node.

    Raises:
        Malformed: this is no node's name.
    """
    inner = domain.removesuffix(f".{SUFFIX}")
    name, dot, label = inner.rpartition(".")
    if inner == domain or not dot or not label.startswith(_RACK_LABEL):
        raise Malformed("an alternative name that is no node's")
    return parse_node_name(name), parse_rack(label.removeprefix(_RACK_LABEL))


def lies_below(name: str, domain: str) -> bool:
    """Whether a DNS name is the domain or below it, in any case of letters.

    Source: RFC 5280, section 4.2.1.10; a domain that begins with a dot, as openssl takes it.
    """
    name, domain = name.lower(), domain.lower()
    if not domain or name == domain:
        return True
    return name.endswith(domain if domain.startswith(".") else f".{domain}")
