"""A network of one's own: loopback alone, with counters, loss and silence by nftables."""

import ctypes
import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_SIGKILL = 9
_LIBC = ctypes.CDLL(None, use_errno=True)
_PACKAGES = {"ip": "iproute2", "nft": "nftables", "serf": "serf"}


def missing_line(*programs: str) -> str | None:
    """What has to be there before anything can be measured; None if it is."""
    if os.geteuid() != 0:
        return "needs root, for a network namespace and nftables"
    absent = [one for one in programs if shutil.which(one) is None]
    if absent:
        packages = " ".join(_PACKAGES[one] for one in absent)
        return f"needs {', '.join(absent)}: apt-get install {packages}"
    return None


def enter() -> None:
    """Move this process, and all that it starts, into a network of its own."""
    if _LIBC.unshare(_CLONE_NEWNET) != 0:
        raise SystemExit(f"no network namespace: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def die_with_parent() -> None:
    """For a child between fork and exec."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, _SIGKILL)


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Packets and bytes of IP that came in, all nodes together."""

    packets: int
    bytes: int


class Network:
    """What happens to packets for one gossip port."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._loss_ratio = 0.0
        self._silent: tuple[str, ...] = ()
        self._apply()

    def lose(self, ratio: float) -> None:
        """Each packet for the port is lost with this chance."""
        self._loss_ratio = ratio
        self._apply()

    def silence(self, addresses: Iterable[str]) -> None:
        """Nothing to or from these arrives any more, not even that they are gone."""
        self._silent = tuple(addresses)
        self._apply()

    def udp(self) -> Traffic:
        """Datagrams since the rules were last changed."""
        listed = subprocess.run(
            ["nft", "-j", "list", "counters", "table", "inet", "gossip"],
            check=True,
            capture_output=True,
        )
        for item in json.loads(listed.stdout)["nftables"]:
            counter = item.get("counter", {})
            if counter.get("name") == "datagrams":
                return Traffic(packets=counter["packets"], bytes=counter["bytes"])
        raise SystemExit("nftables does not count")

    def _apply(self) -> None:
        rules = [f"udp dport {self._port} counter name datagrams"]
        rules += [f"ip {way} {one} drop" for one in self._silent for way in ("saddr", "daddr")]
        if self._loss_ratio:
            rules += [
                f"{way} {self._port} numgen random mod 1000 < {round(self._loss_ratio * 1000)} drop"
                for way in ("udp dport", "tcp dport", "tcp sport")
            ]
        body = "\n".join(f"  {rule}" for rule in rules)
        script = (
            "table inet gossip {}\ndelete table inet gossip\n"
            "table inet gossip {\n counter datagrams {}\n"
            f" chain in {{ type filter hook input priority 0;\n{body}\n }}\n}}\n"
        )
        subprocess.run(["nft", "-f", "-"], input=script.encode(), check=True)
