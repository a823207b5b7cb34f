"""Rack power in a running agent: a node holds its cap while it is a member of a rack with a budget.

`logs` keeps the ledgers on disk, `mounts` says whether that disk outlives a reboot, `hardware`
brings a cap into the devices and reads it back, `fitting` cuts what is told to what fits, `audit`
writes down what was done, `driver` lets the core (`cluster.rack.power`) drive all of them.
"""
