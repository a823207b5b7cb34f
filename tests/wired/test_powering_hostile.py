"""Members that send what no honest one would, over real hosts on loopback."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from cluster.codec import encode_document
from cluster.gossip.messages import Application
from cluster.rack.ledger.messages import Excess, encode_message
from esnode.powering.governing import POWER_CHANNEL
from tests.hosts import until
from tests.wired.test_powering import RACK, Rack


async def test_nothing_that_a_member_sends_ends_the_life_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rack = Rack(tmp_path)
    async with AsyncExitStack() as stack:
        await rack.enter(stack)
        first, second = rack.nodes
        rack.sign(rack.genesis(400, first, second))
        await until(lambda: all(node.state == "enforcing" for node in rack.nodes))
        assert first.powering is not None
        governed = first.powering.governed
        assert governed is not None
        word = ("closing-statement", "x" * 60, bytes(16), (1, 0), 0, bytes(16), 0, (), ())
        stated = ("stated", encode_document((1, *word)), bytes(64))
        payload = encode_document((1, RACK, *stated))

        def fail(*_: object) -> None:
            raise ValueError("a mistake in this code")

        monkeypatch.setattr(governed.power, "receive", fail)
        counts = first.powering.means.counts
        host = second.host
        assert host is not None
        for one in (payload, encode_message(RACK, Excess(stamp=1, cut_ppm=0))):
            message = Application(channel=POWER_CHANNEL, priority=0, payload=one)
            host.submit(host.peer.send_application(first.node_id, message, host.now))
        await until(lambda: counts["faults"] >= 1 and counts["malformed"] >= 1)

        assert first.powering.governed is governed
        assert any("could not be worked out" in line for line in first.told)
