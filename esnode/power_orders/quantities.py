"""Watts, parts and weights as people write them.

Its own file because a file, an option and a question take the same spellings. Whole watts only: a
budget is not a measurement. It must not know what a quantity is of.
"""

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from cluster.rack.units import WATTS_MAX

_WATTS = re.compile(r"([0-9][0-9_,]*(?:\.[0-9]+)?)\s*(w|kw|mw)?", re.IGNORECASE | re.ASCII)
_TIMES = {"": 1, "w": 1, "kw": 1000, "mw": 1_000_000}
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
WEIGHT_MAX = 1000


class BadQuantity(ValueError):
    """It cannot be read; the text completes "THING ..."."""


def read_watts(value: object) -> int:
    """Whole watts: 52000, "52 kW", "52kW", "1,200 W".

    Raises:
        BadQuantity: it is none.
    """
    text = _plain(value)
    match = _WATTS.fullmatch(text)
    if match is None:
        raise BadQuantity(f"is {text!r}; write watts, e.g. 52000 or 52kW")
    amount = Decimal(re.sub("[_,]", "", match.group(1))) * _TIMES[(match.group(2) or "").lower()]
    if amount != int(amount):
        raise BadQuantity(f"is {text!r}; only whole watts count")
    if amount > WATTS_MAX:
        raise BadQuantity(f"is {text!r}; at most {WATTS_MAX:,} W can be")
    return int(amount)


def read_part(value: object) -> Fraction:
    """A part of the whole, exactly: "3 %", 0.03.

    Raises:
        BadQuantity: it is none, or more than all.
    """
    text = _plain(value)
    number, is_percent = text.removesuffix("%").strip(), text.endswith("%")
    if not _NUMBER.fullmatch(number):
        raise BadQuantity(f'is {text!r}; write a part of the whole, e.g. "3 %" or 0.03')
    part = Fraction(number) / (100 if is_percent else 1)
    if part > 1:
        what = "is more than all" if is_percent else f'is more than all; did you mean "{number} %"?'
        raise BadQuantity(f"{what} ({text})")
    return part


def read_weight(value: object) -> int:
    """How much one counts beside others: a whole number from 1.

    Raises:
        BadQuantity: it is none.
    """
    text = _plain(value)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= WEIGHT_MAX:
        raise BadQuantity(f"is {text!r}; a weight is a whole number from 1 to {WEIGHT_MAX}")
    return int(text)


def _plain(value: object) -> str:
    """A number or a text as one text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadQuantity(f"is {type(value).__name__}, not a quantity")
    if isinstance(value, float):
        try:
            return format(Decimal(repr(value)), "f")
        except InvalidOperation:  # infinite, or no number
            raise BadQuantity(f"is {value}, not a quantity") from None
    return str(value).strip()[:40]


def watts_text(watts: int) -> str:
    """Watts in a sentence."""
    return f"{watts:,} W"


def percent_text(part: Fraction | float) -> str:
    """A part of the whole, with one decimal where it needs one."""
    hundred = float(part) * 100
    return f"{hundred:.0f} %" if abs(hundred - round(hundred)) < 0.05 else f"{hundred:.1f} %"
