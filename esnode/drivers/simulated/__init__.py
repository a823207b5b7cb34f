"""The simulated machine: a product for trying the agent without GPUs, not a test double.

`parts` is the catalogue; `machine` the state, `changes` and `physics` what events and time do to
it; `codec`, `files` and `store` its two files; `truth` what a checker reads; `readout` and
`driver` the agent's back end.
"""

from esnode.drivers.simulated.driver import SimulatedGpus

__all__ = ["SimulatedGpus"]
