"""Work on this machine: jobs, their journal, and the processes that they are."""
