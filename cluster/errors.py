"""The two kinds of error of the peers' world: somebody else's, and our own.

Their own file because every other one needs them. A fault of a peer is counted and what it sent is
dropped; misuse is a bug of ours and ends the process, so that it is restarted in its safe state.
What is expected (a certificate that does not hold, an invite that is used up) is neither: it is a
value, see `cluster.identity.refusals`.
"""


class PeerFault(Exception):
    """What came from outside cannot be right. The text is one line and holds no secret."""


class Malformed(PeerFault):
    """Bytes or a text that do not have the form they claim."""


class Misuse(Exception):
    """Our own code asked for something that makes no sense."""
