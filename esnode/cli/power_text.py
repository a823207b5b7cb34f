"""Words of power on the screen: names of nodes, watts in columns, tables of what will happen.

Its own file because previews and the status write alike. It must not know orders.
"""

from collections.abc import Sequence

from esnode.cli.cluster_text import printable
from esnode.cli.text import UNKNOWN, table

ENFORCED = ("enforcing", "static", "off", "empty")
"""States of slots that hold the promise."""


def whole_watts(value: int | float | None) -> str:
    """Watts to the last one: what is signed is not rounded."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def change_of(before: int | None, after: int | None) -> str:
    """How much more or less."""
    return UNKNOWN if before is None or after is None else f"{after - before:+,}"


def name_or(name: object, otherwise: str) -> str:
    """A node's name, or what stands there instead."""
    return f"({otherwise})" if name in (None, "") else printable(name)


def figures(
    rows: Sequence[tuple[str, str, str]], *, right: Sequence[int] = (1,), indent: str = "  "
) -> str:
    """What is what: a word, a figure, and what it means."""
    text = table(("", "", ""), rows, right=right)
    return "\n".join(indent + line for line in text.splitlines()[1:])


def sentence_list(words: Sequence[str]) -> str:
    """One, two and three."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
