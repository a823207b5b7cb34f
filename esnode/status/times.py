"""Wall time as text. Its own file because every document writes it alike. It reads no clock."""

import datetime


def utc_text(unix_seconds: float) -> str:
    """ISO 8601 in UTC, whole seconds: ``2026-11-30T12:04:31Z``."""
    moment = datetime.datetime.fromtimestamp(int(unix_seconds), datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
