"""Sends calls, and repeats those that did not reach the service."""

from __future__ import annotations

import http.client
import json
import random
import re
import time
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass
from email.message import Message
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union
from urllib.parse import quote, urlencode

from ._api import ENDPOINTS
from ._errors import FreeholdError

#: The longest pause before another try. The error of a longer one tells its length.
_PAUSE_SECONDS_MAX = 60.0
_FIRST_PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class PaymentDemand:
    """A demand for a payment by x402: the header PAYMENT-REQUIRED, and the body of the 402."""

    header: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Options:
    """How a client calls the service. See Freehold."""

    url: str = "http://localhost:3000"
    api_key: Optional[str] = None
    tries: int = 4
    timeout: float = 60.0
    pay: Optional[Callable[[PaymentDemand], Optional[str]]] = None
    idempotency_key: Optional[str] = None
    payment: Optional[str] = None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """urllib would send the API key to the other address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


class Transport:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._url = options.url.rstrip("/")

    def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Calls an operation by its name. An argument may end in _, as Python has words of its own."""
        endpoint = ENDPOINTS[name]
        rest = {key.rstrip("_"): value for key, value in arguments.items()}
        path = re.sub(r"{(\w+)}", lambda found: quote(str(rest.pop(found[1])), safe=""), endpoint.path)
        search: List[Tuple[str, str]] = []
        for key in endpoint.query:
            value = rest.pop(key, None)
            values = value if isinstance(value, (list, tuple)) else [value]
            search += [(key, _text(one)) for one in values if one is not None]
        if not endpoint.has_body and rest:
            raise TypeError(f"{name} does not take {', '.join(rest)}.")
        body = rest if endpoint.has_body else None
        return self.send(endpoint.method, path + (f"?{urlencode(search)}" if search else ""), body, endpoint.is_keyed)

    def send(self, method: str, path: str, body: Optional[Mapping[str, Any]], is_keyed: bool) -> Any:
        """Sends any call. path: from /v1 on."""
        if not path.startswith("/"):
            raise TypeError("The path begins with /v1.")
        options = self._options
        key = (options.idempotency_key or str(uuid.uuid4())) if is_keyed else None
        headers = {"accept": "application/json", "user-agent": "freehold-python"}
        if options.api_key:
            headers["authorization"] = f"Bearer {options.api_key}"
        if key:
            headers["idempotency-key"] = key
        if options.payment:
            headers["x-payment-mode"] = options.payment
        data = None
        if body is not None:
            headers["content-type"] = "application/json"
            data = json.dumps(body, default=_text).encode()
        is_safe = method == "GET" or key is not None
        tried = 0
        while True:
            tried += 1
            request = urllib.request.Request(self._url + path, data, headers, method=method)
            try:
                return self._try(request, key)
            except FreeholdError as error:
                if self._paid(error, headers):
                    tried -= 1
                elif not is_safe or not _is_passing(error) or tried >= options.tries:
                    raise
                elif (error.retry_after or 0) > _PAUSE_SECONDS_MAX:
                    raise
                else:
                    _pause(error, tried)

    def _try(self, request: urllib.request.Request, key: Optional[str]) -> Any:
        try:
            with _OPENER.open(request, timeout=self._options.timeout) as response:
                return _parsed(response.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise _error_of(refusal.code, refusal.headers, refusal.read(), key) from None
        except (OSError, http.client.HTTPException) as cause:
            reason = getattr(cause, "reason", cause)
            detail = f"{self._url} does not answer: {reason or type(reason).__name__}"
            raise FreeholdError(0, {"code": "no_answer", "detail": detail}, key) from cause

    def _paid(self, error: FreeholdError, headers: Dict[str, str]) -> bool:
        """Signs the payment that a 402 demands, once for each call."""
        required = error.body.get("payment_required")
        pay = self._options.pay
        if error.status != 402 or not required or not pay or "payment-signature" in headers:
            return False
        signature = pay(PaymentDemand(required, error.body))
        if signature:
            headers["payment-signature"] = signature
        return bool(signature)


def _error_of(status: int, headers: Message, content: bytes, key: Optional[str]) -> FreeholdError:
    body = _parsed(content)
    after = headers.get("retry-after") or ""
    members: Dict[str, Any] = {"retry_after": int(after)} if re.fullmatch("[0-9]{1,6}", after) else {}
    if "payment-required" in headers:
        members["payment_required"] = headers["payment-required"]
    if 300 <= status < 400:
        detail = f"The service leads to {headers.get('location')}. Use the address of the service itself as url."
        return FreeholdError(status, {"code": "redirected", "detail": detail}, key)
    members.update(body if isinstance(body, dict) else {"detail": content[:200].decode(errors="replace")})
    return FreeholdError(status, members, key)


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _text(value: Any) -> Union[str, Any]:
    """Writes values as the service reads them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _is_passing(error: FreeholdError) -> bool:
    """Whether another try may succeed soon. A 402 needs money first."""
    return error.status in (0, 429, 502, 504) or (error.body.get("retryable") is True and error.status != 402)


def _pause(error: FreeholdError, tried: int) -> None:
    seconds = error.retry_after
    if seconds is None:
        seconds = _FIRST_PAUSE_SECONDS * 2 ** (tried - 1) * random.uniform(0.5, 1.5)
    time.sleep(seconds)
