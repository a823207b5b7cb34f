"""Several nodes of one cluster in this process, over real sockets and streams."""

from contextlib import AsyncExitStack
from pathlib import Path

from tests.hosts import Cluster, sees, until


async def test_nodes_that_were_invited_see_each_other(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    first = cluster.enrol("n1", may_found=True)
    async with AsyncExitStack() as stack:
        founder = await stack.enter_async_context(first.running())
        hosts = [founder]
        for number in range(2, 7):
            machine = cluster.enrol(f"n{number}", seeds=(founder.address,))
            hosts.append(await stack.enter_async_context(machine.running()))

        names = {f"n{number}" for number in range(1, 7)}

        def is_complete() -> bool:
            return all(
                sees(host) == dict.fromkeys(names - {host.keys.identity.name}, "alive")
                for host in hosts
            )

        await until(is_complete)
        assert len({host.view().gossip.digest for host in hosts}) == 1
