"""`esnode job`: the list of its commands. Each one's code is loaded when it is called."""

import click

from esnode.cli.lazy import LazyCommands

COMMANDS = {
    "submit": "esnode.cli.job_submit:submit",
    "lint": "esnode.cli.job_submit:lint",
    "list": "esnode.cli.job_views:list_jobs",
    "show": "esnode.cli.job_views:show",
    "explain": "esnode.cli.job_views:explain",
    "top": "esnode.cli.job_views:top",
    "logs": "esnode.cli.job_logs:logs",
    "stop": "esnode.cli.job_stop:stop",
    "cancel": "esnode.cli.job_stop:cancel",
}
"""Where each command lives."""

SUMMARIES = {
    "submit": "Hand in a job; it is kept from the moment of the answer on.",
    "lint": "Check a job's file, and say what it leaves to defaults.",
    "list": "List the jobs of this node.",
    "show": "Show one job with everything that is known of it.",
    "explain": "Say why a job waits, or why it is where it is.",
    "top": "Watch the jobs that run: processor, memory, watts, tokens.",
    "logs": "Print what a job has written.",
    "stop": "Have a job end in good order: drained, saved, then stopped.",
    "cancel": "Have a job end for good, without saving.",
}


@click.group(cls=LazyCommands, places=COMMANDS, summaries=SUMMARIES)
def job() -> None:
    """Run work on this machine's GPUs, and follow it.

    A job is a file of a few lines. It waits until its GPUs and their least power can be had, runs
    as whoever handed it in, in a group of processes of its own, and outlives a restart of the
    agent. It is never run twice at once.

    \b
    The smallest file:
      name: ticker
      command: [bash, -c, "while date; do sleep 1; done"]
      devices: {gpu: 1}

    \b
    With an agent running:
      esnode job lint ticker.yaml --explain       what it says, and what is left to defaults
      esnode job submit ticker.yaml
      esnode job submit --gpus 1 -- python train.py
      esnode job list
      esnode job logs ticker --follow
      esnode job stop ticker

    A job is named by its id, the last letters of it, or its name where only one has it.

    Exit codes: 0 done, 1 refused or the job failed, 2 wrong usage, 3 agent not reachable,
    4 not allowed.
    """
