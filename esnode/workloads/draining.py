"""Waiting until a model server has nothing under way.

Its own file because it is the one place where a job's own metrics decide something. While it waits,
`/v1/jobs/ID/ready` answers 503, so that a balancer that asks there sends nothing new. A server that
does not tell how many requests it has is waited for as long as its spec allows; one that does not
answer any more has none. It must not know who sends requests.
"""

from functools import partial

import trio

from esnode.clock import monotonic_seconds
from esnode.collectors.app import AppCollector
from esnode.collectors.base import CollectFailed
from esnode.workloads.book import Job

ASK_SECONDS = 1.0
SILENT_MAX = 5
IDLE_MIN = 2
"""Asked twice: a request may be on its way while a balancer still believes the server ready."""


async def drain(job: Job) -> None:
    """Return once nothing is under way; whoever calls limits how long that may take."""
    assert job.spec is not None
    url = job.spec.metrics_url or f"{(job.spec.engine_url or '').rstrip('/')}/metrics"
    collector = AppCollector([url], clock=monotonic_seconds)
    limiter = trio.CapacityLimiter(1)
    (target,) = collector.discover().targets.values()
    idle_count = silent_count = 0
    while idle_count < IDLE_MIN and silent_count < SILENT_MAX:
        await trio.sleep(ASK_SECONDS)
        try:
            reading = await trio.to_thread.run_sync(
                partial(collector.read, target), abandon_on_cancel=True, limiter=limiter
            )
        except CollectFailed:
            silent_count += 1
            continue
        silent_count = 0
        is_idle = reading.requests_running == 0 and not reading.requests_waiting
        idle_count = idle_count + 1 if is_idle else 0
    collector.close()
