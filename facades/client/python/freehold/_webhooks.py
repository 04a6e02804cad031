"""Verification of webhook messages by Standard Webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any, Dict, Mapping, Optional, TypedDict, Union

#: A message older or newer than this is refused, because somebody may have kept it.
_TOLERANCE_SECONDS = 300


class WebhookEvent(TypedDict):
    """An event, as the service delivers it."""

    id: str
    type: str
    created_at: str
    data: Dict[str, Any]


def verify_webhook(
    body: Union[str, bytes], headers: Mapping[str, str], secret: str, now: Optional[float] = None
) -> WebhookEvent:
    """Verifies a message, and returns its event. A rotated secret signs beside the new one for a day.

    body: the exact text of the request. secret: `whsec_…`, as the service showed it once.
    now: seconds since 1970; default: the clock.
    Raises ValueError if a signature, the time or a header is wrong.
    """
    given = {name.lower(): value for name, value in headers.items()}
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        if name not in given:
            raise ValueError(f"The header {name} is missing.")
    sent = given["webhook-timestamp"]
    if not sent.isascii() or not sent.isdigit():
        raise ValueError("The time of the message is no number.")
    if abs((time.time() if now is None else now) - int(sent)) > _TOLERANCE_SECONDS:
        raise ValueError("The time of the message is too far from now.")
    content = body.encode() if isinstance(body, str) else body
    signed = f"{given['webhook-id']}.{sent}.".encode() + content
    key = base64.b64decode(secret[6:] if secret.startswith("whsec_") else secret)
    right = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    for signature in given["webhook-signature"].encode().split(b" "):
        if hmac.compare_digest(signature, right):
            event: WebhookEvent = json.loads(content)
            return event
    raise ValueError("No signature of the message is right.")
