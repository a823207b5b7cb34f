"""The stories that can be played, by name.

Each is a function of a stage; its docstring is what `list` shows.
"""

from collections.abc import Callable
from dataclasses import dataclass

from simulations.scenarios import attacks, lives, machines, networks, operators
from simulations.stage import PAPERS_COUNT, Stage

NODES_MIN = 2
NODES_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A story, and for how many nodes it can be told."""

    name: str
    tell: Callable[[Stage], None]
    nodes_min: int = NODES_MIN
    nodes_max: int = 2_000
    """Each node keeps an object for each other unless the fleet begins as an old one."""

    @property
    def summary(self) -> str:
        """What happens, in a sentence."""
        return " ".join((self.tell.__doc__ or "").split())


_ALL = (
    Scenario(name="mass-join", tell=lives.mass_join),
    Scenario(name="crash", tell=lives.crash, nodes_min=4, nodes_max=NODES_MAX),
    Scenario(name="rack-power-loss", tell=lives.rack_power_loss, nodes_min=5),
    Scenario(name="loss", tell=networks.loss),
    Scenario(name="partition-heal", tell=networks.partition_heal),
    Scenario(name="pauses", tell=machines.pauses, nodes_min=4),
    Scenario(name="flapping", tell=machines.flapping, nodes_min=4),
    Scenario(name="rolling-restart", tell=lives.rolling_restart),
    Scenario(name="slow-cpus", tell=machines.slow_cpus, nodes_min=4),
    Scenario(name="forger", tell=attacks.forger, nodes_min=6),
    Scenario(name="replayer", tell=attacks.replayer, nodes_min=4),
    Scenario(name="cloned-node", tell=attacks.cloned_node, nodes_min=4),
    Scenario(name="revocation", tell=operators.revocation, nodes_min=4, nodes_max=PAPERS_COUNT),
    Scenario(name="invites", tell=operators.invites, nodes_min=6, nodes_max=PAPERS_COUNT),
    Scenario(name="one-way-loss", tell=networks.one_way_loss, nodes_min=4),
    Scenario(name="grey-failure", tell=networks.grey_failure, nodes_min=4),
    Scenario(name="states", tell=networks.states),
    Scenario(name="idle", tell=lives.idle, nodes_max=NODES_MAX),
)

SCENARIOS = {scenario.name: scenario for scenario in _ALL}
