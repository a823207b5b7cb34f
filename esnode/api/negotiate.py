"""What a request asks for: format, encoding and selection, from its headers and query. Pure."""

from urllib.parse import parse_qsl

from esnode.metrics import EVERYTHING, GROUPS, PROFILES, Selection

MAXIMUM_QUERY_BYTES = 2048


class BadQuery(Exception):
    """The query string is not understood; one line that says what would be."""


def wants_openmetrics(accept: str) -> bool:
    """Whether the client prefers OpenMetrics to the text format (RFC 9110, 12.5.1)."""
    openmetrics = text = 0.0
    for part in accept.split(","):
        media, _, parameters = part.strip().partition(";")
        media, quality = media.strip().lower(), _quality(parameters)
        if media == "application/openmetrics-text":
            openmetrics = max(openmetrics, quality)
        elif media in ("text/plain", "text/*", "*/*"):
            text = max(text, quality)
    return openmetrics > 0 and openmetrics >= text


def wants_gzip(accept_encoding: str) -> bool:
    """Whether the client takes gzip (RFC 9110, 12.5.3): what it says of gzip goes before ``*``."""
    qualities = {}
    for part in accept_encoding.split(","):
        coding, _, parameters = part.strip().partition(";")
        qualities[coding.strip().lower()] = _quality(parameters)
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name.strip().lower() == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0


def parse_selection(query: bytes) -> Selection:
    """`collect[]=GROUP` (any number) and `profile=NAME`.

    Raises:
        BadQuery: anything else.
    """
    if not query:
        return EVERYTHING
    if len(query) > MAXIMUM_QUERY_BYTES:
        raise BadQuery(f"the query is longer than {MAXIMUM_QUERY_BYTES} bytes")
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, strict_parsing=True)
    except ValueError:
        raise BadQuery("the query is not NAME=VALUE pairs") from None
    groups: dict[str, None] = {}
    profile = EVERYTHING
    for name, value in pairs:
        if name == "collect[]":
            if value not in GROUPS:
                raise BadQuery(
                    f"collect[]={value!r}: no such collector; one of {', '.join(GROUPS)}"
                )
            groups[value] = None
        elif name == "profile":
            if value not in PROFILES:
                raise BadQuery(f"profile={value!r}: no such profile; one of {', '.join(PROFILES)}")
            profile = PROFILES[value]
        else:
            raise BadQuery(f"unknown parameter {name!r}; use collect[]=NAME or profile=NAME")
    if not groups:
        return profile
    chosen = frozenset(groups)
    if profile.groups is not None:
        chosen &= profile.groups
    return Selection(groups=chosen, is_basic=profile.is_basic)
