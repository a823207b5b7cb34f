"""How much a node trusts its own view: Lifeguard's local health.

Its own file because it is one number with its rules. A node that misses what others get through is
probably itself the slow one, so it probes more slowly and waits longer before it accuses. It must
not know members.

Source: Dadgar, Phillips, Currey, "Lifeguard: Local Health Awareness", section IV-A.
"""


class LocalHealth:
    """0 is well; at the highest score this node waits that many times longer."""

    __slots__ = ("_score", "_score_max")

    def __init__(self, score_max: int) -> None:
        self._score = 0
        self._score_max = score_max

    @property
    def score(self) -> int:
        """0 to the maximum."""
        return self._score

    @property
    def factor(self) -> float:
        """What intervals and time-outs of probes are multiplied by."""
        return 1.0 + self._score

    def probe_succeeded(self) -> None:
        """Somebody answered."""
        self._score = max(0, self._score - 1)

    def probe_failed(self, *, helpers_asked_count: int, nacks_count: int) -> None:
        """Nobody answered. Helpers that sent not even a nack speak against us, not the target."""
        missing = helpers_asked_count - nacks_count if helpers_asked_count else 1
        self._score = min(self._score_max, self._score + max(0, missing))

    def was_accused(self) -> None:
        """We had to refute: others could not reach us."""
        self._score = min(self._score_max, self._score + 1)
