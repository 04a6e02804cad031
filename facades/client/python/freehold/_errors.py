"""The error of all calls."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional


class FreeholdError(Exception):
    """The service refused a call, or did not answer. Decide by `code`."""

    code: str
    """As in the catalogue of errors at /docs/errors. Without an answer: `no_answer`."""
    status: int
    """The HTTP status; 0 without an answer."""
    detail: str
    """What happened, and what to do next."""
    errors: List[Mapping[str, str]]
    """The refused fields: `field`, `code` and `message` of each."""
    request_id: Optional[str]
    """The id of the call, for the operator."""
    retry_after: Optional[float]
    """Seconds until the next try can succeed."""
    idempotency_key: Optional[str]
    """The key of the call. Send it again to learn what became of a call without an answer."""
    body: Mapping[str, Any]
    """The whole answer, with members such as `required_usd`."""

    def __init__(self, status: int, body: Mapping[str, Any], idempotency_key: Optional[str] = None) -> None:
        self.detail = str(body.get("detail") or body.get("title") or f"The service answered {status}.")
        super().__init__(self.detail)
        self.status = status
        self.code = str(body.get("code", "unknown"))
        self.errors = body.get("errors") or []
        self.request_id = body.get("request_id")
        self.retry_after = body.get("retry_after")
        self.idempotency_key = idempotency_key
        self.body = body
