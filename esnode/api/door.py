"""Who may give orders over TCP: whoever has the token, from this machine unless an operator allows
more.

Its own file because it is the whole of that decision. Without a token in the configuration there
are no orders over TCP at all. On loopback a token is needed, too: every user of a login node is
there. A page in somebody's browser is kept out by its Origin, and by the name that it believes to
be talking to. It must not know what is ordered.
"""

import hmac
import ipaddress
import os
import pwd
from dataclasses import dataclass

from quart import Response, request

from esnode.api.answers import problem
from esnode.config import Config
from esnode.control_socket import Caller

BEARER = "Bearer "
_LOCAL_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What an operator has configured."""

    token: str | None = None
    is_public: bool = False
    user: str | None = None
    """As whom jobs run that come through it."""

    def refusal(self) -> Response | None:
        """Why the request at hand may give no order; None where it may."""
        if self.token is None:
            return problem(
                "no orders over TCP: set orchestrator.token, or use the control socket",
                403,
                "no-token",
            )
        if not self.is_public and not _is_loopback(request.remote_addr or ""):
            return problem(
                "orders are taken from this machine alone; orchestrator.allow_public changes that",
                403,
                "not-local",
            )
        if "Origin" in request.headers:
            return problem("orders from web pages are not taken", 403, "foreign-origin")
        if not self.is_public and not _is_local_name(request.host):
            return problem(f"this is not {request.host[:60]!r}", 403, "foreign-host")
        if not self._is_right(request.headers.get("Authorization", "")):
            response = problem("the token is missing or wrong", 401, "bad-token")
            response.headers["WWW-Authenticate"] = "Bearer"
            return response
        return None

    def _is_right(self, given: str) -> bool:
        assert self.token is not None
        if not given.startswith(BEARER):
            return False
        return hmac.compare_digest(given[len(BEARER) :].encode(), self.token.encode())

    def caller(self) -> Caller | str:
        """As whom jobs of this door run; a line where nobody is named who could be meant."""
        if self.user is None:
            if os.geteuid() == 0:
                return "set orchestrator.user: jobs that come with the token run as this user"
            return Caller(pid=0, uid=os.geteuid(), gid=os.getegid())
        try:
            entry = pwd.getpwnam(self.user)
        except KeyError:
            return f"orchestrator.user: this machine knows no user {self.user!r}"
        return Caller(pid=0, uid=entry.pw_uid, gid=entry.pw_gid)


def door_of(config: Config) -> Door | None:
    """The door that a configuration opens; None where it opens none."""
    if not config.orchestrator_enabled or config.orchestrator_token is None:
        return None
    return Door(
        token=config.orchestrator_token,
        is_public=config.orchestrator_allow_public,
        user=config.orchestrator_user,
    )


def _is_loopback(address: str) -> bool:
    """As hypercorn tells it: an address, maybe with its scope."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return bool((mapped or parsed).is_loopback)


def _is_local_name(host: str) -> bool:
    """Whether a Host header names this machine as only itself can: no name of a stranger's DNS."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    name = name.strip("[]").lower()
    return name in _LOCAL_NAMES or _is_loopback(name)
