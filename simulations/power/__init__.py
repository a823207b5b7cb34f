"""Racks under power faults in virtual time: the ledger's real code, and a checker that trusts none.

`machine` is the physics, `desk` the operator, `site` the rack with its network, `node` one agent's
power, `checker` the promise; `scenarios` what happens.
"""
