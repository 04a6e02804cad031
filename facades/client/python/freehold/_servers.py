"""Servers, and the wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, cast

from . import _api as api
from ._errors import FreeholdError
from ._pages import Pages
from ._transport import Transport

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: A status that lasts until somebody changes the server.
_STABLE = {"running", "stopped", "suspended", "failed", "deleted"}
#: Seconds that the service holds a call until the server has the status.
_WAIT_SECONDS = 25

OnChange = Optional[Callable[[api.Server], None]]


class Order:
    """An order, and the way to wait for its server."""

    def __init__(self, servers: Servers, server: api.OrderedServer) -> None:
        self._servers = servers
        self.server = server
        """The server as it was when the service took the order, with its root password if it has one."""
        self.order_number: str = server["order_number"]

    def ready(self, on_change: OnChange = None) -> api.Server:
        """Waits until the server runs. Raises FreeholdError if it fails."""
        return self._servers.ready(self.order_number, on_change)


class Servers:
    """The servers of the account."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def order(self, **order: Unpack[api.OrderServerArguments]) -> Order:
        """Orders a server, and pays its first month. `ready()` of the answer waits until it runs."""
        if order.get("dry_run"):
            raise TypeError("order() buys a server. Ask quote() for the price.")
        return Order(self, self._transport.call("OrderServer", order))

    def quote(self, **order: Unpack[api.OrderServerArguments]) -> api.Quote:
        """Returns the price of an order, and orders nothing."""
        return cast(api.Quote, self._transport.call("OrderServer", {**order, "dry_run": True}))

    def get(self, order_number: str) -> api.Server:
        return cast(api.Server, self._transport.call("GetServer", {"order_number": order_number}))

    def list(self, **filters: Unpack[api.ListServersArguments]) -> Pages[api.Server]:
        return Pages(lambda cursor: self._transport.call("ListServers", {**filters, **({"cursor": cursor} if cursor else {})}))

    def update(self, order_number: str, **changes: Any) -> api.UpdateServerAnswer:
        """Changes fields of a server, or starts one operation: `power_state`, `action` or `service_code`.

        changes: those of UpdateServerArguments.
        """
        given = {**changes, "order_number": order_number}
        return cast(api.UpdateServerAnswer, self._transport.call("UpdateServer", given))

    def start(self, order_number: str) -> api.UpdateServerAnswer:
        return self.update(order_number, power_state="on")

    def stop(self, order_number: str) -> api.UpdateServerAnswer:
        return self.update(order_number, power_state="off")

    def reboot(self, order_number: str) -> api.UpdateServerAnswer:
        return self.update(order_number, action="reboot")

    def rebuild(self, order_number: str, **changes: Any) -> api.UpdateServerAnswer:
        """Deletes all data of a server, and installs its system again."""
        return self.update(order_number, **changes, action="rebuild")

    def resize(self, order_number: str, service_code: str) -> api.UpdateServerAnswer:
        """Gives a stopped server another tier."""
        return self.update(order_number, service_code=service_code)

    def delete(self, order_number: str) -> api.DeleteServerAnswer:
        """Deletes a server and its data. The unused hours go back to the balance."""
        return cast(api.DeleteServerAnswer, self._transport.call("DeleteServer", {"order_number": order_number}))

    def metrics(self, order_number: str, **span: Any) -> api.GetServerMetricsAnswer:
        """Returns what the server used. span: `from_`, `to` and `step`."""
        given = {**span, "order_number": order_number}
        return cast(api.GetServerMetricsAnswer, self._transport.call("GetServerMetrics", given))

    def ready(self, order_number: str, on_change: OnChange = None) -> api.Server:
        """Waits until a server runs. Raises FreeholdError with the code of its failure, or of its status."""
        server = self.settled(order_number, "running", on_change)
        failure = server.get("failure")
        if server["status"] == "running" and not failure:
            return server
        code = failure["code"] if failure else server["status"]
        detail = failure["message"] if failure else f"The server is {server['status']}."
        raise FreeholdError(0, {"code": code, "detail": detail, "server": server})

    def settled(self, order_number: str, status: str, on_change: OnChange = None) -> api.Server:
        """Waits until a server has a status, or another one that lasts. The service holds each call until then."""
        while True:
            given = {"order_number": order_number, "wait_for": status, "timeout": _WAIT_SECONDS}
            server = cast(api.Server, self._transport.call("GetServer", given))
            if on_change:
                on_change(server)
            if server["status"] == status or server["status"] in _STABLE:
                return server
