"""The file of golden bytes: a comment, a name, and the bytes in hexadecimal, 64 to a line."""

from pathlib import Path

from tests.golden.cases import Golden, gossip_cases
from tests.golden.keys import CLUSTER, N1, N2, SIGNER
from tests.golden.stream_cases import stream_cases

PATH = Path(__file__).with_name("wire.txt")
HEAD = """\
# What travels between nodes, byte by byte; docs/protocol.md says how to read it.
# Made by `python -m tests.golden`. A line that changes is a wire that changes: agents that are
# out there would no longer understand it. Adding cases is fine.
#
# cluster id       {cluster}
# A, gpu-01        {a}
# A's public key   {key}
# B, gpu-02        {b}
"""
_BYTES_A_LINE = 48


def all_cases() -> list[Golden]:
    return [*gossip_cases(), *stream_cases()]


def write() -> str:
    """The text of the file as this version would write it."""
    parts = [
        HEAD.format(
            cluster=CLUSTER.hex(),
            a=N1.identity.node_id.hex(),
            key=SIGNER.public_key.hex(),
            b=N2.identity.node_id.hex(),
        )
    ]
    for case in all_cases():
        lines = [
            case.encoded[at : at + _BYTES_A_LINE].hex()
            for at in range(0, len(case.encoded), _BYTES_A_LINE)
        ]
        body = "".join(f"  {line}\n" for line in lines)
        parts.append(f"\n# {case.says}\n{case.name}\n{body}")
    return "".join(parts)


def read() -> dict[str, bytes]:
    """What is pinned, by name."""
    pinned: dict[str, str] = {}
    name = ""
    for line in PATH.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            pinned[name] += line.strip()
        elif line and not line.startswith("#"):
            name = line
            pinned[name] = ""
    return {name: bytes.fromhex(digits) for name, digits in pinned.items()}
