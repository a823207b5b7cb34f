"""The bodies of orders: JSON objects, read name by name, each mistake in one line.

Its own file because every route that changes something begins with it.
"""

import base64
import binascii
import json
from collections.abc import Mapping

from quart import Request


class BadOrder(Exception):
    """The body of a request is not what the route takes; one line."""


async def order_of(request: Request) -> dict[str, object]:
    """The object in a request's body.

    Raises:
        BadOrder: there is none.
    """
    try:
        document = json.loads(await request.get_data())
    except (ValueError, RecursionError):
        raise BadOrder("the body is not JSON") from None
    if not isinstance(document, dict):
        raise BadOrder("the body is not a JSON object")
    return document


def text_of(order: Mapping[str, object], name: str) -> str:
    """A text that must be there."""
    value = order.get(name)
    if not isinstance(value, str) or not value:
        raise BadOrder(f"{name}: a text is needed")
    return value


def optional_of(order: Mapping[str, object], name: str) -> str | None:
    """A text that may be missing."""
    return None if order.get(name) is None else text_of(order, name)


def bytes_of(order: Mapping[str, object], name: str) -> bytes:
    """Bytes in base64."""
    try:
        return base64.b64decode(text_of(order, name), validate=True)
    except (binascii.Error, ValueError):
        raise BadOrder(f"{name}: is not base64") from None
