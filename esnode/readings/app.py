"""What an application endpoint (an inference server) says of its own work."""

from dataclasses import dataclass

from esnode.readings.host import Absence


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCount:
    """One token counter of one model."""

    model: str
    """The model's name as the server labels it; empty when it does not."""
    kind: str
    """``prompt`` (read), ``generation`` (written) or ``unknown`` (one number for both)."""
    tokens_total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AppReading:
    """One scrape of one `app_metrics_url`."""

    endpoint: str
    """The URL without credentials and query."""
    engine: str
    """``vllm``, ``sglang``, ``tgi``, ``triton``, ``llamacpp`` or ``generic``."""
    tokens: tuple[TokenCount, ...] = ()
    requests_running: float | None = None
    requests_waiting: float | None = None
    absent: tuple[Absence, ...] = ()
