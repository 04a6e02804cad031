"""The types and endpoints of the API. Made by facades/client/python.ts from the OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Literal, NamedTuple, Tuple, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class Endpoint(NamedTuple):
    """How the SDK calls an operation."""

    method: str
    path: str
    query: Tuple[str, ...]
    has_body: bool
    is_keyed: bool


class GetAccountArguments(TypedDict):
    """The arguments of GetAccount."""


class AccountLimits(TypedDict):
    """The most that the account may have of each thing."""

    api_keys: int
    """Active API keys."""
    servers: int
    """Servers."""
    ssh_keys: int
    """SSH keys."""
    webhooks: int
    """Webhooks."""
    agent_entries: int
    """Entries in the directory of agents."""
    pending_topups: int
    """Top-ups that wait for a payment."""
    sessions: int
    """Sessions, at least 1."""
    oauth_clients: int
    """OAuth clients."""


class Account(TypedDict):
    """An account. It has an email at most, and no name."""

    id: str
    """The id of the account."""
    kind: Union[Literal["person", "agent"], str]
    """agent: it came by an OAuth registration alone."""
    email: Union[str, None]
    """Null for agents."""
    totp_enabled: bool
    """Whether logins need a second factor."""
    pgp_fingerprint: Union[str, None]
    """The key that recovers the account."""
    low_balance_alert_days: int
    """The service sends balance.low when the balance covers fewer days of renewals."""
    limits: AccountLimits
    """The most that the account may have of each thing."""
    created_at: str
    """A time, RFC 3339 in UTC."""


class GetBalanceArguments(TypedDict):
    """The arguments of GetBalance."""


class Balance(TypedDict):
    """The balance of an account."""

    balance_usd: float
    """The amount that the account can spend now."""
    pending_usd: float
    """Payments of top-ups that wait for confirmation, at the rate of their quote. It includes refunds that wait until the payments behind them are final. Also the money of deleted dedicated servers that still have their hosts."""
    owed_usd: NotRequired[float]
    """The debt of payments that their chain removed. Later credits pay it first, and orders and renewals wait. Absent without a debt."""
    currency: str
    """Always USD."""
    monthly_cost_usd: float
    """The price of the next renewals of the servers that renew automatically."""
    funded_until: Union[str, None]
    """When the balance no longer covers the renewals; null without renewals."""
    updated_at: str
    """A time, RFC 3339 in UTC."""


class GetUsageArguments(TypedDict):
    """The arguments of GetUsage."""

    from_: NotRequired[str]
    """The first day, in UTC. Default: the first day of the month."""
    to: NotRequired[str]
    """The last day, in UTC. Default: today."""
    limit: NotRequired[int]
    """Entries of a page."""
    cursor: NotRequired[str]
    """The previous next_cursor."""


UsageItem = TypedDict(
    "UsageItem",
    {
        "kind": 'str',
        "order_number": 'Union[str, None]',
        "service_code": 'Union[str, None]',
        "description": 'str',
        "from": 'str',
        "to": 'str',
        "hours": 'Union[int, None]',
        "amount_usd": 'float',
    },
)


class GetAuditLogArguments(TypedDict):
    """The arguments of GetAuditLog."""

    limit: NotRequired[int]
    """Entries of a page."""
    cursor: NotRequired[str]
    """The previous next_cursor."""
    action: NotRequired[List[str]]
    """Only these actions, or those that begin so: api.request, or the type of an event. An unknown action has no entries."""
    since: NotRequired[str]
    """Only entries of this day or time, or later."""
    until: NotRequired[str]
    """Only entries before this time, or to this day."""


class AuditEntryActor(TypedDict):
    """The credential, the operator or the service that acted."""

    type: str
    """api_key, access_token, operator or system."""
    id: Union[str, None]
    """The id of the credential, never the credential itself."""
    name: Union[str, None]
    """Customers see no names of operators."""


class AuditEntryResource(TypedDict):
    type: str
    """The kind of the resource, such as server."""
    id: str
    """The id or order number of the resource."""


class AuditEntry(TypedDict):
    """An entry of the audit log. It has no body, query, credential or address."""

    id: str
    """The id of the entry."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    action: str
    """The type of an event, or api.request."""
    actor: AuditEntryActor
    """The credential, the operator or the service that acted."""
    method: Union[str, None]
    """The HTTP method of api.request."""
    path: Union[str, None]
    """The path template of api.request; for MCP, /mcp# and the tool."""
    status: Union[int, None]
    """The HTTP status of api.request."""
    resource: Union[AuditEntryResource, None]
    """The changed resource. In the log of the operator, api.request names the account that it concerned."""
    count: NotRequired[int]
    """How often an attack or a refusal came since its entry before, at most one entry a minute; else null."""
    request_id: Union[str, None]
    """The id of the request, which all its entries share."""


class SearchAgentsArguments(TypedDict):
    """The arguments of SearchAgents."""

    limit: NotRequired[int]
    """Entries of a page."""
    cursor: NotRequired[str]
    """The previous next_cursor."""
    q: NotRequired[str]
    """Beginnings of words of the name, slug or description."""
    skill: NotRequired[str]
    """The id or a tag of a skill."""
    protocol: NotRequired[Literal["mcp", "a2a", "http", "graphql"]]
    """Only agents with an endpoint of this protocol."""
    verified: NotRequired[bool]
    """Only with a verified key, or without. It proves no endpoints."""


class AgentEndpoints(TypedDict):
    protocol: Union[Literal["mcp", "a2a", "http", "graphql"], str]
    """The protocol that the endpoint speaks."""
    url: str
    """The https URL of the endpoint."""
    protocol_version: Union[str, None]
    """The version of the protocol; null: not stated."""


class AgentSkills(TypedDict):
    id: str
    """The id of the skill within the entry."""
    name: str
    """The name of the skill."""
    description: str
    """The work that the skill does."""
    tags: List[str]
    """Words by which a search finds the skill."""


class Agent(TypedDict):
    """An entry of the directory of agents."""

    id: str
    """The id of the entry."""
    slug: str
    """The name of the entry in its URL."""
    name: str
    """The name of the agent."""
    description: str
    """The work that the agent does."""
    url: str
    """The URL of the agent."""
    status: Union[Literal["listed", "unlisted", "hidden"], str]
    """Whether the search finds the entry."""
    version: Union[str, None]
    """The agent's own version; null: not stated."""
    provider_name: Union[str, None]
    """The maker of the agent."""
    provider_url: Union[str, None]
    """The site of the maker."""
    documentation_url: Union[str, None]
    """The documentation of the agent."""
    icon_url: Union[str, None]
    """A picture of the agent."""
    endpoints: List[AgentEndpoints]
    """The addresses of the agent, one to ten."""
    skills: List[AgentSkills]
    """The skills of the agent, up to 20."""
    public_key: Union[str, None]
    """Ed25519, base64."""
    public_key_thumbprint: Union[str, None]
    """RFC 7638."""
    verified: bool
    """Whether the agent's own card names this key. The card is at url + /.well-known/agent-card.json. It holds the key as publicKey (JWK or base64), in jwks.keys, or as jwk or kid of a signature. A worker checks it after each change of the entry, and each day. It does not prove the name, the description or the endpoints. Any account can publish the URL and the key of another agent."""
    x402: bool
    """Whether the agent takes x402 payments."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    updated_at: str
    """A time, RFC 3339 in UTC."""


class AgentEndpointInput(TypedDict):
    protocol: Literal["mcp", "a2a", "http", "graphql"]
    """Its protocol."""
    url: str
    """Its https URL."""
    protocol_version: NotRequired[str]
    """Its version."""


class AgentSkillInput(TypedDict):
    id: str
    """Its id within the entry."""
    name: str
    """Its name."""
    description: str
    """Its work."""
    tags: List[str]
    """Words for the search."""


class PublishAgentArguments(TypedDict):
    """The arguments of PublishAgent."""

    slug: str
    """The name of the entry: 3 to 40 of a-z, 0-9 and -. Publishing it again replaces the entry."""
    name: str
    """Its name."""
    description: str
    """Its work."""
    url: str
    """Its URL."""
    version: NotRequired[str]
    """Its own version."""
    provider_name: NotRequired[str]
    """Its maker."""
    provider_url: NotRequired[str]
    """Its maker's site."""
    documentation_url: NotRequired[str]
    """Its documentation."""
    icon_url: NotRequired[str]
    """Its picture."""
    endpoints: List[AgentEndpointInput]
    """Its addresses, one to ten."""
    skills: NotRequired[List[AgentSkillInput]]
    """Its skills, up to 20."""
    public_key: NotRequired[str]
    """As JWK or base64."""
    x402: NotRequired[bool]
    """Whether it takes x402 payments."""
    listed: NotRequired[bool]
    """False removes the entry from the directory."""


class RegisterArguments(TypedDict):
    """The arguments of Register."""

    email: str
    """For login."""
    password: str
    """8 to 128 characters."""
    proof_of_work: NotRequired[str]
    """After proof_of_work_required (SHA-256). Onion services always ask."""
    recovery_codes: NotRequired[bool]
    """True: answers codes that replace a lost password."""


class TokenPair(TypedDict):
    """An access token and the refresh token that renews it."""

    token_id: str
    """Identifies the session."""
    access_token: str
    """Send it as 'Authorization: Bearer …'."""
    token_type: str
    """Always Bearer."""
    expires_in: int
    """Seconds until the access token expires."""
    refresh_token: str
    """Valid for one refresh."""
    refresh_expires_in: int
    """Seconds until the refresh token expires."""
    scope: str
    """The scope of the tokens."""


class RegisterAnswer(TypedDict):
    account: Account
    tokens: TokenPair
    recovery_codes: NotRequired[List[str]]
    """Codes that replace a lost password, if you asked for them. The service shows them only here."""


class LoginArguments(TypedDict):
    """The arguments of Login."""

    email: str
    """An email address."""
    password: str
    """The present password of the account."""
    totp_code: NotRequired[str]
    """The second factor. Without it, an account with two-factor authentication gets a login_token."""


class AuthResult(TypedDict):
    """Tokens. With a second factor, a login_token instead."""

    totp_required: bool
    """Whether the login waits for a second factor."""
    login_token: NotRequired[str]
    """Identifies the pending login. Five wrong codes end it."""
    expires_in: NotRequired[int]
    """Seconds until the pending login ends."""
    account: NotRequired[Account]
    tokens: NotRequired[TokenPair]


class LoginTotpArguments(TypedDict):
    """The arguments of LoginTotp."""

    login_token: str
    """The login_token of the pending login."""
    totp_code: str
    """A code of the authenticator (six digits), or a recovery code (xxxx-xxxx)."""


class RefreshTokensArguments(TypedDict):
    """The arguments of RefreshTokens."""

    refresh_token: str
    """The refresh token, unused."""


class RefreshTokensAnswer(TypedDict):
    tokens: TokenPair


class ListSessionsArguments(TypedDict):
    """The arguments of ListSessions."""

    limit: NotRequired[int]
    """Entries of a page."""
    cursor: NotRequired[str]
    """The previous next_cursor."""


class Session(TypedDict):
    """An open session."""

    token_id: str
    """Identifies the session."""
    scope: str
    """The scope of the tokens."""
    source: str
    """register, login, or oauth: with the id of the client."""
    user_agent: Union[str, None]
    """The User-Agent header of the login, up to 200 characters."""
    current: bool
    """Whether this request uses the session."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    last_used_at: Union[str, None]
    """The time of the last use, with the precision of a minute."""
    expires_at: str
    """When the access token expires. The refresh token may live longer."""


class RevokeSessionArguments(TypedDict):
    """The arguments of RevokeSession."""

    token_id: str
    """The session to end."""


class RevokeSessionAnswer(TypedDict):
    token_id: str
    """The ended session."""
    revoked: bool
    """Always true."""


class SetupTotpArguments(TypedDict):
    """The arguments of SetupTotp."""

    password: str
    """The present password of the account."""


class SetupTotpAnswer(TypedDict):
    provisioning_uri: str
    """The URI for an authenticator, best as a QR code."""
    secret: str
    """The seed, in base32."""
    algorithm: str
    """Always SHA1."""
    digits: int
    """The number of digits of a code."""
    period: int
    """Seconds for which a code is valid."""
    expires_in: int
    """Seconds until the setup expires."""


class EnableTotpArguments(TypedDict):
    """The arguments of EnableTotp."""

    totp_code: str
    """A code of the authenticator."""


class EnableTotpAnswer(TypedDict):
    totp_enabled: bool
    """Always true."""
    recovery_codes: List[str]
    """Ten codes, each valid once in place of a code. The service shows them once."""


class NewRecoveryCodesArguments(TypedDict):
    """The arguments of NewRecoveryCodes."""

    totp_code: str
    """A code of the authenticator (six digits), or a recovery code (xxxx-xxxx)."""


class NewRecoveryCodesAnswer(TypedDict):
    recovery_codes: List[str]
    """Ten codes, each valid once in place of a code. The service shows them once."""


class DisableTotpArguments(TypedDict):
    """The arguments of DisableTotp."""

    totp_code: str
    """A code of the authenticator (six digits), or a recovery code (xxxx-xxxx)."""


class DisableTotpAnswer(TypedDict):
    totp_enabled: bool
    """Always false."""


class ChangePasswordArguments(TypedDict):
    """The arguments of ChangePassword."""

    current_password: str
    """The present password of the account."""
    new_password: str
    """8 to 128 characters."""
    totp_code: NotRequired[str]
    """Required if the account has two-factor authentication."""
    revoke: NotRequired[Literal["sessions", "everything"]]
    """sessions: all other sessions. everything: also API keys, OAuth clients and webhook secrets, at once."""


class ChangePasswordAnswer(TypedDict):
    changed: bool
    """Always true."""
    sessions_revoked: int
    """The number of other sessions that ended."""
    api_keys_revoked: NotRequired[int]
    """The number of ended API keys."""
    oauth_clients_deleted: NotRequired[int]
    """The number of deleted OAuth clients."""
    webhook_secrets_replaced: NotRequired[int]
    """The number of webhooks with a new secret."""


class CreateApiKeyArguments(TypedDict):
    """The arguments of CreateApiKey."""

    name: str
    """A name to recognise the key by."""
    scope: str
    """read, servers, billing, full, or several with spaces."""
    ip_allowlist: NotRequired[Union[List[str], str]]
    """Up to 20 networks (CIDR) that may use the key, as a list or with commas. Default: all networks."""
    expires_at: NotRequired[str]
    """When the key stops working. Default: never."""
    spend_limit_usd: NotRequired[float]
    """The most to spend in a calendar month (UTC). Default: the whole balance."""
    totp_code: NotRequired[str]
    """The code for step_up_required."""


class CreateApiKeyAnswer(TypedDict):
    key_id: str
    """Identifies the key."""
    name: str
    """The name that its creator chose."""
    scope: str
    """One or more of read, servers, billing, full."""
    prefix: str
    """The first 13 characters of the key."""
    status: Union[Literal["active", "expired", "revoked"], str]
    """Whether the key works."""
    ip_allowlist: List[str]
    """Networks (CIDR) that may use the key; none: all networks."""
    spend_limit_usd: Union[float, None]
    """The most that the key may spend in a calendar month (UTC)."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    last_used_at: Union[str, None]
    """The time of the last use, with the precision of a minute."""
    expires_at: Union[str, None]
    """When the key stops working; null: never."""
    revoked_at: Union[str, None]
    """When its owner or the operator ended the key."""
    plaintext: str
    """The key itself. The service shows it only here."""


class ListApiKeysArguments(TypedDict):
    """The arguments of ListApiKeys."""

    limit: NotRequired[int]
    """Entries of a page."""
    cursor: NotRequired[str]
    """The previous next_cursor."""
    status: NotRequired[List[Literal["active", "expired", "revoked"]]]
    """Only keys in these states."""


class ApiKey(TypedDict):
    """A long-lived credential, without the credential itself."""

    key_id: str
    """Identifies the key."""
    name: str
    """The name that its creator chose."""
    scope: str
    """One or more of read, servers, billing, full."""
    prefix: str
    """The first 13 characters of the key."""
    status: Union[Literal["active", "expired", "revoked"], str]
    """Whether the key works."""
    ip_allowlist: List[str]
    """Networks (CIDR) that may use the key; none: all networks."""
    spend_limit_usd: Union[float, None]
    """The most that the key may spend in a calendar month (UTC)."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    last_used_at: Union[str, None]
    """The time of the last use, with the precision of a minute."""
    expires_at: Union[str, None]
    """When the key stops working; null: never."""
    revoked_at: Union[str, None]
    """When its owner or the operator ended the key."""


class RevokeApiKeyArguments(TypedDict):
    """The arguments of RevokeApiKey."""

    key_id: str
    """The key to revoke."""


class ListCoinsArguments(TypedDict):
    """The arguments of ListCoins."""


class Coin(TypedDict):
    """An accepted coin."""

    code: str
    """The code to top up with."""
    name: str
    """The name of the coin."""
    network: str
    """The network that carries the coin."""
    decimals: int
    """The digits after the point that the coin has."""
    confirmations_required: int
    """The confirmations after which the service credits a payment."""
    rate_usd: Union[float, None]
    """The price of one coin."""
    min_usd: float
    """The smallest top-up."""
    max_usd: float
    """The largest top-up."""
    available: bool
    """Whether new top-ups can use it at the moment."""
    x402: bool
    """Whether it pays for x402 requests."""


class ListBonusTiersArguments(TypedDict):
    """The arguments of ListBonusTiers."""


class ListBonusTiersEntry(TypedDict):
    min_usd: float
    """The smallest top-up with this bonus."""
    bonus_percent: float
    """The bonus, as a percentage of the whole top-up."""


class CreateTopupArguments(TypedDict):
    """The arguments of CreateTopup."""

    amount_usd: float
    """US dollars, 30 to 10,000."""
    crypto: NotRequired[str]
    """The code of an accepted coin of GET /v1/billing/coins, in upper or lower case, else unknown_coin. Required unless x402 pays."""


class TopUp(TypedDict):
    """A payment into the balance."""

    order_number: str
    """Identifies the top-up."""
    status: Union[Literal["pending", "confirming", "confirmed", "expired", "cancelled"], str]
    """pending: unpaid. confirming: paid, with too few confirmations. confirmed: in the balance. expired, cancelled: late payments count."""
    mode: Union[Literal["crypto", "x402"], str]
    """By coins to an address, or by x402."""
    amount_usd: float
    """The amount that its owner asked for."""
    bonus_usd: float
    """The bonus in addition to the amount."""
    crypto: str
    """The code of the coin."""
    network: str
    """The network that carries the payment."""
    amount_crypto: str
    """The amount to pay, in the coin, as a decimal string."""
    rate_usd: float
    """The price of one coin, locked until expires_at."""
    wallet_address: Union[str, None]
    """The address to pay to. It belongs to this top-up only."""
    payment_uri: Union[str, None]
    """The payment for wallets: BIP 21, EIP-681 or monero:."""
    received_crypto: str
    """The received amount, in the coin, as a decimal string."""
    confirmations: int
    """The fewest of a payment that waits."""
    confirmations_required: int
    """A payment with so many is in the balance."""
    tx_ids: List[str]
    """The transactions of its first hundred payments."""
    payment_exception: Union[Union[Literal["underpaid", "overpaid", "late"], str], None]
    """Null: the payment came in time, and in full."""
    credited_usd: float
    """The credited amount, including the bonus, less removed payments."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    expires_at: Union[str, None]
    """The end of the quoted rate."""
    confirmed_at: Union[str, None]
    """When the money came to the balance."""


class ListTopupsArguments(TypedDict):
    """The arguments of ListTopups."""

    limit: NotRequired[int]
    """Entries of a page."""
    cursor: NotRequired[str]
    """The previous next_cursor."""
    status: NotRequired[List[Literal["pending", "confirming", "confirmed", "expired", "cancelled"]]]
    """Only top-ups in these states."""
    created_since: NotRequired[str]
    """Only those of this day or time, or later."""
    created_until: NotRequired[str]
    """Only those before this time, or to this day."""
    sort: NotRequired[Literal["-created_at", "created_at"]]
    """Default: the newest first."""


class GetTopupArguments(TypedDict):
    """The arguments of GetTopup."""

    order_number: str
    """The order number of the top-up."""


class CancelTopupArguments(TypedDict):
    """The arguments of CancelTopup."""

    order_number: str
    """The order number of the top-up."""


class GetReceiptArguments(TypedDict):
    """The arguments of GetReceipt."""

    order_number: str
    """The order number of the top-up."""


class ReceiptLines(TypedDict):
    at: str
    """The time of the change."""
    description: str
    """The change, in words."""
    order_number: Union[str, None]
    """The server or the top-up of the change."""
    amount_usd: float
    """The amount; negative if it left the balance."""
    coin: Union[str, None]
    """The coin of a payment."""
    amount_crypto: Union[str, None]
    """The payment, in its coin. Negative if its chain removed it."""
    network: Union[str, None]
    """The network of a payment."""
    tx_id: Union[str, None]
    """The transaction of a payment."""


Receipt = TypedDict(
    "Receipt",
    {
        "number": 'str',
        "account_id": 'str',
        "from": 'str',
        "to": 'str',
        "issued_at": 'str',
        "total_usd": 'float',
        "lines": 'List[ReceiptLines]',
    },
)


class GetMonthlyReceiptArguments(TypedDict):
    """The arguments of GetMonthlyReceipt."""

    month: str
    """The month, in UTC."""


class GetCatalogArguments(TypedDict):
    """The arguments of GetCatalog."""


class RegionStock(TypedDict):
    """The stock of a tier at a bastion."""

    code: str
    """The code of the bastion."""
    stock: Union[Literal["available", "low", "none"], str]
    """Whether orders find room now."""


class VpsTier(TypedDict):
    """A tier of virtual servers."""

    code: str
    """The code for orders."""
    kind: str
    """vps, dedicated, bastion or image."""
    name: str
    """A name for humans."""
    vcpus: int
    """The virtual processors."""
    memory_mb: int
    """The memory, in MB."""
    disk_gb: int
    """The disk, in GB."""
    disk_type: str
    """The kind of the disk, such as NVMe."""
    traffic_tb: float
    """The outgoing traffic of a month."""
    extra_traffic_tb_usd: Union[float, None]
    """The price of each begun TB above that; null: the machine gets slow until the next month."""
    port_mbps: int
    """The speed of the network port, in Mbit/s."""
    virtualization: str
    """container (shares the kernel) or kvm (a virtual machine)."""
    price_month_usd: float
    """The price of a month, paid in advance."""
    price_hour_usd: float
    """The month / 730: the refund of an unused hour."""
    setup_fee_usd: float
    """Paid once, and not refunded."""
    regions: List[RegionStock]
    """The bastions that offer it."""


class DedicatedTierDisks(TypedDict):
    count: int
    """The number of these disks."""
    size_gb: int
    """The size of each disk, in GB."""
    type: str
    """The kind of the disks, such as NVMe."""


class DedicatedTier(TypedDict):
    """A tier of dedicated servers."""

    code: str
    """The code for orders."""
    kind: str
    """vps, dedicated, bastion or image."""
    name: str
    """A name for humans."""
    cpu_model: str
    """The model of the processor."""
    cores: int
    """The cores of the processor."""
    threads: int
    """The threads of the processor."""
    memory_mb: int
    """The memory, in MB."""
    disks: List[DedicatedTierDisks]
    """The disks, by kind."""
    traffic_tb: Union[float, None]
    """The outgoing traffic of a month; null: unmetered."""
    port_mbps: int
    """The speed of the network port, in Mbit/s."""
    delivery_hours: int
    """The usual time of delivery, in hours."""
    price_month_usd: float
    """The price of a month, paid in advance."""
    price_hour_usd: float
    """The month / 730: the refund of an unused hour."""
    setup_fee_usd: float
    """Paid once, and not refunded."""
    regions: List[RegionStock]
    """The bastions that offer it."""


class Bastion(TypedDict):
    """A data-centre location. Its code is the region of an order."""

    code: str
    """The code for orders."""
    kind: str
    """vps, dedicated, bastion or image."""
    name: str
    """A name for humans."""
    city: str
    """The city."""
    country: str
    """ISO 3166-1 alpha-2."""
    latitude: Union[float, None]
    """Degrees north."""
    longitude: Union[float, None]
    """Degrees east."""
    test_ipv4: Union[str, None]
    """An address for measurements."""
    test_ipv6: Union[str, None]
    """An address for measurements."""
    looking_glass_url: Union[str, None]
    """A page that measures routes from here."""
    status: str
    """As in /v1/transparency/status."""


class OsImage(TypedDict):
    """An image of an operating system."""

    code: str
    """The code for orders."""
    kind: str
    """vps, dedicated, bastion or image."""
    name: str
    """A name for humans."""
    family: str
    """The distribution, such as debian."""
    version: str
    """The version of the distribution."""
    architecture: str
    """The architecture of the processor, such as x86_64."""
    min_disk_gb: int
    """The smallest disk that it fits on, in GB."""
    min_memory_mb: int
    """The least memory that it runs with, in MB."""
    cloud_init: bool
    """Whether it reads user_data."""
    default_user: str
    """The user for the first login."""
    deprecated_at: Union[str, None]
    """When orders of the image end; null: not planned."""


class GetCatalogAnswer(TypedDict):
    vps: List[VpsTier]
    """The tiers of virtual servers."""
    dedicated: List[DedicatedTier]
    """The tiers of dedicated servers."""
    bastions: List[Bastion]
    """The data-centre locations."""
    images: List[OsImage]
    """The images of operating systems."""


class ListVpsTiersArguments(TypedDict):
    """The arguments of ListVpsTiers."""


class ListDedicatedTiersArguments(TypedDict):
    """The arguments of ListDedicatedTiers."""


class ListBastionsArguments(TypedDict):
    """The arguments of ListBastions."""


class ListOsImagesArguments(TypedDict):
    """The arguments of ListOsImages."""


class GetCatalogItemArguments(TypedDict):
    """The arguments of GetCatalogItem."""

    code: str
    """A code of the catalog."""


class ListMessagesArguments(TypedDict):
    """The arguments of ListMessages."""

    limit: NotRequired[int]
    """Entries of a page."""
    cursor: NotRequired[str]
    """The previous next_cursor."""
    unread: NotRequired[bool]
    """Only messages that the caller should still read."""


class MessageRelated(TypedDict):
    type: Union[Literal["server", "topup", "message", "incident", "case"], str]
    """The kind of the thing."""
    id: str
    """Its id or order number."""


Message = TypedDict(
    "Message",
    {
        "id": 'str',
        "from": 'Union[Literal["operator", "customer"], str]',
        "subject": 'str',
        "body": 'str',
        "created_at": 'str',
        "read_at": 'Union[str, None]',
        "related": 'Union[MessageRelated, None]',
    },
)


class RelatedInput(TypedDict):
    type: Literal["server", "topup", "message", "incident", "case"]
    """The kind of the thing."""
    id: str
    """Its id or order number."""


class WriteMessageArguments(TypedDict):
    """The arguments of WriteMessage."""

    subject: str
    """One line of up to 120 characters."""
    body: str
    """Up to 4,000 characters."""
    related: NotRequired[RelatedInput]
    """The thing that the message is about."""


class MarkMessageReadArguments(TypedDict):
    """The arguments of MarkMessageRead."""

    id: str
    """The message."""


class RegisterOauthClientArguments(TypedDict):
    """The arguments of RegisterOauthClient."""

    scope: NotRequired[str]
    """The widest scope of its tokens: read (default), servers, billing, full, separated by spaces."""
    grant_types: NotRequired[List[str]]
    """client_credentials (default), and refresh_token."""
    response_types: NotRequired[List[str]]
    """Must be empty: there is no authorization in a browser."""
    token_endpoint_auth_method: NotRequired[str]
    """client_secret_basic (default) or client_secret_post."""
    redirect_uris: NotRequired[List[str]]
    """Stored, but not used."""
    client_name: NotRequired[str]
    """A name to recognise the client by."""
    client_uri: NotRequired[str]
    """The client's site."""
    logo_uri: NotRequired[str]
    """The client's picture."""
    contacts: NotRequired[List[str]]
    """The people behind the client."""
    software_id: NotRequired[str]
    """The id of the software."""
    software_version: NotRequired[str]
    """The version of the software."""
    proof_of_work: NotRequired[str]
    """After proof_of_work_required, and always to an onion service: the challenge, a colon, and a number. The SHA-256 of this text begins with as many zero bits as the second part of the challenge says."""
    expires_at: NotRequired[str]
    """When the client and all its tokens stop. Default: never."""
    spend_limit_usd: NotRequired[float]
    """The most that all its tokens together may spend in a calendar month (UTC). Default: the whole balance."""
    ip_allowlist: NotRequired[Union[List[str], str]]
    """Up to 20 networks (CIDR) that may use its tokens, as a list or with commas. Default: all networks."""
    totp_code: NotRequired[str]
    """The code for step_up_required."""


class OauthClient(TypedDict):
    """A registered OAuth client, with its secret."""

    client_id: str
    """Identifies the client."""
    client_secret: str
    """The secret that authenticates the client. Keep it."""
    client_id_issued_at: int
    """When the client registered."""
    client_secret_expires_at: int
    """When the secret and all tokens expire, in seconds since the epoch; 0: never."""
    scope: str
    """The widest scope of its tokens."""
    grant_types: List[str]
    """The grants that the client may use."""
    response_types: List[str]
    """Always empty."""
    token_endpoint_auth_method: str
    """The registered method; client_secret_basic and client_secret_post both work."""
    redirect_uris: List[str]
    """Stored, but not used."""
    client_name: NotRequired[str]
    """The name that the client gave."""
    client_uri: NotRequired[str]
    """The client's site, as it gave it."""
    logo_uri: NotRequired[str]
    """The client's picture, as it gave it."""
    contacts: NotRequired[List[str]]
    """The people behind the client, as it named them."""
    software_id: NotRequired[str]
    """The id of the software, as the client gave it."""
    software_version: NotRequired[str]
    """The version of the software, as the client gave it."""
    expires_at: NotRequired[str]
    """When the client and all its tokens stop; null: never."""
    spend_limit_usd: NotRequired[float]
    """The most that all its tokens together may spend in a calendar month (UTC)."""
    ip_allowlist: NotRequired[List[str]]
    """Networks (CIDR) that may use its tokens; none: all networks."""


class IntrospectOauthTokenArguments(TypedDict):
    """The arguments of IntrospectOauthToken."""

    token: NotRequired[str]
    """The token, unless the Authorization header has it."""


class TokenIntrospection(TypedDict):
    """The use of a token. For an invalid token, the answer has `active` only."""

    active: bool
    """Whether the token is valid now."""
    scope: NotRequired[str]
    """The scope of the token."""
    client_id: NotRequired[str]
    """The OAuth client of the token."""
    token_type: NotRequired[str]
    """Bearer; refresh tokens have none."""
    exp: NotRequired[int]
    """When the token expires."""
    iat: NotRequired[int]
    """When the service issued the token."""
    sub: NotRequired[str]
    """The account."""
    aud: NotRequired[List[str]]
    """The resources that accept the token."""
    iss: NotRequired[str]
    """The issuer of the token."""
    jti: NotRequired[str]
    """The id of the token. It is not secret."""


class ListOauthClientsArguments(TypedDict):
    """The arguments of ListOauthClients."""

    limit: NotRequired[int]
    """Entries of a page."""
    cursor: NotRequired[str]
    """The previous next_cursor."""


class OauthClientEntry(TypedDict):
    """An OAuth client, without its secret."""

    client_id: str
    """Identifies the client."""
    client_name: Union[str, None]
    """The name that the client gave."""
    scope: str
    """The widest scope of its tokens."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    last_used_at: Union[str, None]
    """When the client last got a token, with the precision of a minute."""
    expires_at: Union[str, None]
    """When the client and all its tokens stop."""
    spend_limit_usd: Union[float, None]
    """The most that all its tokens together may spend in a calendar month (UTC)."""
    ip_allowlist: List[str]
    """Networks (CIDR) that may use its tokens; none: all networks."""


class RotateOauthClientSecretArguments(TypedDict):
    """The arguments of RotateOauthClientSecret."""

    client_id: str
    """The client."""
    client_secret: str
    """The present secret of the client."""


class RotateOauthClientSecretAnswer(TypedDict):
    client_id: str
    """The client."""
    client_secret: str
    """The new secret. Keep it."""
    tokens_revoked: int
    """The number of its sessions that ended."""


class DeleteOauthClientArguments(TypedDict):
    """The arguments of DeleteOauthClient."""

    client_id: str
    """The client."""


class DeleteOauthClientAnswer(TypedDict):
    client_id: str
    """The deleted client."""
    tokens_revoked: int
    """The number of its sessions that ended."""


class OrderServerArguments(TypedDict):
    """The arguments of OrderServer."""

    service_code: str
    """The code of a VPS or dedicated tier."""
    region: NotRequired[str]
    """The code of a bastion. Default: the first with stock."""
    os: NotRequired[str]
    """The code of an image."""
    hostname: NotRequired[str]
    """Default: a random name."""
    ssh_key_ids: NotRequired[List[str]]
    """Keys of the account. Default: all of them."""
    root_password: NotRequired[str]
    """12 to 72 characters. Default: a random one if there is no SSH key."""
    user_data: NotRequired[str]
    """cloud-init user data."""
    labels: NotRequired[Dict[str, str]]
    """Up to 20 labels of your own. Keys are lower-case."""
    auto_renew: NotRequired[bool]
    """Renews itself. Default: true, or false with a spending limit."""
    max_price_usd: NotRequired[float]
    """The highest total price to accept."""
    dry_run: NotRequired[bool]
    """Quotes the order, and orders nothing."""


class OrderedServerReverseDns(TypedDict):
    ip: str
    """An address of the server."""
    ptr: str
    """Its name."""


class OrderedServerFailure(TypedDict):
    code: str
    """Such as out_of_stock or provisioning_failed."""
    message: str
    """The reason in words."""


class OrderedServer(TypedDict):
    """A server after its order and payment."""

    order_number: str
    """The id of the server."""
    kind: Union[Literal["vps", "dedicated"], str]
    """A virtual server, or a whole machine."""
    status: Union[Literal["pending", "provisioning", "running", "starting", "stopping", "stopped", "rebooting", "rebuilding", "resizing", "suspended", "failed", "deleting", "deleted"], str]
    """Lasting: running, stopped, suspended (unpaid or by the operator), failed (refunded), deleted. Passing: pending (paid, not begun), provisioning, starting, stopping, rebooting, rebuilding, resizing, deleting."""
    hostname: str
    """The name that the machine got."""
    service_code: str
    """The code of its tier."""
    region: str
    """The code of its bastion."""
    os: str
    """The code of its image."""
    ipv4: Union[str, None]
    """Null until it has one."""
    ipv6: Union[str, None]
    """Null until it has one."""
    ipv6_prefix: Union[str, None]
    """The prefix that is routed to the server."""
    reverse_dns: List[OrderedServerReverseDns]
    """The names of its addresses."""
    ssh_key_ids: List[str]
    """The SSH keys that the machine got."""
    labels: Dict[str, str]
    """Up to 20 labels: lower-case keys of up to 63 characters, and values of up to 63."""
    auto_renew: bool
    """Whether the balance pays the next month."""
    delete_protection: bool
    """Whether the service refuses to delete it."""
    price_month_usd: float
    """An amount in US dollars."""
    next_price_month_usd: Union[float, None]
    """The announced price of later months. Null: none is announced."""
    next_price_from: Union[str, None]
    """The announced price counts for months that begin then or later."""
    paid_until: Union[str, None]
    """Null until the server has run."""
    failure: Union[OrderedServerFailure, None]
    """Why the order or the last operation failed."""
    traffic_used_gb: Union[float, None]
    """The sent GB of this calendar month (UTC); null if nothing counts them."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    updated_at: str
    """A time, RFC 3339 in UTC."""
    poll_after_seconds: Union[int, None]
    """When to read again; null if no operation runs."""
    charged_usd: float
    """The first month and the setup fee."""
    paid_by: str
    """balance or x402."""
    root_password: Union[str, None]
    """The given password, or a generated one if there is no SSH key. Only this answer shows it."""


class Quote(TypedDict):
    """The price of an order, without the order."""

    service_code: str
    """The code of the tier."""
    region: str
    """The bastion of the server."""
    total_usd: float
    """The first month and the setup fee."""
    setup_fee_usd: float
    """An amount in US dollars."""
    price_month_usd: float
    """An amount in US dollars."""
    balance_usd: float
    """The available balance."""
    sufficient: bool
    """Whether the balance covers the total."""
    stock: Union[Literal["available", "low", "none"], str]
    """The stock of the tier at that bastion."""


class ListServersArguments(TypedDict):
    """The arguments of ListServers."""

    limit: NotRequired[int]
    """Entries of a page."""
    cursor: NotRequired[str]
    """The previous next_cursor."""
    status: NotRequired[List[Literal["pending", "provisioning", "running", "starting", "stopping", "stopped", "rebooting", "rebuilding", "resizing", "suspended", "failed", "deleting", "deleted"]]]
    """Only servers with one of these statuses."""
    region: NotRequired[List[str]]
    """Only servers at these bastions."""
    hostname: NotRequired[str]
    """Only servers with this hostname."""
    label_selector: NotRequired[str]
    """Only servers with these labels: k=v,k2!=v."""
    created_since: NotRequired[str]
    """Only those of this day or time, or later."""
    created_until: NotRequired[str]
    """Only those before this time, or to this day."""
    sort: NotRequired[Literal["-created_at", "created_at"]]
    """Default: the newest first."""


class ServerReverseDns(TypedDict):
    ip: str
    """An address of the server."""
    ptr: str
    """Its name."""


class ServerFailure(TypedDict):
    code: str
    """Such as out_of_stock or provisioning_failed."""
    message: str
    """The reason in words."""


class Server(TypedDict):
    """A virtual or dedicated server."""

    order_number: str
    """The id of the server."""
    kind: Union[Literal["vps", "dedicated"], str]
    """A virtual server, or a whole machine."""
    status: Union[Literal["pending", "provisioning", "running", "starting", "stopping", "stopped", "rebooting", "rebuilding", "resizing", "suspended", "failed", "deleting", "deleted"], str]
    """Lasting: running, stopped, suspended (unpaid or by the operator), failed (refunded), deleted. Passing: pending (paid, not begun), provisioning, starting, stopping, rebooting, rebuilding, resizing, deleting."""
    hostname: str
    """The name that the machine got."""
    service_code: str
    """The code of its tier."""
    region: str
    """The code of its bastion."""
    os: str
    """The code of its image."""
    ipv4: Union[str, None]
    """Null until it has one."""
    ipv6: Union[str, None]
    """Null until it has one."""
    ipv6_prefix: Union[str, None]
    """The prefix that is routed to the server."""
    reverse_dns: List[ServerReverseDns]
    """The names of its addresses."""
    ssh_key_ids: List[str]
    """The SSH keys that the machine got."""
    labels: Dict[str, str]
    """Up to 20 labels: lower-case keys of up to 63 characters, and values of up to 63."""
    auto_renew: bool
    """Whether the balance pays the next month."""
    delete_protection: bool
    """Whether the service refuses to delete it."""
    price_month_usd: float
    """An amount in US dollars."""
    next_price_month_usd: Union[float, None]
    """The announced price of later months. Null: none is announced."""
    next_price_from: Union[str, None]
    """The announced price counts for months that begin then or later."""
    paid_until: Union[str, None]
    """Null until the server has run."""
    failure: Union[ServerFailure, None]
    """Why the order or the last operation failed."""
    traffic_used_gb: Union[float, None]
    """The sent GB of this calendar month (UTC); null if nothing counts them."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    updated_at: str
    """A time, RFC 3339 in UTC."""
    poll_after_seconds: Union[int, None]
    """When to read again; null if no operation runs."""


class GetServerArguments(TypedDict):
    """The arguments of GetServer."""

    order_number: str
    """The order number of the server."""
    wait_for: NotRequired[Literal["pending", "provisioning", "running", "starting", "stopping", "stopped", "rebooting", "rebuilding", "resizing", "suspended", "failed", "deleting", "deleted"]]
    """Answers when the server has this status, or another stable one."""
    timeout: NotRequired[int]
    """The longest wait, in seconds."""


class UpdateServerArgumentsReverseDns(TypedDict):
    ip: str
    """An address of the server."""
    ptr: str
    """The new name of the address."""


class UpdateServerArguments(TypedDict):
    """The arguments of UpdateServer."""

    order_number: str
    """The order number of the server."""
    hostname: NotRequired[str]
    """The machine takes the new name at its next rebuild."""
    labels: NotRequired[Dict[str, str]]
    """Replaces all labels. Keys are lower-case."""
    auto_renew: NotRequired[bool]
    """Whether the balance pays the next month."""
    delete_protection: NotRequired[bool]
    """Whether the service refuses to delete the server."""
    reverse_dns: NotRequired[List[UpdateServerArgumentsReverseDns]]
    """Replaces all names of the addresses of the server."""
    power_state: NotRequired[Literal["on", "off"]]
    """Starts or stops the server. No effect if it is so already."""
    action: NotRequired[Literal["reboot", "reset", "rebuild"]]
    """Reset cuts the power. Rebuild erases the disk, and installs an image."""
    service_code: NotRequired[str]
    """Resizes a stopped VPS to a larger tier. The difference for the rest of the month is charged."""
    os: NotRequired[str]
    """With a rebuild: the image. Default: the present one."""
    ssh_key_ids: NotRequired[List[str]]
    """With a rebuild: the keys. Default: the present ones."""
    user_data: NotRequired[str]
    """With a rebuild: cloud-init user data. Default: none."""
    root_password: NotRequired[str]
    """With a rebuild: 12 to 72 characters. Default: a random one if there is no SSH key."""


class UpdateServerAnswerReverseDns(TypedDict):
    ip: str
    """An address of the server."""
    ptr: str
    """Its name."""


class UpdateServerAnswerFailure(TypedDict):
    code: str
    """Such as out_of_stock or provisioning_failed."""
    message: str
    """The reason in words."""


class UpdateServerAnswer(TypedDict):
    order_number: str
    """The id of the server."""
    kind: Union[Literal["vps", "dedicated"], str]
    """A virtual server, or a whole machine."""
    status: Union[Literal["pending", "provisioning", "running", "starting", "stopping", "stopped", "rebooting", "rebuilding", "resizing", "suspended", "failed", "deleting", "deleted"], str]
    """Lasting: running, stopped, suspended (unpaid or by the operator), failed (refunded), deleted. Passing: pending (paid, not begun), provisioning, starting, stopping, rebooting, rebuilding, resizing, deleting."""
    hostname: str
    """The name that the machine got."""
    service_code: str
    """The code of its tier."""
    region: str
    """The code of its bastion."""
    os: str
    """The code of its image."""
    ipv4: Union[str, None]
    """Null until it has one."""
    ipv6: Union[str, None]
    """Null until it has one."""
    ipv6_prefix: Union[str, None]
    """The prefix that is routed to the server."""
    reverse_dns: List[UpdateServerAnswerReverseDns]
    """The names of its addresses."""
    ssh_key_ids: List[str]
    """The SSH keys that the machine got."""
    labels: Dict[str, str]
    """Up to 20 labels: lower-case keys of up to 63 characters, and values of up to 63."""
    auto_renew: bool
    """Whether the balance pays the next month."""
    delete_protection: bool
    """Whether the service refuses to delete it."""
    price_month_usd: float
    """An amount in US dollars."""
    next_price_month_usd: Union[float, None]
    """The announced price of later months. Null: none is announced."""
    next_price_from: Union[str, None]
    """The announced price counts for months that begin then or later."""
    paid_until: Union[str, None]
    """Null until the server has run."""
    failure: Union[UpdateServerAnswerFailure, None]
    """Why the order or the last operation failed."""
    traffic_used_gb: Union[float, None]
    """The sent GB of this calendar month (UTC); null if nothing counts them."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    updated_at: str
    """A time, RFC 3339 in UTC."""
    poll_after_seconds: Union[int, None]
    """When to read again; null if no operation runs."""
    charged_usd: float
    """The charge of a resize. A failed resize gives it back."""
    root_password: Union[str, None]
    """The given password of a rebuild, or a generated one if there is no SSH key. Only this answer shows it."""


class DeleteServerArguments(TypedDict):
    """The arguments of DeleteServer."""

    order_number: str
    """The order number of the server."""


class DeleteServerAnswerReverseDns(TypedDict):
    ip: str
    """An address of the server."""
    ptr: str
    """Its name."""


class DeleteServerAnswerFailure(TypedDict):
    code: str
    """Such as out_of_stock or provisioning_failed."""
    message: str
    """The reason in words."""


class DeleteServerAnswer(TypedDict):
    order_number: str
    """The id of the server."""
    kind: Union[Literal["vps", "dedicated"], str]
    """A virtual server, or a whole machine."""
    status: Union[Literal["pending", "provisioning", "running", "starting", "stopping", "stopped", "rebooting", "rebuilding", "resizing", "suspended", "failed", "deleting", "deleted"], str]
    """Lasting: running, stopped, suspended (unpaid or by the operator), failed (refunded), deleted. Passing: pending (paid, not begun), provisioning, starting, stopping, rebooting, rebuilding, resizing, deleting."""
    hostname: str
    """The name that the machine got."""
    service_code: str
    """The code of its tier."""
    region: str
    """The code of its bastion."""
    os: str
    """The code of its image."""
    ipv4: Union[str, None]
    """Null until it has one."""
    ipv6: Union[str, None]
    """Null until it has one."""
    ipv6_prefix: Union[str, None]
    """The prefix that is routed to the server."""
    reverse_dns: List[DeleteServerAnswerReverseDns]
    """The names of its addresses."""
    ssh_key_ids: List[str]
    """The SSH keys that the machine got."""
    labels: Dict[str, str]
    """Up to 20 labels: lower-case keys of up to 63 characters, and values of up to 63."""
    auto_renew: bool
    """Whether the balance pays the next month."""
    delete_protection: bool
    """Whether the service refuses to delete it."""
    price_month_usd: float
    """An amount in US dollars."""
    next_price_month_usd: Union[float, None]
    """The announced price of later months. Null: none is announced."""
    next_price_from: Union[str, None]
    """The announced price counts for months that begin then or later."""
    paid_until: Union[str, None]
    """Null until the server has run."""
    failure: Union[DeleteServerAnswerFailure, None]
    """Why the order or the last operation failed."""
    traffic_used_gb: Union[float, None]
    """The sent GB of this calendar month (UTC); null if nothing counts them."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    updated_at: str
    """A time, RFC 3339 in UTC."""
    poll_after_seconds: Union[int, None]
    """When to read again; null if no operation runs."""
    refunded_usd: float
    """The amount that goes back to the balance. A dedicated server gets it when its host is wiped. A dedicated order that is being made answers 0, and gets its price then."""


class GetServerMetricsArguments(TypedDict):
    """The arguments of GetServerMetrics."""

    order_number: str
    """The order number of the server."""
    from_: NotRequired[str]
    """The first time. Default: an hour before the last."""
    to: NotRequired[str]
    """The last time. Default: now."""
    step: NotRequired[Literal["minute", "hour"]]
    """Minutes are kept for a day, hours for 60 days. Default: minutes, if from is within a day."""


class MetricPoint(TypedDict):
    """The use of a machine since the point before."""

    at: str
    """The minute or the hour at which the interval ends."""
    sent_bytes: float
    """From the machine."""
    received_bytes: float
    """To the machine."""
    cpu_seconds: Union[float, None]
    """The time of all vCPUs together."""
    memory_bytes: Union[float, None]
    """The used memory at that time."""
    disk_bytes: Union[float, None]
    """The used disk at that time."""


GetServerMetricsAnswer = TypedDict(
    "GetServerMetricsAnswer",
    {
        "from": 'str',
        "to": 'str',
        "step": 'Union[Literal["minute", "hour"], str]',
        "slow": 'bool',
        "points": 'List[MetricPoint]',
    },
)


class AddSshKeyArguments(TypedDict):
    """The arguments of AddSshKey."""

    public_key: str
    """The content of the .pub file, never the private key."""
    name: NotRequired[str]
    """Default: the comment of the key."""
    totp_code: NotRequired[str]
    """The code for step_up_required."""


class SshKey(TypedDict):
    """An SSH public key."""

    id: str
    """The id of the key."""
    name: str
    """The name that its owner chose."""
    public_key: str
    """Type and base64, without the comment."""
    type: str
    """The type, such as ssh-ed25519."""
    bits: int
    """The size of the key, in bits."""
    fingerprint: str
    """The fingerprint that ssh-keygen -l prints."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    expires_at: NotRequired[str]
    """When it leaves the account, with the credential that added it."""


class ListSshKeysArguments(TypedDict):
    """The arguments of ListSshKeys."""

    limit: NotRequired[int]
    """Entries of a page."""
    cursor: NotRequired[str]
    """The previous next_cursor."""


class GetSshKeyArguments(TypedDict):
    """The arguments of GetSshKey."""

    id: str
    """The id of the key."""


class DeleteSshKeyArguments(TypedDict):
    """The arguments of DeleteSshKey."""

    id: str
    """The id of the key."""


class DeleteSshKeyAnswer(TypedDict):
    id: str
    """The id of the deleted thing."""
    deleted: bool
    """Always true."""


class GetCanaryArguments(TypedDict):
    """The arguments of GetCanary."""


class Canary(TypedDict):
    """The warrant canary."""

    version: str
    """A counter. 0 before the first canary."""
    status: Union[Literal["valid", "expired", "triggered"], str]
    """The state now."""
    issued_at: str
    """When the operator published it."""
    expires_at: str
    """Silence after this time is a warning."""
    codes: List[str]
    """CanaryTail codes of denied events. An event without its code has happened."""
    statement: str
    """The statement, in words."""
    signed_text: Union[str, None]
    """The operator signs it offline with PGP."""
    fingerprint: Union[str, None]
    """The fingerprint of the signing key."""
    public_key: Union[str, None]
    """The signing key."""
    freshness: Union[str, None]
    """A proof of the date, such as a block hash."""
    sha256: str
    """Digest of the signed text, or of the statement."""
    previous_sha256: Union[str, None]
    """Digest of the previous canary."""


class GetAuditDigestArguments(TypedDict):
    """The arguments of GetAuditDigest."""

    number: NotRequired[int]
    """Default: the latest."""


class GetAuditDigestAnswer(TypedDict):
    number: int
    """A counter from 1 on."""
    signed_at: str
    """A time, RFC 3339 in UTC."""
    signed_text: str
    """It names the digest before it. A second digest covers the last link of the ledger and of each grown log."""
    sha256: str
    """Digest of the signed text."""
    previous_sha256: Union[str, None]
    """The digest before it."""
    public_key: str
    """Ed25519, 32 bytes in hexadecimal."""
    signature: str
    """Ed25519 over the signed text, in hexadecimal."""


class GetPeeringArguments(TypedDict):
    """The arguments of GetPeering."""


class GetPeeringAnswerExchanges(TypedDict):
    name: str
    """The name of the exchange."""
    city: str
    """The city of the exchange."""
    country: str
    """ISO 3166-1 alpha-2."""
    speed_mbps: int
    """The speed of the port, in Mbit/s."""
    ipv4: Union[str, None]
    """The IPv4 address of the port."""
    ipv6: Union[str, None]
    """The IPv6 address of the port."""
    is_rs_peer: bool
    """Whether it peers with the route servers."""
    operational: bool
    """Whether the port is up."""


class GetPeeringAnswerFacilities(TypedDict):
    name: str
    """The name of the data centre."""
    city: str
    """The city of the data centre."""
    country: str
    """ISO 3166-1 alpha-2."""


class GetPeeringAnswer(TypedDict):
    asn: Union[int, None]
    """The number of the autonomous system; null: the network has none."""
    name: str
    """The name of the network."""
    irr_as_set: Union[str, None]
    """The set of its routes in the routing registries."""
    policy: str
    """Open, Selective, Restrictive or No."""
    policy_url: Union[str, None]
    """The page of the policy."""
    noc_email: Union[str, None]
    """The address of the network operations centre."""
    peeringdb_url: Union[str, None]
    """The entry at PeeringDB."""
    info_prefixes4: Union[int, None]
    """The IPv4 prefixes that a peer should accept."""
    info_prefixes6: Union[int, None]
    """The IPv6 prefixes that a peer should accept."""
    exchanges: List[GetPeeringAnswerExchanges]
    """The ports at internet exchanges."""
    facilities: List[GetPeeringAnswerFacilities]
    """The data centres where the network can be reached."""
    updated_at: str
    """A time, RFC 3339 in UTC."""


class GetStatusArguments(TypedDict):
    """The arguments of GetStatus."""


class GetStatusAnswerComponents(TypedDict):
    id: str
    """The id of the part, which incidents name."""
    name: str
    """The name of the part."""
    region: Union[str, None]
    """The code of a bastion."""
    status: str
    """operational, degraded_performance, partial_outage, major_outage or under_maintenance."""


class IncidentUpdates(TypedDict):
    status: Union[Literal["investigating", "identified", "monitoring", "resolved", "scheduled", "in_progress", "completed"], str]
    """The state of the incident after this report."""
    body: str
    """The report, in words."""
    created_at: str
    """A time, RFC 3339 in UTC."""


class Incident(TypedDict):
    """An incident or a maintenance."""

    id: str
    """The id of the incident."""
    name: str
    """The incident in a few words."""
    status: Union[Literal["investigating", "identified", "monitoring", "resolved", "scheduled", "in_progress", "completed"], str]
    """The state after the latest report."""
    impact: Union[Literal["none", "minor", "major", "critical", "maintenance"], str]
    """How much customers notice."""
    components: List[str]
    """The ids of components."""
    started_at: str
    """When the incident began or the maintenance begins."""
    resolved_at: Union[str, None]
    """When it ended; null: it is open."""
    updates: List[IncidentUpdates]
    """The reports, oldest first."""


class GetStatusAnswer(TypedDict):
    indicator: str
    """none, minor, major or critical."""
    description: str
    """The indicator in words."""
    components: List[GetStatusAnswerComponents]
    """The parts of the service."""
    incidents: List[Incident]
    """Open incidents."""
    scheduled_maintenances: List[Incident]
    """Maintenances that are planned or in progress."""
    updated_at: str
    """A time, RFC 3339 in UTC."""


class CreateWebhookArguments(TypedDict):
    """The arguments of CreateWebhook."""

    url: str
    """An https URL at a public address."""
    event_filter: NotRequired[Union[str, List[str]]]
    """*, groups such as server.*, or names such as topup.confirmed."""
    description: NotRequired[str]
    """A note for people."""
    totp_code: NotRequired[str]
    """The code for step_up_required."""


class WebhookDelivery(TypedDict):
    """One event on its way to one webhook."""

    id: str
    """The id of the delivery."""
    event_id: str
    """The webhook-id of the message, the same at every attempt."""
    event_type: str
    """Such as server.running."""
    status: Union[Literal["pending", "delivering", "retrying", "succeeded", "failed"], str]
    """retrying: the receiver refused it, or was away."""
    attempts: int
    """Attempts that have ended."""
    response_status: Union[int, None]
    """The HTTP status of the last answer."""
    duration_ms: Union[int, None]
    """The duration of the last attempt, rounded up."""
    error: Union[str, None]
    """refused_address, dns, tls, unreachable, http_status, disabled or too_many_waiting."""
    next_attempt_at: Union[str, None]
    """Null at the end."""
    created_at: str
    """A time, RFC 3339 in UTC."""


class CreateWebhookAnswer(TypedDict):
    id: str
    """The id of the webhook."""
    url: str
    """The receiver."""
    event_filter: str
    """The events that it receives: *, groups such as server.*, or names, with commas."""
    description: Union[str, None]
    """The note that its owner gave it."""
    status: Union[Literal["enabled", "disabled"], str]
    """The service disables it after ten failed deliveries in a row."""
    disabled_reason: Union[str, None]
    """endpoint_gone, retries_exhausted, expired, creator_revoked or secret_revoked; null while it is enabled."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    expires_at: NotRequired[str]
    """When it stops: the expiry of the credential that created it."""
    last_delivery: Union[WebhookDelivery, None]
    """The delivery of the latest event."""
    secret: str
    """The secret for Standard Webhooks. The service shows it only here."""


class ListWebhooksArguments(TypedDict):
    """The arguments of ListWebhooks."""

    limit: NotRequired[int]
    """Entries of a page."""
    cursor: NotRequired[str]
    """The previous next_cursor."""


class Webhook(TypedDict):
    """A URL that receives events."""

    id: str
    """The id of the webhook."""
    url: str
    """The receiver."""
    event_filter: str
    """The events that it receives: *, groups such as server.*, or names, with commas."""
    description: Union[str, None]
    """The note that its owner gave it."""
    status: Union[Literal["enabled", "disabled"], str]
    """The service disables it after ten failed deliveries in a row."""
    disabled_reason: Union[str, None]
    """endpoint_gone, retries_exhausted, expired, creator_revoked or secret_revoked; null while it is enabled."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    expires_at: NotRequired[str]
    """When it stops: the expiry of the credential that created it."""
    last_delivery: Union[WebhookDelivery, None]
    """The delivery of the latest event."""


class DeleteWebhookArguments(TypedDict):
    """The arguments of DeleteWebhook."""

    id: str
    """The id of the webhook."""


class DeleteWebhookAnswer(TypedDict):
    id: str
    """The id of the deleted thing."""
    deleted: bool
    """Always true."""


class TestWebhookArguments(TypedDict):
    """The arguments of TestWebhook."""

    id: str
    """The id of the webhook."""


class TestWebhookAnswer(TypedDict):
    delivered: bool
    """Whether the receiver answered with 2xx."""
    event_id: str
    """The webhook-id of the test message."""
    response_status: Union[int, None]
    """The HTTP status of the answer; null: there was none."""
    duration_ms: int
    """Rounded up to a step from 100 to 10,000."""
    error: Union[str, None]
    """refused_address, dns, tls, unreachable or http_status."""


class RotateWebhookSecretArguments(TypedDict):
    """The arguments of RotateWebhookSecret."""

    id: str
    """The id of the webhook."""
    totp_code: NotRequired[str]
    """The code for step_up_required."""


class RotateWebhookSecretAnswer(TypedDict):
    id: str
    """The id of the webhook."""
    url: str
    """The receiver."""
    event_filter: str
    """The events that it receives: *, groups such as server.*, or names, with commas."""
    description: Union[str, None]
    """The note that its owner gave it."""
    status: Union[Literal["enabled", "disabled"], str]
    """The service disables it after ten failed deliveries in a row."""
    disabled_reason: Union[str, None]
    """endpoint_gone, retries_exhausted, expired, creator_revoked or secret_revoked; null while it is enabled."""
    created_at: str
    """A time, RFC 3339 in UTC."""
    expires_at: NotRequired[str]
    """When it stops: the expiry of the credential that created it."""
    last_delivery: Union[WebhookDelivery, None]
    """The delivery of the latest event."""
    secret: str
    """The new secret. The service shows it only here."""
    previous_secret_until: Union[str, None]
    """When the secret before it stops signing. Null: it was revoked."""


class ListWebhookEventsArguments(TypedDict):
    """The arguments of ListWebhookEvents."""


class ListWebhookEventsEntry(TypedDict):
    type: str
    """Its name for event_filter, such as server.running."""
    description: str
    """The change, as a sentence."""
    example: Any
    """The body of a message, with example values."""


class ListWebhookDeliveriesArguments(TypedDict):
    """The arguments of ListWebhookDeliveries."""

    id: str
    """Only deliveries to this webhook."""
    limit: NotRequired[int]
    """Entries of a page."""
    cursor: NotRequired[str]
    """The previous next_cursor."""
    status: NotRequired[List[Literal["pending", "delivering", "retrying", "succeeded", "failed"]]]
    """Only deliveries in these states."""


class RedeliverWebhookArguments(TypedDict):
    """The arguments of RedeliverWebhook."""

    id: str
    """The id of its webhook."""
    delivery_id: str
    """The id of the delivery."""


ENDPOINTS: Dict[str, Endpoint] = {
    "GetAccount": Endpoint("GET", "/v1/account", (), False, False),
    "GetBalance": Endpoint("GET", "/v1/account/balance", (), False, False),
    "GetUsage": Endpoint("GET", "/v1/account/usage", ("from", "to", "limit", "cursor",), False, False),
    "GetAuditLog": Endpoint("GET", "/v1/account/audit-log", ("limit", "cursor", "action", "since", "until",), False, False),
    "SearchAgents": Endpoint("GET", "/v1/agents/directory", ("limit", "cursor", "q", "skill", "protocol", "verified",), False, False),
    "PublishAgent": Endpoint("POST", "/v1/agents/directory", (), True, True),
    "Register": Endpoint("POST", "/v1/auth/register", (), True, True),
    "Login": Endpoint("POST", "/v1/auth/login", (), True, False),
    "LoginTotp": Endpoint("POST", "/v1/auth/login/totp", (), True, False),
    "RefreshTokens": Endpoint("POST", "/v1/auth/token/refresh", (), True, True),
    "ListSessions": Endpoint("GET", "/v1/auth/sessions", ("limit", "cursor",), False, False),
    "RevokeSession": Endpoint("DELETE", "/v1/auth/sessions/{token_id}", (), False, True),
    "SetupTotp": Endpoint("POST", "/v1/auth/totp/setup", (), True, False),
    "EnableTotp": Endpoint("POST", "/v1/auth/totp/enable", (), True, False),
    "NewRecoveryCodes": Endpoint("POST", "/v1/auth/totp/recovery-codes", (), True, False),
    "DisableTotp": Endpoint("POST", "/v1/auth/totp/disable", (), True, True),
    "ChangePassword": Endpoint("POST", "/v1/auth/password", (), True, True),
    "CreateApiKey": Endpoint("POST", "/v1/auth/api-keys", (), True, True),
    "ListApiKeys": Endpoint("GET", "/v1/auth/api-keys", ("limit", "cursor", "status",), False, False),
    "RevokeApiKey": Endpoint("DELETE", "/v1/auth/api-keys/{key_id}", (), False, True),
    "ListCoins": Endpoint("GET", "/v1/billing/coins", (), False, False),
    "ListBonusTiers": Endpoint("GET", "/v1/billing/bonus-tiers", (), False, False),
    "CreateTopup": Endpoint("POST", "/v1/billing/topups", (), True, True),
    "ListTopups": Endpoint("GET", "/v1/billing/topups", ("limit", "cursor", "status", "created_since", "created_until", "sort",), False, False),
    "GetTopup": Endpoint("GET", "/v1/billing/topups/{order_number}", (), False, False),
    "CancelTopup": Endpoint("POST", "/v1/billing/topups/{order_number}/cancel", (), False, True),
    "GetReceipt": Endpoint("GET", "/v1/billing/topups/{order_number}/receipt", (), False, False),
    "GetMonthlyReceipt": Endpoint("GET", "/v1/billing/receipts/{month}", (), False, False),
    "GetCatalog": Endpoint("GET", "/v1/catalog", (), False, False),
    "ListVpsTiers": Endpoint("GET", "/v1/catalog/vps", (), False, False),
    "ListDedicatedTiers": Endpoint("GET", "/v1/catalog/dedicated", (), False, False),
    "ListBastions": Endpoint("GET", "/v1/catalog/bastions", (), False, False),
    "ListOsImages": Endpoint("GET", "/v1/catalog/images", (), False, False),
    "GetCatalogItem": Endpoint("GET", "/v1/catalog/{code}", (), False, False),
    "ListMessages": Endpoint("GET", "/v1/account/messages", ("limit", "cursor", "unread",), False, False),
    "WriteMessage": Endpoint("POST", "/v1/account/messages", (), True, True),
    "MarkMessageRead": Endpoint("POST", "/v1/account/messages/{id}/read", (), False, True),
    "RegisterOauthClient": Endpoint("POST", "/v1/oauth/register", (), True, True),
    "IntrospectOauthToken": Endpoint("GET", "/v1/oauth/introspect", ("token",), False, False),
    "ListOauthClients": Endpoint("GET", "/v1/oauth/clients", ("limit", "cursor",), False, False),
    "RotateOauthClientSecret": Endpoint("POST", "/v1/oauth/clients/{client_id}/rotate-secret", (), True, True),
    "DeleteOauthClient": Endpoint("DELETE", "/v1/oauth/clients/{client_id}", (), False, True),
    "OrderServer": Endpoint("POST", "/v1/servers", (), True, True),
    "ListServers": Endpoint("GET", "/v1/servers", ("limit", "cursor", "status", "region", "hostname", "label_selector", "created_since", "created_until", "sort",), False, False),
    "GetServer": Endpoint("GET", "/v1/servers/{order_number}", ("wait_for", "timeout",), False, False),
    "UpdateServer": Endpoint("PATCH", "/v1/servers/{order_number}", (), True, True),
    "DeleteServer": Endpoint("DELETE", "/v1/servers/{order_number}", (), False, True),
    "GetServerMetrics": Endpoint("GET", "/v1/servers/{order_number}/metrics", ("from", "to", "step",), False, False),
    "AddSshKey": Endpoint("POST", "/v1/ssh-keys", (), True, True),
    "ListSshKeys": Endpoint("GET", "/v1/ssh-keys", ("limit", "cursor",), False, False),
    "GetSshKey": Endpoint("GET", "/v1/ssh-keys/{id}", (), False, False),
    "DeleteSshKey": Endpoint("DELETE", "/v1/ssh-keys/{id}", (), False, True),
    "GetCanary": Endpoint("GET", "/v1/transparency/canary", (), False, False),
    "GetAuditDigest": Endpoint("GET", "/v1/transparency/audit-digest", ("number",), False, False),
    "GetPeering": Endpoint("GET", "/v1/transparency/peering", (), False, False),
    "GetStatus": Endpoint("GET", "/v1/transparency/status", (), False, False),
    "CreateWebhook": Endpoint("POST", "/v1/webhooks", (), True, True),
    "ListWebhooks": Endpoint("GET", "/v1/webhooks", ("limit", "cursor",), False, False),
    "DeleteWebhook": Endpoint("DELETE", "/v1/webhooks/{id}", (), False, True),
    "TestWebhook": Endpoint("POST", "/v1/webhooks/{id}/test", (), False, True),
    "RotateWebhookSecret": Endpoint("POST", "/v1/webhooks/{id}/rotate-secret", (), True, True),
    "ListWebhookEvents": Endpoint("GET", "/v1/webhooks/events", (), False, False),
    "ListWebhookDeliveries": Endpoint("GET", "/v1/webhooks/{id}/deliveries", ("limit", "cursor", "status",), False, False),
    "RedeliverWebhook": Endpoint("POST", "/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver", (), False, True),
}
