"""What a configuration key is, and the kinds of value it can hold.

Its own file so that the tables of keys (`keys`, `dormant`) hold nothing but keys.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from esnode.config import values

Parser = Callable[[object], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What is known of one key besides its value."""

    name: str
    """As in the file; ``orchestrator.token`` is `token` in the table `[orchestrator]`."""
    parse: Parser
    metavar: str
    help: str
    default: object
    file_aliases: tuple[tuple[str, Parser], ...] = ()
    """Other names that the predecessor's files use, each with its own parser."""
    environment_aliases: tuple[str, ...] = ()
    flag_aliases: tuple[str, ...] = ()
    is_secret: bool = False
    is_reloadable: bool = False
    """Whether SIGHUP applies it; the others need a restart."""
    is_dormant: bool = False
    """Accepted, checked and kept for files written for the predecessor; nothing reads it yet."""

    @property
    def attribute(self) -> str:
        """The field of `Config`."""
        return self.name.replace(".", "_")

    @property
    def flag(self) -> str:
        """The command-line option."""
        return "--" + self.attribute.replace("_", "-")

    @property
    def environment(self) -> str:
        """The environment variable."""
        return "ESNODE_" + self.attribute.upper()


def key(default: object, kind: tuple[str, Parser], text: str, **more: Any) -> Any:
    """One field of `Config`. Its type is the annotation's, so the return type is open."""
    metavar, parse = kind
    about = {"parse": parse, "metavar": metavar, "help": text, **more}
    return field(default=default, metadata={"key": about})


BOOLEAN = ("true|false", values.parse_boolean)
INTERVAL = ("DURATION", values.parse_interval_seconds)
TEXT = ("TEXT", values.parse_text)
PATH = ("PATH", values.parse_text)
COUNT = ("N", values.parse_count)
POSITIVE = ("NUMBER", values.parse_positive)
RATIO = ("RATIO", values.parse_ratio)
ADDRESS = ("HOST:PORT", values.parse_address)
URLS = ("URL[,URL]", values.list_of(values.parse_url))
WATTS = ("WATTS", values.parse_positive)
MODE = ("enforce|observe|off", values.one_of("enforce", "observe", "off"))

ALIAS_SETS = ("esnode-core", "dcgm")
