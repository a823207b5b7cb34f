"""The route that shows rack power: everybody may read it, at either door."""

from quart import Response
from quart_trio import QuartTrio

from esnode.api.answers import answer
from esnode.powering.driver import Powering
from esnode.powering.known import known_of
from esnode.status.power_rack import describe_power


def add_power_routes(app: QuartTrio, powering: Powering) -> None:
    """Let an application answer for rack power."""

    @app.get("/v1/power")
    async def power() -> Response:
        return answer(describe_power(known_of(powering)))
