"""`esnode power explain`: why the cap of a node is what it is.

Its own file because it only fetches and prints. What is said is `power_orders.sentences`' business.
"""

import json
import textwrap

import click

from esnode.cli.cluster_places import reading_door, reading_what, tells_errors_in_one_line
from esnode.cli.cluster_status import terminal_width
from esnode.cli.cluster_text import printable
from esnode.cli.power_speaker import read_power, tells_refusals

LINE_CHARACTERS = 100


@click.command()
@click.argument("node", required=False)
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.power_explanation/1).")
@click.pass_context
@tells_errors_in_one_line
@tells_refusals
def explain(ctx: click.Context, node: str | None, as_json: bool) -> None:
    """Say why the cap of NODE is what it is, in sentences.

    NODE is a name, a slot, an id or the first six digits of one; else the agent's own node. The
    most is known at the node itself.

    \b
    esnode power explain
    esnode power explain gpu-07
    esnode power explain gpu-07 --agent http://gpu-07:9100
    """
    from esnode.power_orders.sentences import explain as sentences_of

    door = reading_door(ctx)
    document = read_power(door)
    with reading_what(door.shown):
        name = node or str(document["node"])
        sentences = [printable(one) for one in sentences_of(document, name)]
    if as_json:
        shown = {"schema": "esnode.power_explanation/1", "node": name, "sentences": sentences}
        click.echo(json.dumps(shown, indent=2))
        return
    width = min(LINE_CHARACTERS, terminal_width() or LINE_CHARACTERS)
    for one in sentences:
        click.echo(textwrap.fill(one, width, break_on_hyphens=False, break_long_words=False))
