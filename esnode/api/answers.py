"""JSON answers and one-line errors, alike at both doors."""

import json

from quart import Response

from esnode.status.gpu import Document


def answer(document: Document, code: int = 200) -> Response:
    """A document."""
    body = json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n"
    return Response(body, status=code, content_type="application/json")


def problem(message: str, code: int, word: str = "") -> Response:
    """What went wrong, in one line for people and a word for programs."""
    document: Document = {"error": message, "code": word} if word else {"error": message}
    return answer(document, code)
