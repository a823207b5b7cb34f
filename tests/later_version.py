"""A version of the cluster that is not written yet: this one, with a field more in everything.

The packages are copied and a few lines of the copy are changed, each of which must be there exactly
once, so an agent of that version is a real process that really sends other bytes.
"""

import shutil
from pathlib import Path

from tests.agents import REPOSITORY

CHANGES: dict[str, tuple[tuple[str, str], ...]] = {
    "gossip/wire.py": (
        (
            "return encode_document(_fields(message))",
            'return encode_document((*_fields(message), ("later", 1)))',
        ),
        (
            "    parts = list(encoded)\n",
            "    parts = list(encoded)\n"
            "    if sum(map(len, parts)) < 900:\n"
            '        parts.insert(0, encode_document((99, "a later message")))\n'
            "        parts.append(encode_document((11, bytes([99]) + bytes(140))))\n",
        ),
        (
            "return (bytes(entry.node_id), version.epoch, version.sequence, entry.content_hash)",
            "return (bytes(entry.node_id), version.epoch, version.sequence, entry.content_hash, 7)",
        ),
    ),
    "gossip/statements.py": (
        (
            "encoded_body = encode_document(body)",
            'encoded_body = encode_document((*body, "later"))',
        ),
    ),
    "stream_frames.py": (
        (
            "encode_document((FRAME_FORMAT, *_fields(frame)))",
            'encode_document((FRAME_FORMAT, *_fields(frame), "later"))',
        ),
    ),
    "papers.py": (
        ('"chain", node_der, issuer_der)', '"chain", node_der, issuer_der, "later")'),
        (
            '"admission", paper.payload, paper.signature)',
            '"admission", paper.payload, paper.signature, "later")',
        ),
        (
            "            request.offered[:OFFER_MAX],\n",
            "            request.offered[:OFFER_MAX], 9,\n",
        ),
    ),
    "rack/report.py": (
        ("            report.view_digest,\n", "            report.view_digest,\n            5,\n"),
    ),
    "rack/wire.py": (
        (
            "    return encode_document((*fields, rows) if rows else fields)\n",
            "    return encode_document((*fields, rows, 3))\n",
        ),
        ("        gpu.is_throttled,\n", "        gpu.is_throttled,\n        4,\n"),
        (
            "state.versions[:_COUNTS_MAX]),\n",
            "state.versions[:_COUNTS_MAX]),\n            8,\n",
        ),
        (
            "        _scale(total.age_seconds, _TENTHS),\n    )",
            "        _scale(total.age_seconds, _TENTHS),\n        2,\n    )",
        ),
    ),
}


def write_later_version(folder: Path) -> str:
    """Put it into a folder; what an agent's PYTHONPATH has to be."""
    copy = folder / "cluster"
    shutil.copytree(
        REPOSITORY / "cluster", copy, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
    )
    for name, changes in CHANGES.items():
        path = copy / name
        text = path.read_text(encoding="utf-8")
        for before, after in changes:
            assert text.count(before) == 1, (
                f"{name}: {before!r} is there {text.count(before)} times"
            )
            text = text.replace(before, after)
        path.write_text(text, encoding="utf-8")
    return f"{folder}:{REPOSITORY}"
