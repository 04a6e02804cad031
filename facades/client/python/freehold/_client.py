"""The client and its groups of calls."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, cast

from . import _api as api
from ._pages import Pages
from ._servers import Servers
from ._transport import Options, PaymentDemand, Transport

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: A status of a top-up after which nothing more happens by itself.
_ENDED = {"confirmed", "expired", "cancelled"}
_POLL_SECONDS = 2.0


class _Group:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _pages(self, name: str, filters: Mapping[str, Any]) -> Pages[Any]:
        return Pages(lambda cursor: self._transport.call(name, {**filters, **({"cursor": cursor} if cursor else {})}))

    def _call(self, operation: str, /, **given: Any) -> Any:
        return self._transport.call(operation, given)


class Account(_Group):
    def register(self, **account: Unpack[api.RegisterArguments]) -> api.RegisterAnswer:
        """Makes an account. Its tokens are in the answer, so make an API key with them."""
        return cast(api.RegisterAnswer, self._call("Register", **account))

    def login(self, **login: Unpack[api.LoginArguments]) -> api.AuthResult:
        return cast(api.AuthResult, self._call("Login", **login))

    def login_totp(self, **login: Unpack[api.LoginTotpArguments]) -> api.AuthResult:
        return cast(api.AuthResult, self._call("LoginTotp", **login))

    def get(self) -> api.Account:
        return cast(api.Account, self._call("GetAccount"))

    def balance(self) -> api.Balance:
        return cast(api.Balance, self._call("GetBalance"))

    def usage(self, **span: Unpack[api.GetUsageArguments]) -> Pages[api.UsageItem]:
        """The bookings of a period. The argument `from` is `from_` here."""
        return self._pages("GetUsage", span)

    def audit_log(self, **filters: Unpack[api.GetAuditLogArguments]) -> Pages[api.AuditEntry]:
        return self._pages("GetAuditLog", filters)

    def change_password(self, **change: Unpack[api.ChangePasswordArguments]) -> api.ChangePasswordAnswer:
        return cast(api.ChangePasswordAnswer, self._call("ChangePassword", **change))

    def sessions(self, **filters: Unpack[api.ListSessionsArguments]) -> Pages[api.Session]:
        return self._pages("ListSessions", filters)

    def revoke_session(self, token_id: str) -> api.RevokeSessionAnswer:
        return cast(api.RevokeSessionAnswer, self._call("RevokeSession", token_id=token_id))

    def setup_totp(self, **setup: Unpack[api.SetupTotpArguments]) -> api.SetupTotpAnswer:
        """Begins a second factor. `enable_totp` completes it with a code of its secret."""
        return cast(api.SetupTotpAnswer, self._call("SetupTotp", **setup))

    def enable_totp(self, **code: Unpack[api.EnableTotpArguments]) -> api.EnableTotpAnswer:
        """Its answer has the recovery codes, once."""
        return cast(api.EnableTotpAnswer, self._call("EnableTotp", **code))

    def new_recovery_codes(self, **code: Unpack[api.NewRecoveryCodesArguments]) -> api.NewRecoveryCodesAnswer:
        """Replaces the recovery codes."""
        return cast(api.NewRecoveryCodesAnswer, self._call("NewRecoveryCodes", **code))

    def disable_totp(self, **code: Unpack[api.DisableTotpArguments]) -> api.DisableTotpAnswer:
        return cast(api.DisableTotpAnswer, self._call("DisableTotp", **code))


class ApiKeys(_Group):
    def create(self, **key: Unpack[api.CreateApiKeyArguments]) -> api.CreateApiKeyAnswer:
        return cast(api.CreateApiKeyAnswer, self._call("CreateApiKey", **key))

    def list(self, **filters: Unpack[api.ListApiKeysArguments]) -> Pages[api.ApiKey]:
        return self._pages("ListApiKeys", filters)

    def revoke(self, key_id: str) -> api.ApiKey:
        return cast(api.ApiKey, self._call("RevokeApiKey", key_id=key_id))


class SshKeys(_Group):
    def add(self, **key: Unpack[api.AddSshKeyArguments]) -> api.SshKey:
        return cast(api.SshKey, self._call("AddSshKey", **key))

    def list(self, **filters: Unpack[api.ListSshKeysArguments]) -> Pages[api.SshKey]:
        return self._pages("ListSshKeys", filters)

    def get(self, id: str) -> api.SshKey:
        return cast(api.SshKey, self._call("GetSshKey", id=id))

    def delete(self, id: str) -> api.DeleteSshKeyAnswer:
        return cast(api.DeleteSshKeyAnswer, self._call("DeleteSshKey", id=id))


class TopUps(_Group):
    def create(self, **top_up: Unpack[api.CreateTopupArguments]) -> api.TopUp:
        """Opens a top-up in a coin. Pay `amount_crypto` to `wallet_address` before `expires_at`."""
        return cast(api.TopUp, self._call("CreateTopup", **top_up))

    def get(self, order_number: str) -> api.TopUp:
        return cast(api.TopUp, self._call("GetTopup", order_number=order_number))

    def list(self, **filters: Unpack[api.ListTopupsArguments]) -> Pages[api.TopUp]:
        return self._pages("ListTopups", filters)

    def cancel(self, order_number: str) -> api.TopUp:
        """Cancels an unpaid top-up."""
        return cast(api.TopUp, self._call("CancelTopup", order_number=order_number))

    def receipt(self, order_number: str) -> api.Receipt:
        return cast(api.Receipt, self._call("GetReceipt", order_number=order_number))

    def settled(self, order_number: str, on_change: Optional[Callable[[api.TopUp], None]] = None) -> api.TopUp:
        """Waits until a top-up is confirmed, expired or cancelled. Reads it every two seconds."""
        while True:
            top_up = self.get(order_number)
            if on_change:
                on_change(top_up)
            if top_up["status"] in _ENDED:
                return top_up
            time.sleep(_POLL_SECONDS)


class Catalog(_Group):
    def get(self) -> api.GetCatalogAnswer:
        return cast(api.GetCatalogAnswer, self._call("GetCatalog"))

    def item(self, code: str) -> Any:
        return self._call("GetCatalogItem", code=code)

    def coins(self) -> Pages[api.Coin]:
        return self._pages("ListCoins", {})

    def bonus_tiers(self) -> Pages[api.ListBonusTiersEntry]:
        return self._pages("ListBonusTiers", {})


class Webhooks(_Group):
    def create(self, **webhook: Unpack[api.CreateWebhookArguments]) -> api.CreateWebhookAnswer:
        return cast(api.CreateWebhookAnswer, self._call("CreateWebhook", **webhook))

    def list(self, **filters: Unpack[api.ListWebhooksArguments]) -> Pages[api.Webhook]:
        return self._pages("ListWebhooks", filters)

    def test(self, id: str) -> api.TestWebhookAnswer:
        """Sends `webhook.test`, and answers whether the receiver took it."""
        return cast(api.TestWebhookAnswer, self._call("TestWebhook", id=id))

    def rotate_secret(self, id: str, **secret: Any) -> api.RotateWebhookSecretAnswer:
        """Makes a new secret. The old one signs beside it for a day.

        secret: as in RotateWebhookSecretArguments.
        """
        return cast(api.RotateWebhookSecretAnswer, self._call("RotateWebhookSecret", id=id, **secret))

    def delete(self, id: str) -> api.DeleteWebhookAnswer:
        return cast(api.DeleteWebhookAnswer, self._call("DeleteWebhook", id=id))

    def events(self) -> Pages[api.ListWebhookEventsEntry]:
        """The types of events, each with an example of its message."""
        return self._pages("ListWebhookEvents", {})

    def deliveries(self, id: str, **filters: Any) -> Pages[api.WebhookDelivery]:
        """The deliveries to a webhook, newest first.

        filters: those of ListWebhookDeliveriesArguments.
        """
        return self._pages("ListWebhookDeliveries", {**filters, "id": id})

    def redeliver(self, id: str, delivery_id: str) -> api.WebhookDelivery:
        """Sends a delivery again."""
        return cast(api.WebhookDelivery, self._call("RedeliverWebhook", id=id, delivery_id=delivery_id))


class Messages(_Group):
    def write(self, **message: Unpack[api.WriteMessageArguments]) -> api.Message:
        return cast(api.Message, self._call("WriteMessage", **message))

    def list(self, **filters: Unpack[api.ListMessagesArguments]) -> Pages[api.Message]:
        return self._pages("ListMessages", filters)

    def mark_read(self, id: str) -> api.Message:
        return cast(api.Message, self._call("MarkMessageRead", id=id))


class Transparency(_Group):
    def canary(self) -> api.Canary:
        return cast(api.Canary, self._call("GetCanary"))

    def status(self) -> api.GetStatusAnswer:
        return cast(api.GetStatusAnswer, self._call("GetStatus"))

    def peering(self) -> api.GetPeeringAnswer:
        return cast(api.GetPeeringAnswer, self._call("GetPeering"))


class Freehold:
    """A client of the service. All its calls raise FreeholdError.

    >>> freehold = Freehold("https://example.org", api_key="svc_live_…")
    >>> server = freehold.servers.order(service_code="vps-1").ready()
    """

    def __init__(
        self,
        url: str = "http://localhost:3000",
        api_key: Optional[str] = None,
        *,
        tries: int = 4,
        timeout: float = 60.0,
        pay: Optional[Callable[[PaymentDemand], Optional[str]]] = None,
    ) -> None:
        """
        api_key: an API key or an access token. Without it, only public calls work.
        tries: how often a call is tried.
        timeout: seconds without a byte until a try counts as lost.
        pay: pays by x402 with your signer. Returns the value of PAYMENT-SIGNATURE; None refuses to pay.
        """
        self._connect(Options(url, api_key, tries, timeout, pay))

    def _connect(self, options: Options) -> None:
        self._options = options
        self._transport = transport = Transport(options)
        self.account = Account(transport)
        self.api_keys = ApiKeys(transport)
        self.catalog = Catalog(transport)
        self.messages = Messages(transport)
        self.servers = Servers(transport)
        self.ssh_keys = SshKeys(transport)
        self.top_ups = TopUps(transport)
        self.transparency = Transparency(transport)
        self.webhooks = Webhooks(transport)

    def with_options(self, *, idempotency_key: Optional[str] = None, payment: Optional[str] = None) -> Freehold:
        """Returns a client for one call.

        idempotency_key: makes a repetition of the call safe, also by another process. Default: a random one.
        payment: "x402" asks to pay the call itself, and leaves the balance alone.
        """
        client = Freehold.__new__(Freehold)
        client._connect(replace(self._options, idempotency_key=idempotency_key, payment=payment))
        return client

    def call(self, name: str, /, **arguments: Any) -> Any:
        """Calls an operation by its name in the OpenAPI document."""
        return self._transport.call(name, arguments)

    def api(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None) -> Any:
        """Sends any call, such as `api("GET", "/v1/account")`."""
        return self._transport.send(method, path, body, method != "GET")
