"""``esnode job stop`` and ``cancel``."""

import json

import click

from esnode.cli.cluster_places import control_door, tells_errors_in_one_line, with_socket
from esnode.cli.job_speaker import JOB_SCHEMA, PATH, find_job


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@click.option("--requeue", "is_requeued", is_flag=True, help="Queue it again afterwards.")
@click.option("--reason", metavar="TEXT", help="For the record.")
@click.option("--json", "as_json", is_flag=True, help="Print one document a line.")
@with_socket
@click.pass_context
@tells_errors_in_one_line
def stop(
    ctx: click.Context,
    jobs: tuple[str, ...],
    socket_path: str | None,
    reason: str | None,
    *,
    is_requeued: bool,
    as_json: bool,
) -> None:
    """Have jobs end in good order: a model server is drained, a job that can saves its state.

    Then it is asked to end by its own signal, and killed after its own grace.

    \b
      esnode job stop ticker
      esnode job stop --requeue ticker
    """
    purpose = "requeue" if is_requeued else "end"
    _stop(ctx, jobs, socket_path, purpose, reason, as_json=as_json)


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@click.option("--reason", metavar="TEXT", help="For the record.")
@click.option("--json", "as_json", is_flag=True, help="Print one document a line.")
@with_socket
@click.pass_context
@tells_errors_in_one_line
def cancel(
    ctx: click.Context,
    jobs: tuple[str, ...],
    socket_path: str | None,
    reason: str | None,
    *,
    as_json: bool,
) -> None:
    """Have jobs end for good, queued or running; nothing is drained or saved.

    \b
      esnode job cancel ticker
    """
    _stop(ctx, jobs, socket_path, "cancel", reason, as_json=as_json)


def _stop(
    ctx: click.Context,
    words: tuple[str, ...],
    socket_path: str | None,
    purpose: str,
    reason: str | None,
    *,
    as_json: bool,
) -> None:
    from esnode.client import ask

    door = control_door(ctx, socket_path)
    for job_id in [find_job(door, word) for word in words]:
        order = {"purpose": purpose, **({"reason": reason} if reason else {})}
        document = ask(door, f"{PATH}/{job_id}/stop", schema=JOB_SCHEMA, order=order)
        if as_json:
            click.echo(json.dumps(document))
        else:
            click.echo(f"job {job_id} ({document['name']}) is {document['state']}")
