"""How much work a GPU does for its watts, by kind of load and by model.

Its own file because these are figures with sources, and two rules use them. Work is counted
relative to an H100 at its full power with the same load. It must not know any machine.
"""

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """``((p - floor) / (knee - floor)) ** exponent``, p as a ratio of the highest limit.

    Source: the specification of rack power, section 6.1: fitted by us to published sweeps. They
    are the same as those of the simulated machine (`drivers/simulated/parts`), which a test
    compares.
    """

    floor_ratio: float
    knee_ratio: float
    """What this load draws when nothing holds it, as a ratio of the highest limit."""
    exponent: float

    def work_ratio(self, power_ratio: float) -> float:
        """Work done at so much power, relative to what is done unhindered."""
        if power_ratio >= self.knee_ratio:
            return 1.0
        if power_ratio <= self.floor_ratio:
            return 0.0
        above = (power_ratio - self.floor_ratio) / (self.knee_ratio - self.floor_ratio)
        return float(above**self.exponent)


CURVES = {
    "compute": Curve(floor_ratio=0.1, knee_ratio=1.0, exponent=0.9),
    "mixed": Curve(floor_ratio=0.1, knee_ratio=1.0, exponent=0.3),
    "decode": Curve(floor_ratio=0.05, knee_ratio=0.4, exponent=0.4),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """What a model's data sheet promises."""

    tensor_teraflops_per_second: float
    """Dense BF16."""
    memory_terabytes_per_second: float


PEAKS = {
    "b300": Peak(tensor_teraflops_per_second=2250.0, memory_terabytes_per_second=8.0),
    "b200": Peak(tensor_teraflops_per_second=2250.0, memory_terabytes_per_second=8.0),
    "h200": Peak(tensor_teraflops_per_second=989.0, memory_terabytes_per_second=4.8),
    "h100": Peak(tensor_teraflops_per_second=989.0, memory_terabytes_per_second=3.35),
    "a100": Peak(tensor_teraflops_per_second=312.0, memory_terabytes_per_second=2.04),
    "l40s": Peak(tensor_teraflops_per_second=362.0, memory_terabytes_per_second=0.864),
}
"""Source: NVIDIA's data sheets of the SXM parts (half of the figure with sparsity) and of the L40S;
for the H100 of 80 GB. What a job really gets out of a GPU depends on its code: these only rank
models where nothing was measured. A text in the model's name; the first that is in it counts."""

REFERENCE = PEAKS["h100"]


@lru_cache(maxsize=256)
def peak_work(model: str, load: str) -> float | None:
    """Work of an unhindered GPU relative to an H100; None for a model that is not listed.

    Compute goes by arithmetic, decode by memory bandwidth, mixed by their geometric mean (an
    assumption of ours, between the two).
    """
    name = model.lower()
    peak = next((one for key, one in PEAKS.items() if key in name), None)
    if peak is None:
        return None
    arithmetic = peak.tensor_teraflops_per_second / REFERENCE.tensor_teraflops_per_second
    bandwidth = peak.memory_terabytes_per_second / REFERENCE.memory_terabytes_per_second
    if load == "compute":
        return arithmetic
    return bandwidth if load == "decode" else float((arithmetic * bandwidth) ** 0.5)
