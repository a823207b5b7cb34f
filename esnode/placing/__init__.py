"""Where a job goes, in which order jobs wait, and who makes room: pure rules over plain values.

Its own package because the agent, simulations and benchmarks decide by the same rules. What is
known of machines and jobs is handed in, `now` with it; what is decided is returned. It must not
know how a job is started or stopped, how a machine is read, or who pays for the watts.

    need + machine -> fitting (may it?) -> packing (which GPUs) -> scoring (which machine)
    queue          -> queueing (who is next, what is set aside) -> preempting (who makes room)
    one pass       -> decide

`devices` is apart: the predecessor's score, for those who still ask in its shapes.
"""
