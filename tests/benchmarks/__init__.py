"""Measurements of the agent beside node_exporter. Not tests: they print a table and judge nothing.

Run with `python -m tests.benchmarks` (`--quick` for shorter loops, `--only NAME` for a part). All
is on loopback. Ours and the peer's are measured alternately in one run, and medians are shown.
"""
