"""One table of metric families, and the bodies rendered from it."""

from collections.abc import Iterable

from esnode.metrics.agent import AGENT
from esnode.metrics.aliases import DCGM, ESNODE_CORE, KUBERNETES, with_index
from esnode.metrics.cluster import CLUSTER
from esnode.metrics.control import CONTROL
from esnode.metrics.gpu import GPU
from esnode.metrics.host import HOST
from esnode.metrics.jobs import JOBS
from esnode.metrics.model import (
    AgentStats,
    ClusterStats,
    ControlStats,
    JobStats,
    Metric,
    RackPowerStats,
    View,
)
from esnode.metrics.power import APP, POWER
from esnode.metrics.power_rack import RACK_POWER
from esnode.metrics.render import (
    EVERYTHING,
    OPENMETRICS,
    TEXT,
    Exposition,
    Renderer,
    Selection,
)

METRICS: tuple[Metric, ...] = (
    *HOST,
    *POWER,
    *GPU,
    *APP,
    *AGENT,
    *CLUSTER,
    *RACK_POWER,
    *JOBS,
    *CONTROL,
)
"""Every canonical family, in the order in which it is served and documented."""

GROUPS = tuple(dict.fromkeys(metric.group for metric in METRICS))
"""What `collect[]` may name."""

PROFILES = {
    "full": EVERYTHING,
    "basic": Selection(is_basic=True),
    "gpu-only": Selection(groups=frozenset({"gpu"})),
    "power-only": Selection(groups=frozenset({"power", "ipmi"})),
}
"""Named selections of `esnode metrics` and of `/metrics?profile=`."""


def served_metrics(aliases: Iterable[str], *, is_kubernetes: bool) -> tuple[Metric, ...]:
    """The families that one configuration serves: ours, then the alias sets asked for."""
    metrics = METRICS
    if "esnode-core" in aliases:
        metrics = (*(with_index(metric) for metric in metrics), *ESNODE_CORE)
    if is_kubernetes:
        metrics = (*metrics, *KUBERNETES)
    if "dcgm" in aliases:
        metrics = (*metrics, *DCGM)
    return metrics


__all__ = [
    "EVERYTHING",
    "GROUPS",
    "METRICS",
    "OPENMETRICS",
    "PROFILES",
    "TEXT",
    "AgentStats",
    "ClusterStats",
    "ControlStats",
    "Exposition",
    "JobStats",
    "Metric",
    "RackPowerStats",
    "Renderer",
    "Selection",
    "View",
    "served_metrics",
]
