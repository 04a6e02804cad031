"""The Python SDK of Freehold. Needs Python 3.10 or newer, and nothing else."""

from ._client import Freehold
from ._errors import FreeholdError
from ._pages import Page, Pages
from ._servers import Order
from ._transport import PaymentDemand
from ._webhooks import WebhookEvent, verify_webhook

__all__ = [
    "Freehold",
    "FreeholdError",
    "Order",
    "Page",
    "Pages",
    "PaymentDemand",
    "WebhookEvent",
    "verify_webhook",
]
