"""The simulated machine: a product for trying the agent without GPUs, not a test double.

`parts` is the catalogue, `machine` the state and its changes, `physics` what time does to it,
`codec` and `store` the file, `truth` what a checker reads, `driver` the agent's back end.
"""
