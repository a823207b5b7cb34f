"""``esnode job submit`` and ``lint``: from a file, or a command line, to a job.

Their own file because both read specs. The id is made here: an answer that is lost is asked for
again, and the job is taken in once.
"""

import json
import random
import secrets
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esnode.cli.cluster_places import control_door, tells_errors_in_one_line, with_socket
from esnode.cli.context import EXIT_DEGRADED, EXIT_USAGE, fail
from esnode.cli.job_speaker import JOB_SCHEMA, PATH, fetch_job
from esnode.clock import unix_seconds

if TYPE_CHECKING:
    from esnode.client import Door
    from esnode.workloads.spec import JobSpec

TRIES = 3
WATCH_SECONDS = 0.5
STANDARD_INPUT = "-"


@click.command()
@click.argument("file", required=False, metavar="[FILE]")
@click.argument("command", nargs=-1, metavar="[-- COMMAND...]", type=click.UNPROCESSED)
@click.option("--name", metavar="NAME", help="Another name than the file's.")
@click.option("--gpus", type=click.IntRange(0, 16), metavar="N", help="Whole GPUs.")
@click.option("--priority", type=click.IntRange(0, 9), metavar="0..9", help="9 goes first.")
@click.option("--preemptible", is_flag=True, help="A job of higher priority may have its place.")
@click.option("--wait", "is_waiting", is_flag=True, help="Until it ends; 0 only if it succeeded.")
@click.option("--json", "as_json", is_flag=True, help="Print the job's document.")
@with_socket
@click.pass_context
@tells_errors_in_one_line
def submit(
    ctx: click.Context,
    /,
    file: str | None,
    command: tuple[str, ...],
    socket_path: str | None,
    *,
    is_waiting: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Hand in the job in FILE (YAML or JSON; - is standard input), or a COMMAND after --.

    \b
      esnode job submit train.yaml
      esnode job submit --gpus 2 --name sweep -- python sweep.py --fast
    """
    words = _after_dashes(file, command)
    spec = _spec_of_command(words, given) if words else _spec_of_file(file, given)
    door = control_door(ctx, socket_path)
    document = _hand_in(door, spec)
    job_id = str(document["id"])
    if is_waiting:
        document = _wait(door, job_id)
    if as_json:
        click.echo(json.dumps(document))
    elif is_waiting:
        click.echo(f"{document['name']} ({job_id}): {document['state']}, {document['reason']}")
    else:
        click.echo(f"job {job_id} ({document['name']}) is {document['state']}")
    if is_waiting and document["result"] != "succeeded":
        sys.exit(EXIT_DEGRADED)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--explain", "is_explained", is_flag=True, help="Print every key with its value.")
def lint(files: tuple[str, ...], *, is_explained: bool) -> None:
    """Check job files; nothing is handed in.

    \b
      esnode job lint train.yaml --explain

    Each mistake is one line. Exit codes: 0 all are jobs, 1 a file is none.
    """
    from esnode.workloads.spec_reading import SpecRefused, read_spec, spec_notes

    is_bad = False
    for file in files:
        try:
            spec = read_spec(_text_of(file))
        except SpecRefused as refused:
            is_bad = True
            for line in refused.lines:
                click.echo(f"{file}: {line}", err=True)
            continue
        for note in spec_notes(spec):
            click.echo(f"{file}: note: {note}", err=True)
        click.echo(f"{file}: is a job")
        if is_explained:
            click.echo(_explained(spec))
    if is_bad:
        sys.exit(EXIT_DEGRADED)


def _explained(spec: "JobSpec") -> str:
    from esnode.cli.text import table
    from esnode.workloads.spec import KEYS
    from esnode.workloads.spec_reading import plain_value

    rows = []
    for key in KEYS.values():
        value = getattr(spec, key.attribute)
        is_default = not key.is_needed and value == key.default
        shown = json.dumps(plain_value(key, value)) if value is not None else "none"
        rows.append((key.path, shown, "default" if is_default else "", key.why))
    return "\n" + table(("KEY", "VALUE", "", "WHAT IT IS"), rows) + "\n"


def _after_dashes(file: str | None, command: tuple[str, ...]) -> tuple[str, ...]:
    """The command, if one was given: click hands out its first word as the file."""
    if "--" not in sys.argv:
        if command:
            fail(f"{command[0]!r}: one FILE at a time; a command comes after --", code=EXIT_USAGE)
        return ()
    return command if file is None else (file, *command)


def _spec_of_command(words: tuple[str, ...], given: dict[str, Any]) -> "JobSpec":
    name = given["name"] or Path(words[0]).name.lower()
    return _built({"name": name, "command": list(words)}, {**given, "name": None}, "command line")


def _spec_of_file(file: str | None, given: dict[str, Any]) -> "JobSpec":
    from esnode.workloads.spec_reading import SpecRefused, document_of, read_spec

    if file is None:
        fail("which job? give a FILE, or a command after --", code=EXIT_USAGE)
    try:
        document = document_of(read_spec(_text_of(file)))
    except SpecRefused as refused:
        fail(*(f"{file}: {line}" for line in refused.lines), code=EXIT_USAGE)
    return _built(document, given, file)


def _built(document: dict[str, Any], given: dict[str, Any], where: str) -> "JobSpec":
    from esnode.workloads.spec_reading import SpecRefused, spec_of

    if given["name"]:
        document["name"] = given["name"]
    if given["gpus"] is not None:
        document.setdefault("devices", {})["gpu"] = given["gpus"]
    if given["priority"] is not None:
        document["priority"] = given["priority"]
    if given["preemptible"]:
        document["preemptible"] = True
    try:
        return spec_of(document)
    except SpecRefused as refused:
        fail(*(f"{where}: {line}" for line in refused.lines), code=EXIT_USAGE)


def _text_of(file: str) -> bytes:
    try:
        if file == STANDARD_INPUT:
            return sys.stdin.buffer.read()
        return Path(file).read_bytes()
    except OSError as error:
        fail(f"{file}: {error.strerror}", code=EXIT_USAGE)


def _hand_in(door: "Door", spec: "JobSpec") -> dict[str, Any]:
    from esnode.client import AgentStopped, AgentUnreachable, ask
    from esnode.workloads.ids import make_job_id
    from esnode.workloads.spec_reading import document_of

    job_id = make_job_id(unix_seconds(), random.Random(secrets.randbits(128)))
    order = {"job": job_id, "spec": document_of(spec)}
    for number in range(1, TRIES + 1):
        try:
            return ask(door, PATH, schema=JOB_SCHEMA, order=order)
        except AgentStopped:
            raise
        except AgentUnreachable as error:
            if number == TRIES:
                raise AgentUnreachable(
                    f"{error}; whether job {job_id} was taken in is not known: "
                    "`esnode job list` will tell"
                ) from None
    raise AssertionError("a try either answers or raises")


def _wait(door: "Door", job_id: str) -> dict[str, Any]:
    from esnode.client import AgentUnreachable

    told = ""
    while True:
        try:
            document = fetch_job(door, job_id)
        except AgentUnreachable:
            time.sleep(WATCH_SECONDS)  # an agent that restarts: the job goes on
            continue
        if document["phase"] in ("ended", "gone"):
            return document
        line = str(document["state"])
        if line != told:
            click.echo(f"{line} ...", err=True)
            told = line
        time.sleep(WATCH_SECONDS)
