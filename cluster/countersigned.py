"""Admissions as they come, before anybody weighs them: which of them are kept.

Its own file because every member can sign as many as it likes, about anybody: here stands what that
may cost the others. An admission is kept once two chains are known: that of whoever signed it, and
the one that it is about. So nobody can spend the uses of an invite on nodes that never were. One
that comes before the chains waits, and only so many wait. Of one admitter about one node and invite
a few are kept: an honest member signs one, and another after it has lost its disk. It must not know
what admissions amount to: see `identity.settlement`.
"""

from collections import Counter
from collections.abc import Mapping

from cluster.dossiers import Dossiers
from cluster.identity.admission import AdmissionRecord, Admissions, SignedAdmission, check_admission
from cluster.identity.chains import NodeIdentity
from cluster.ids import ClusterId, NodeId
from cluster.papers import Chain
from cluster.signatures import Verifier

WAITING_MAX = 1024
SAME_MAX = 4
"""Admissions by one member of one node by one invite."""

Chains = Mapping[NodeId, Mapping[int, tuple[Chain, NodeIdentity]]]
"""Of each node those that hold, by serial."""


class Countersigned:
    """The admissions that one node has seen."""

    def __init__(
        self, *, cluster_id: ClusterId, chains: Chains, dossiers: Dossiers, verifier: Verifier
    ) -> None:
        self._cluster_id = cluster_id
        self._chains = chains
        self._dossiers = dossiers
        self._verifier = verifier
        self._kept = Admissions()
        self._new: list[SignedAdmission] = []
        self._waiting: dict[bytes, SignedAdmission] = {}
        self._same: Counter[tuple[int, NodeId, NodeId]] = Counter()

    def take(self, admission: SignedAdmission, encoded: bytes) -> bool:
        """Keep one, if it is what it claims to be and about somebody who is known."""
        record = admission.record
        admitter = self._chains.get(record.admitted_by)
        if not admitter or not self._is_about_somebody(record):
            if len(self._waiting) >= WAITING_MAX:
                self._waiting.pop(next(iter(self._waiting)))
            self._waiting[encoded] = admission
            return False
        same = (record.invite_serial, record.node_id, record.admitted_by)
        if self._same[same] >= SAME_MAX:
            return False
        _, identity = next(iter(admitter.values()))
        refused = check_admission(
            admission,
            cluster_id=self._cluster_id,
            public_key=identity.public_key,
            verifier=self._verifier,
        )
        if refused is not None:
            return False
        self._same[same] += 1
        self._new.append(admission)
        self._dossiers.keep_admission(record.node_id, record.admitted_by, encoded)
        return True

    def take_waiting(self) -> list[SignedAdmission]:
        """Those that waited and can be kept now."""
        waiting, self._waiting = self._waiting, {}
        return [
            admission
            for encoded, admission in waiting.items()
            if not self._dossiers.has(encoded) and self.take(admission, encoded)
        ]

    def all(self) -> Admissions:
        """Those that are kept."""
        if self._new:
            self._kept = self._kept.merge(self._new)
            self._new.clear()
        return self._kept

    def _is_about_somebody(self, record: AdmissionRecord) -> bool:
        chains = self._chains.get(record.node_id)
        return chains is not None and any(
            identity.rights.serial == record.invite_serial for _, identity in chains.values()
        )
