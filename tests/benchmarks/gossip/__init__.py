"""Our gossip beside HashiCorp's serf: real processes in one private network namespace.

Not tests: `python -m tests.benchmarks.gossip` prints a table (`--help` for parts of it). A node of
ours is `agent`: a process with all that makes it a member and nothing else, no collectors and no
HTTP. serf's are Debian's. Only one of the two fleets runs at a time; they take turns. Nodes have
addresses of their own below 127.0.0.0/8; loss and silence are made by nftables on the input hook.
Every process is up and waits before anything is measured. Needs root.
"""
