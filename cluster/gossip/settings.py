"""How fast a cluster doubts and how much it says: every number of the protocol.

Its own file so that a figure stands beside its reason, and stories can vary one. Measured effects:
`docs/decisions/0009-gossip-core.md`. It must not know what uses a figure.
"""

from dataclasses import dataclass

DATAGRAM_BYTES_MAX = 1400
"""Passes every Ethernet and most tunnels in one piece; a lost fragment loses the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GossipSettings:
    """The figures of one cluster. All members should use the same."""

    probe_interval_seconds: float = 0.5
    """A smaller one detects sooner and sends more: one ping and one ack each."""
    probe_timeout_max_seconds: float = 0.2
    """Until helpers are asked, where nothing is known of the way. Long for a LAN."""
    probe_timeout_min_seconds: float = 0.05
    """Not less, however quick a peer was: its process may have to wait for a core."""
    helpers_count: int = 3
    """SWIM's k. One more brings little: at 25 % loss the sixth helper saves one probe in fifty."""
    suspicion_min_seconds: float = 5.6
    """With enough confirmations. A silent node must not be given up before 5.5 s: short pauses of
    5 s (a suspended process, a stuck disk) are common, and a ping may cross the crash."""
    suspicion_max_seconds: float = 12.0
    """Without confirmations: the accuser is more likely to be the one with the bad network."""
    confirmations_count: int = 2
    """Further accusers until suspicion is at its shortest."""
    quorum_count: int = 3
    """Distinct accusers that make *failed* without evidence of one's own."""
    refused_seconds: float = 1.0
    """From the first refusal to *failed*, once two observers saw one: time for a quick restart."""
    gossip_interval_seconds: float = 0.1
    fanout_count: int = 3
    eager_seconds: float = 0.02
    """What is urgent waits this long for company, not for the interval."""
    transmissions_multiplier: int = 4
    """Times ceil(log10(members + 1)) copies of each piece of news. Source: memberlist."""
    expected_members_count: int = 50
    """So that news sent early in a mass join is repeated as for the size that is coming."""
    direct_members_max: int = 64
    """Up to this size a node that was accused tells everybody itself."""
    state_overdue_seconds: float = 1.2
    """Without a state of a rack mate, which comes every second, it is probed out of turn."""
    state_pull_seconds: float = 1.5
    """And its state is asked for from another mate."""
    reach_interval_seconds: float = 5.0
    """Between attempts at one failed member or seed, for ever: cuts heal at any time."""
    join_interval_seconds: float = 1.0
    """The same while nobody is known."""
    sync_interval_seconds: float = 0.5
    """At least this long between two reconciliations with the same peer."""
    pause_seconds: float = 1.0
    """Called later than this after the time asked for: we were not running."""
    hush_seconds: float = 1.0
    """After a pause of our own nobody is accused for so long."""
    leave_seconds: float = 2.0
    leave_peers_count: int = 5
    persist_interval_seconds: float = 30.0
    failed_checks_per_second: float = 20.0
    """Of one source: signatures that may prove false before what it sends is dropped unread.
    At 137 microseconds each, less than 0.3 % of a core."""
    failed_checks_all_per_second: float = 200.0
    health_max_score: int = 7
    flap_half_life_seconds: float = 60.0
    flap_degraded_ratio: float = 2.5
    """A member that was suspect this often within about a minute is shown as degraded."""
