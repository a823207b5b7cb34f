"""How one value of a job's spec is written by people and read by us: sizes, words, signals.

Its own file because these kinds occur in no configuration key. Each parser takes what YAML or JSON
holds, and returns our value or raises `BadValue` with the half of a sentence that says what would
have been right. It must not know which key it is parsing for.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from esnode.config.values import BadValue

_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?", re.ASCII)
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B|B)\s*", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_UNIT_BYTES = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", start=1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", start=1)},
}
SIGNALS = ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "KILL")
RESERVED_PREFIX = "ESNODE_"
RESERVED = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
"""Set by us, from what the job was given."""
WORDS_MAX = 1000
WORD_CHARACTERS_MAX = 32_000


def parse_name(value: object) -> str:
    """A short name for people; several jobs may have one."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise BadValue(
            "is not a name: 1 to 63 of a-z, 0-9, '.', '_' and '-', a letter or digit at both ends"
        )
    return value


def parse_size_bytes(value: object) -> int:
    """A number of bytes, with its unit: ``40GiB``, ``500MB``; a bare number is bytes."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise BadValue("is not a size; write 40GiB, 500MB or a number of bytes")
    return int(float(match[1]) * _UNIT_BYTES[match[2]])


def parse_word(value: object) -> str:
    """One text of a command line."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadValue(f"holds {value!r}, which is no text")
    word = str(value)
    if "\0" in word:
        raise BadValue("holds a NUL character")
    if len(word) > WORD_CHARACTERS_MAX:
        raise BadValue(f"holds a text of {len(word)} characters; at most {WORD_CHARACTERS_MAX}")
    return word


def parse_command(value: object) -> tuple[str, ...]:
    """A program and its arguments, each by itself: no shell reads them."""
    if isinstance(value, str):
        raise BadValue(
            'is one text; write a list: [bash, -c, "..."] for a shell, [python, train.py] else'
        )
    if not isinstance(value, Sequence) or not value:
        raise BadValue("is not a list of a program and its arguments")
    if len(value) > WORDS_MAX:
        raise BadValue(f"has {len(value)} words; at most {WORDS_MAX}")
    words = tuple(map(parse_word, value))
    if not words[0]:
        raise BadValue("begins with an empty text; a program is needed")
    return words


def parse_texts(value: object) -> tuple[str, ...]:
    """One text or a list of texts."""
    items = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    words = tuple(map(parse_word, items))
    if not all(word.strip() for word in words):
        raise BadValue("holds an empty text")
    return words


def parse_environment(value: object) -> tuple[tuple[str, str], ...]:
    """Variables by name; ours are refused, since they would not hold what the job wrote."""
    if not isinstance(value, Mapping):
        raise BadValue("is not a mapping of names to texts")
    pairs = []
    for name, text in value.items():
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            raise BadValue(f"names {name!r}, which is no variable")
        if name.startswith(RESERVED_PREFIX) or name in RESERVED:
            raise BadValue(f"sets {name}, which the agent sets")
        pairs.append((name, "" if text is None else parse_word(text)))
    return tuple(sorted(pairs))


def parse_signal(value: object) -> str:
    """The name of a signal, with or without SIG."""
    word = value.upper().removeprefix("SIG") if isinstance(value, str) else ""
    if word not in SIGNALS:
        raise BadValue(f"is not one of {', '.join(SIGNALS)}")
    return word


def whole_between(lowest: int, highest: int) -> Callable[[object], int]:
    """A parser of whole numbers in a range."""

    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadValue("is not a whole number")
        if not lowest <= value <= highest:
            raise BadValue(f"is outside {lowest} to {highest}")
        return value

    return parse


def truth(value: object) -> bool:
    """A truth as YAML and JSON write them; a text is none."""
    if not isinstance(value, bool):
        raise BadValue("is neither true nor false")
    return value


def watts(value: object) -> int:
    """Whole watts: ``350`` or ``350W``."""
    word = value.strip().removesuffix("W").strip() if isinstance(value, str) else value
    if isinstance(word, str) and word.isascii() and word.isdigit():
        word = int(word)
    if isinstance(word, bool) or not isinstance(word, int) or not 1 <= word <= 100_000:
        raise BadValue("is not a number of watts; write 350 or 350W")
    return word


def not_none(parse: Callable[[object], object]) -> Callable[[object], object]:
    """YAML's empty value is a mistake, not a default."""

    def check(value: object) -> object:
        if value is None:
            raise BadValue("has no value; leave the key out for its default")
        return parse(value)

    return check
