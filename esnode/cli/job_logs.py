"""``esnode job logs``."""

import sys
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from esnode.cli.cluster_places import control_door, tells_errors_in_one_line, with_socket
from esnode.cli.job_speaker import PATH, find_job

if TYPE_CHECKING:
    from esnode.client import Door

SCHEMA = "esnode.job_logs/"
FOLLOW_SECONDS = 0.3
TAIL_BYTES = 64 * 1024


@click.command()
@click.argument("job")
@click.option("-f", "--follow", "is_following", is_flag=True, help="Go on until the job ends.")
@click.option(
    "-n",
    "--bytes",
    "tail_bytes",
    type=click.IntRange(0),
    default=TAIL_BYTES,
    show_default=True,
    help="How much of its end.",
)
@with_socket
@click.pass_context
@tells_errors_in_one_line
def logs(
    ctx: click.Context, job: str, tail_bytes: int, socket_path: str | None, *, is_following: bool
) -> None:
    """Print what JOB has written, standard output and standard error together.

    \b
      esnode job logs ticker --follow

    Output is kept in files of limited size; what has been rotated away is gone, and said to be.
    """
    door = control_door(ctx, socket_path)
    job_id = find_job(door, job)
    piece = _fetch(door, job_id, f"tail={tail_bytes}")
    _print(piece)
    while piece["is_more"] or (is_following and piece["is_live"]):
        if not piece["is_more"]:
            time.sleep(FOLLOW_SECONDS)
        query = f"cursor={quote(piece['cursor'])}" if piece["cursor"] else f"tail={tail_bytes}"
        piece = _fetch(door, job_id, query)
        _print(piece)


def _fetch(door: "Door", job_id: str, query: str) -> dict[str, Any]:
    from esnode.client import ask

    return ask(door, f"{PATH}/{job_id}/logs?{query}", schema=SCHEMA)


def _print(piece: dict[str, Any]) -> None:
    if piece["has_gap"]:
        click.echo("--- some output is gone: it was rotated away ---", err=True)
    sys.stdout.write(piece["text"])
    sys.stdout.flush()
