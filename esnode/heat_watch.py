"""Thermal care of this machine: its GPUs are looked at each second, and hot ones get no new work.

Its own file because it is where the rules of heat meet the agent. Each change is told, with its
evidence, whether or not anything may be done about it. It must not know jobs.
"""

from collections.abc import Callable, Mapping

import structlog

from esnode.control.heat import look_of
from esnode.control.thermal import Care, ThermalCare
from esnode.snapshot import Snapshot

log = structlog.get_logger("esnode.heat")


class HeatWatch:
    """The care of this machine's GPUs."""

    def __init__(self, rules_line: Callable[[str], str], tell: Callable[[str], None]) -> None:
        """`rules_line` says why nothing may be done now; `tell` is told of each change."""
        self._care = ThermalCare()
        self._rules_line = rules_line
        self._tell = tell
        self._words: dict[str, str] = {}
        self._cares: tuple[Care, ...] = ()

    def tick(self, snapshot: Snapshot, now: float) -> None:
        """What the machine's sensors say now."""
        looks = [
            look_of(gpu.reading, at_seconds=now - (gpu.age_seconds or 0.0))
            for gpu in snapshot.gpus
            if gpu.is_up and gpu.reading is not None
        ]
        self._cares = self._care.take(looks, now)
        why_not = self._rules_line("thermal")
        for one in self._cares:
            before = self._words.get(one.gpu, "ok")
            self._words[one.gpu] = one.word
            if one.word != before and {one.word, before} != {"ok", "unknown"}:
                end = f" (nothing is done: {why_not})" if why_not else ""
                lines = "; ".join(one.lines)
                log.warning("gpu_heat", gpu=one.gpu, word=one.word, before=before, detail=lines)
                self._tell(f"GPU {one.gpu} is {one.word}, was {before}: {lines}{end}")

    def refusals(self) -> Mapping[str, str]:
        """GPUs that get no new work now, with why; none while nothing may be done."""
        if self._rules_line("thermal"):
            return {}
        return {
            one.gpu: f"it is {one.word}: {'; '.join(one.lines)}"
            for one in self._cares
            if not one.is_taking_work
        }
