"""`esnode audit`: what this node did by itself, read from its files, with the agent up or down.

Its own file because it rests on nothing but the files. It must not know who writes them.
"""

import contextlib
import json
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from esnode.cli.cluster_places import state_folder
from esnode.cli.context import EXIT_DEGRADED, EXIT_NOT_ALLOWED, fail

if TYPE_CHECKING:
    from esnode.audit import Entry

FOLLOW_SECONDS = 0.5


@click.group()
def audit() -> None:
    """Read what this node did by itself, and why.

    Every action leaves two lines under one id: before, with its evidence, and after, with what came
    of it. In observe mode there is one line: what would have been done. Each line carries the hash
    of the one before it, so that a change shows.

    \b
      esnode audit tail -n 50
      esnode audit tail --about GPU-1a2b --follow
      esnode audit verify

    Exit codes: 0 done, 1 the chain is broken or cannot be read, 2 wrong usage, 4 not allowed.
    """


@audit.command()
@click.option("-n", "count", type=click.IntRange(0), default=20, show_default=True, help="Lines.")
@click.option("--follow", "is_following", is_flag=True, help="Go on as lines are added.")
@click.option("--about", "what", metavar="WHAT", help="A job, GPU, pid, unit, feature or id.")
@click.option("--json", "as_json", is_flag=True, help="The lines as they are.")
@click.pass_context
def tail(
    ctx: click.Context, count: int, what: str | None, *, is_following: bool, as_json: bool
) -> None:
    """Print the last lines of the audit.

    \b
      esnode audit tail -n 50 --about thermal --follow
    """
    folder = audit_folder(ctx)
    last: deque[Entry] = deque(maxlen=count)
    newest = 0
    with telling_unreadable(folder):
        for entry in _entries(folder, what):
            newest = _number(entry)
            last.append(entry)
    for entry in last:
        click.echo(shown(entry, as_json=as_json))
    if not last and not is_following:
        click.echo(f"nothing in {folder}" + (f" about {what}" if what else ""), err=True)
    while is_following:
        time.sleep(FOLLOW_SECONDS)
        with telling_unreadable(folder):
            for entry in _entries(folder, what):
                if _number(entry) > newest:
                    newest = _number(entry)
                    click.echo(shown(entry, as_json=as_json))


@audit.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.audit_verified/1).")
@click.pass_context
def verify(ctx: click.Context, *, as_json: bool) -> None:
    """Follow the chain from the oldest line to the last, and say where it breaks.

    Lines that were taken off the end leave no trace in the files: note the head that is printed,
    elsewhere, and compare.

    \b
      esnode audit verify --json
    """
    from esnode.audit import verify as verify_files

    folder = audit_folder(ctx)
    with telling_unreadable(folder):
        found = verify_files(folder)
    if as_json:
        document = {
            "schema": "esnode.audit_verified/1",
            "folder": str(folder),
            "is_whole": not found.broken,
            "broken": found.broken,
            "line_count": found.line_count,
            "file_count": found.file_count,
            "first_number": found.first_number,
            "head": found.head,
        }
        click.echo(json.dumps(document))
    elif not found.broken:
        click.echo(f"whole: {found.line_count} lines in {found.file_count} files of {folder}")
        if found.first_number is not None and found.first_number > 1:
            click.echo(f"begins at line {found.first_number}: older files were rotated away")
        click.echo(f"head: {found.head}")
    if found.broken:
        fail(
            f"the audit is broken at {folder}/{found.broken}; the {found.line_count} lines before "
            "it are whole",
            code=EXIT_DEGRADED,
        )


def audit_folder(ctx: click.Context) -> Path:
    """Where the audit of this machine's agent lies."""
    from esnode.audit.files import FOLDER

    return state_folder(ctx) / FOLDER


@contextlib.contextmanager
def telling_unreadable(folder: Path) -> Iterator[None]:
    """A folder that cannot be read is one line."""
    try:
        yield
    except PermissionError:
        fail(f"{folder}: may be read by the agent's user and root only", code=EXIT_NOT_ALLOWED)
    except OSError as error:
        fail(f"{folder}: cannot be read: {error.strerror}", code=EXIT_DEGRADED)


def shown(entry: "Entry", *, as_json: bool = False) -> str:
    """One line of the audit, for people or as it is."""
    if as_json:
        return json.dumps(dict(entry.fields))
    words = [entry.text("at"), entry.text("phase"), entry.text("id")]
    match entry.text("phase"):
        case "before" | "would":
            words += [f"{entry.text('feature')}: {entry.text('action')}: {entry.text('target')}"]
            words += [f"because {evidence_line(entry)}"]
            words += [f"by rule {entry.text('rule')}"]
        case "after":
            words += [f"{entry.text('feature')}: {entry.text('result')}: {entry.text('target')}"]
            words += [entry.text("read_back"), entry.text("effect")]
        case _:
            words.append(entry.text("line"))
    return "  ".join(word for word in words if word)


def evidence_line(entry: "Entry") -> str:
    """The evidence of a line of the audit."""
    evidence = entry.fields.get("evidence")
    facts = [one for one in evidence if isinstance(one, dict)] if isinstance(evidence, list) else []
    lines = []
    for one in facts:
        value = "unknown" if one.get("value") is None else f"{one['value']} {one.get('unit', '')}"
        lines.append(f"{one.get('what', '?')} {value.strip()} ({one.get('source', '?')})")
    return ", ".join(lines) or "nothing that was said"


def _entries(folder: Path, what: str | None) -> "Iterator[Entry]":
    from esnode.audit import is_about, read_entries

    for entry in read_entries(folder):
        if what is None or is_about(entry, what):
            yield entry


def _number(entry: "Entry") -> int:
    number = entry.fields["number"]
    return number if isinstance(number, int) else 0
