/** The types and endpoints of the API. Made by facades/client/typescript.ts from the OpenAPI document. */

/** A part of a list. `next_cursor` continues it. */
export interface Page<T> {
  data: T[];
  next_cursor: string | null;
  has_more: boolean;
}

/** An account. It has an email at most, and no name. */
export type Account = {
  /** The id of the account. */
  id: string;
  /** agent: it came by an OAuth registration alone. */
  kind: 'person' | 'agent' | (string & {});
  /** Null for agents. */
  email: string | null;
  /** Whether logins need a second factor. */
  totp_enabled: boolean;
  /** The key that recovers the account. */
  pgp_fingerprint: string | null;
  /** The service sends balance.low when the balance covers fewer days of renewals. */
  low_balance_alert_days: number;
  /** The most that the account may have of each thing. */
  limits: {
    /** Active API keys. */
    api_keys: number;
    /** Servers. */
    servers: number;
    /** SSH keys. */
    ssh_keys: number;
    /** Webhooks. */
    webhooks: number;
    /** Entries in the directory of agents. */
    agent_entries: number;
    /** Top-ups that wait for a payment. */
    pending_topups: number;
    /** Sessions, at least 1. */
    sessions: number;
    /** OAuth clients. */
    oauth_clients: number;
  };
  /** A time, RFC 3339 in UTC. */
  created_at: string;
};

export type AddSshKeyInput = {
  /** The content of the .pub file, never the private key. */
  public_key: string;
  /** Default: the comment of the key. */
  name?: string;
  /** The code for step_up_required. */
  totp_code?: string;
};

/** An entry of the directory of agents. */
export type Agent = {
  /** The id of the entry. */
  id: string;
  /** The name of the entry in its URL. */
  slug: string;
  /** The name of the agent. */
  name: string;
  /** The work that the agent does. */
  description: string;
  /** The URL of the agent. */
  url: string;
  /** Whether the search finds the entry. */
  status: 'listed' | 'unlisted' | 'hidden' | (string & {});
  /** The agent's own version; null: not stated. */
  version: string | null;
  /** The maker of the agent. */
  provider_name: string | null;
  /** The site of the maker. */
  provider_url: string | null;
  /** The documentation of the agent. */
  documentation_url: string | null;
  /** A picture of the agent. */
  icon_url: string | null;
  /** The addresses of the agent, one to ten. */
  endpoints: Array<{
    /** The protocol that the endpoint speaks. */
    protocol: 'mcp' | 'a2a' | 'http' | 'graphql' | (string & {});
    /** The https URL of the endpoint. */
    url: string;
    /** The version of the protocol; null: not stated. */
    protocol_version: string | null;
  }>;
  /** The skills of the agent, up to 20. */
  skills: Array<{
    /** The id of the skill within the entry. */
    id: string;
    /** The name of the skill. */
    name: string;
    /** The work that the skill does. */
    description: string;
    /** Words by which a search finds the skill. */
    tags: Array<string>;
  }>;
  /** Ed25519, base64. */
  public_key: string | null;
  /** RFC 7638. */
  public_key_thumbprint: string | null;
  /** Whether the agent's own card names this key. The card is at url + /.well-known/agent-card.json. It holds the key as publicKey (JWK or base64), in jwks.keys, or as jwk or kid of a signature. A worker checks it after each change of the entry, and each day. It does not prove the name, the description or the endpoints. Any account can publish the URL and the key of another agent. */
  verified: boolean;
  /** Whether the agent takes x402 payments. */
  x402: boolean;
  /** A time, RFC 3339 in UTC. */
  created_at: string;
  /** A time, RFC 3339 in UTC. */
  updated_at: string;
};

export type AgentEndpointInput = {
  /** Its protocol. */
  protocol: 'mcp' | 'a2a' | 'http' | 'graphql';
  /** Its https URL. */
  url: string;
  /** Its version. */
  protocol_version?: string;
};

/** The body of a message to a webhook. */
export type AgentEvent = {
  /** The id of the event. */
  id: string;
  /** The type of the event. */
  type: string;
  /** The time of the change. */
  timestamp: string;
  /** The version of the API. */
  api_version: string;
  /** The account of the webhook. */
  account_id: string;
  /** The resource, and the members that the description of the event names. */
  data: {
    /** The resource after the change, as REST shows it. */
    object: Agent | NamedResource;
  };
};

export type AgentSkillInput = {
  /** Its id within the entry. */
  id: string;
  /** Its name. */
  name: string;
  /** Its work. */
  description: string;
  /** Words for the search. */
  tags: Array<string>;
};

/** A long-lived credential, without the credential itself. */
export type ApiKey = {
  /** Identifies the key. */
  key_id: string;
  /** The name that its creator chose. */
  name: string;
  /** One or more of read, servers, billing, full. */
  scope: string;
  /** The first 13 characters of the key. */
  prefix: string;
  /** Whether the key works. */
  status: 'active' | 'expired' | 'revoked' | (string & {});
  /** Networks (CIDR) that may use the key; none: all networks. */
  ip_allowlist: Array<string>;
  /** The most that the key may spend in a calendar month (UTC). */
  spend_limit_usd: number | null;
  /** A time, RFC 3339 in UTC. */
  created_at: string;
  /** The time of the last use, with the precision of a minute. */
  last_used_at: string | null;
  /** When the key stops working; null: never. */
  expires_at: string | null;
  /** When its owner or the operator ended the key. */
  revoked_at: string | null;
};

/** The body of a message to a webhook. */
export type ApiKeyEvent = {
  /** The id of the event. */
  id: string;
  /** The type of the event. */
  type: string;
  /** The time of the change. */
  timestamp: string;
  /** The version of the API. */
  api_version: string;
  /** The account of the webhook. */
  account_id: string;
  /** The resource, and the members that the description of the event names. */
  data: {
    /** The resource after the change, as REST shows it. */
    object: ApiKey | NamedResource;
  };
};

/** An entry of the audit log. It has no body, query, credential or address. */
export type AuditEntry = {
  /** The id of the entry. */
  id: string;
  /** A time, RFC 3339 in UTC. */
  created_at: string;
  /** The type of an event, or api.request. */
  action: string;
  /** The credential, the operator or the service that acted. */
  actor: {
    /** api_key, access_token, operator or system. */
    type: string;
    /** The id of the credential, never the credential itself. */
    id: string | null;
    /** Customers see no names of operators. */
    name: string | null;
  };
  /** The HTTP method of api.request. */
  method: string | null;
  /** The path template of api.request; for MCP, /mcp# and the tool. */
  path: string | null;
  /** The HTTP status of api.request. */
  status: number | null;
  /** The changed resource. In the log of the operator, api.request names the account that it concerned. */
  resource: {
    /** The kind of the resource, such as server. */
    type: string;
    /** The id or order number of the resource. */
    id: string;
  } | null;
  /** How often an attack or a refusal came since its entry before, at most one entry a minute; else null. */
  count?: number;
  /** The id of the request, which all its entries share. */
  request_id: string | null;
};

/** Tokens. With a second factor, a login_token instead. */
export type AuthResult = {
  /** Whether the login waits for a second factor. */
  totp_required: boolean;
  /** Identifies the pending login. Five wrong codes end it. */
  login_token?: string;
  /** Seconds until the pending login ends. */
  expires_in?: number;
  account?: Account;
  tokens?: TokenPair;
};

/** The balance of an account. */
export type Balance = {
  /** The amount that the account can spend now. */
  balance_usd: number;
  /** Payments of top-ups that wait for confirmation, at the rate of their quote. It includes refunds that wait until the payments behind them are final. Also the money of deleted dedicated servers that still have their hosts. */
  pending_usd: number;
  /** The debt of payments that their chain removed. Later credits pay it first, and orders and renewals wait. Absent without a debt. */
  owed_usd?: number;
  /** Always USD. */
  currency: string;
  /** The price of the next renewals of the servers that renew automatically. */
  monthly_cost_usd: number;
  /** When the balance no longer covers the renewals; null without renewals. */
  funded_until: string | null;
  /** A time, RFC 3339 in UTC. */
  updated_at: string;
};

/** A data-centre location. Its code is the region of an order. */
export type Bastion = {
  /** The code for orders. */
  code: string;
  /** vps, dedicated, bastion or image. */
  kind: string;
  /** A name for humans. */
  name: string;
  /** The city. */
  city: string;
  /** ISO 3166-1 alpha-2. */
  country: string;
  /** Degrees north. */
  latitude: number | null;
  /** Degrees east. */
  longitude: number | null;
  /** An address for measurements. */
  test_ipv4: string | null;
  /** An address for measurements. */
  test_ipv6: string | null;
  /** A page that measures routes from here. */
  looking_glass_url: string | null;
  /** As in /v1/transparency/status. */
  status: string;
};

/** The warrant canary. */
export type Canary = {
  /** A counter. 0 before the first canary. */
  version: string;
  /** The state now. */
  status: 'valid' | 'expired' | 'triggered' | (string & {});
  /** When the operator published it. */
  issued_at: string;
  /** Silence after this time is a warning. */
  expires_at: string;
  /** CanaryTail codes of denied events. An event without its code has happened. */
  codes: Array<string>;
  /** The statement, in words. */
  statement: string;
  /** The operator signs it offline with PGP. */
  signed_text: string | null;
  /** The fingerprint of the signing key. */
  fingerprint: string | null;
  /** The signing key. */
  public_key: string | null;
  /** A proof of the date, such as a block hash. */
  freshness: string | null;
  /** Digest of the signed text, or of the statement. */
  sha256: string;
  /** Digest of the previous canary. */
  previous_sha256: string | null;
};

/** The body of a message to a webhook. */
export type CanaryEvent = {
  /** The id of the event. */
  id: string;
  /** The type of the event. */
  type: string;
  /** The time of the change. */
  timestamp: string;
  /** The version of the API. */
  api_version: string;
  /** The account of the webhook. */
  account_id: string;
  /** The resource, and the members that the description of the event names. */
  data: {
    /** The resource after the change, as REST shows it. */
    object: Canary | NamedResource;
  };
};

export type ChangePasswordInput = {
  /** The present password of the account. */
  current_password: string;
  /** 8 to 128 characters. */
  new_password: string;
  /** Required if the account has two-factor authentication. */
  totp_code?: string;
  /** sessions: all other sessions. everything: also API keys, OAuth clients and webhook secrets, at once. */
  revoke?: 'sessions' | 'everything';
};

/** An accepted coin. */
export type Coin = {
  /** The code to top up with. */
  code: string;
  /** The name of the coin. */
  name: string;
  /** The network that carries the coin. */
  network: string;
  /** The digits after the point that the coin has. */
  decimals: number;
  /** The confirmations after which the service credits a payment. */
  confirmations_required: number;
  /** The price of one coin. */
  rate_usd: number | null;
  /** The smallest top-up. */
  min_usd: number;
  /** The largest top-up. */
  max_usd: number;
  /** Whether new top-ups can use it at the moment. */
  available: boolean;
  /** Whether it pays for x402 requests. */
  x402: boolean;
};

export type CreateApiKeyInput = {
  /** A name to recognise the key by. */
  name: string;
  /** read, servers, billing, full, or several with spaces. */
  scope: string;
  /** Up to 20 networks (CIDR) that may use the key, as a list or with commas. Default: all networks. */
  ip_allowlist?: Array<string> | string;
  /** When the key stops working. Default: never. */
  expires_at?: string;
  /** The most to spend in a calendar month (UTC). Default: the whole balance. */
  spend_limit_usd?: number;
  /** The code for step_up_required. */
  totp_code?: string;
};

export type CreateTopUpInput = {
  /** US dollars, 30 to 10,000. */
  amount_usd: number;
  /** The code of an accepted coin of GET /v1/billing/coins, in upper or lower case, else unknown_coin. Required unless x402 pays. */
  crypto?: string;
};

export type CreateWebhookInput = {
  /** An https URL at a public address. */
  url: string;
  /** *, groups such as server.*, or names such as topup.confirmed. */
  event_filter?: string | Array<string>;
  /** A note for people. */
  description?: string;
  /** The code for step_up_required. */
  totp_code?: string;
};

/** A tier of dedicated servers. */
export type DedicatedTier = {
  /** The code for orders. */
  code: string;
  /** vps, dedicated, bastion or image. */
  kind: string;
  /** A name for humans. */
  name: string;
  /** The model of the processor. */
  cpu_model: string;
  /** The cores of the processor. */
  cores: number;
  /** The threads of the processor. */
  threads: number;
  /** The memory, in MB. */
  memory_mb: number;
  /** The disks, by kind. */
  disks: Array<{
    /** The number of these disks. */
    count: number;
    /** The size of each disk, in GB. */
    size_gb: number;
    /** The kind of the disks, such as NVMe. */
    type: string;
  }>;
  /** The outgoing traffic of a month; null: unmetered. */
  traffic_tb: number | null;
  /** The speed of the network port, in Mbit/s. */
  port_mbps: number;
  /** The usual time of delivery, in hours. */
  delivery_hours: number;
  /** The price of a month, paid in advance. */
  price_month_usd: number;
  /** The month / 730: the refund of an unused hour. */
  price_hour_usd: number;
  /** Paid once, and not refunded. */
  setup_fee_usd: number;
  /** The bastions that offer it. */
  regions: Array<RegionStock>;
};

export type DisableTotpInput = {
  /** A code of the authenticator (six digits), or a recovery code (xxxx-xxxx). */
  totp_code: string;
};

export type EnableTotpInput = {
  /** A code of the authenticator. */
  totp_code: string;
};

/** An error: RFC 9457 with `code`, by which a program can decide. */
export type Error = {
  /** The URL of an explanation of the code. */
  type: string;
  /** The text of the HTTP status. */
  title: string;
  /** The HTTP status. */
  status: number;
  /** The code of the error. New versions add codes, and never change one. */
  code: string;
  /** A sentence for people. */
  detail: string;
  /** The id of the request. Name it when you ask for help. */
  request_id: string;
  /** Whether the same request may succeed later. */
  retryable: boolean;
  /** The errors of the input, by field. */
  errors?: Array<{
    /** The path of the field, with dots. */
    field: string;
    /** The kind of error. */
    code: string;
    /** A sentence for people. */
    message: string;
    /** The limit that the value violates. */
    limit?: number;
  }>;
  /** Seconds to wait before the next request. */
  retry_after?: number;
  /** The challenge of a proof of work: see proof_of_work of the request. */
  challenge?: string;
  /** The scope that the credential lacks. */
  required_scope?: string;
  /** The bastions that have the tier in stock. */
  available_regions?: Array<string>;
  /** The balance that the request needs, in US dollars. */
  required_usd?: number;
  /** The balance of the account, in US dollars. */
  balance_usd?: number;
  /** The version of the x402 challenge in the body. */
  x402Version?: unknown;
  /** The payments that the x402 challenge, version 1, accepts. */
  accepts?: Array<{
    /** The payment of an exact amount. */
    scheme: unknown;
    /** The chain of the token, such as base-sepolia. */
    network: string;
    /** The price, in base units of the token. */
    maxAmountRequired: string;
    /** The address of the token contract. */
    asset: string;
    /** The address of the recipient. */
    payTo: string;
    /** The URL of the paid endpoint. */
    resource: string;
    /** A description of the paid request. */
    description?: string;
    /** The media type of the answer. */
    mimeType?: string;
    /** The time for the payment, in seconds. */
    maxTimeoutSeconds: number;
    /** The EIP-712 domain of the token. */
    extra?: {
      /** The name of the domain. */
      name?: string;
      /** The version of the domain. */
      version?: string;
    };
  }>;
  /** On /v1/oauth: the error code of OAuth. With an x402 challenge: its reason. */
  error?: string;
  /** On /v1/oauth: the detail, for OAuth clients. */
  error_description?: string;
  /** Present if the endpoint is not available yet. */
  availability?: unknown;
};

/** An incident or a maintenance. */
export type Incident = {
  /** The id of the incident. */
  id: string;
  /** The incident in a few words. */
  name: string;
  /** The state after the latest report. */
  status: 'investigating' | 'identified' | 'monitoring' | 'resolved' | 'scheduled' | 'in_progress' | 'completed' | (string & {});
  /** How much customers notice. */
  impact: 'none' | 'minor' | 'major' | 'critical' | 'maintenance' | (string & {});
  /** The ids of components. */
  components: Array<string>;
  /** When the incident began or the maintenance begins. */
  started_at: string;
  /** When it ended; null: it is open. */
  resolved_at: string | null;
  /** The reports, oldest first. */
  updates: Array<{
    /** The state of the incident after this report. */
    status: 'investigating' | 'identified' | 'monitoring' | 'resolved' | 'scheduled' | 'in_progress' | 'completed' | (string & {});
    /** The report, in words. */
    body: string;
    /** A time, RFC 3339 in UTC. */
    created_at: string;
  }>;
};

/** The body of a message to a webhook. */
export type IncidentEvent = {
  /** The id of the event. */
  id: string;
  /** The type of the event. */
  type: string;
  /** The time of the change. */
  timestamp: string;
  /** The version of the API. */
  api_version: string;
  /** The account of the webhook. */
  account_id: string;
  /** The resource, and the members that the description of the event names. */
  data: {
    /** The resource after the change, as REST shows it. */
    object: Incident | NamedResource;
  };
};

/** An introspection request (RFC 7662). The service ignores unknown members. */
export type IntrospectOauthTokenInput = {
  /** The token, unless the Authorization header has it. */
  token?: string;
  /** Not needed: the token itself shows its kind. */
  token_type_hint?: string;
};

/** A token request (RFC 6749). The service ignores unknown members. */
export type IssueOauthTokenInput = {
  /** client_credentials or refresh_token. */
  grant_type: string;
  /** Required for the grant type refresh_token. Valid once. */
  refresh_token?: string;
  /** A part of the registered scope. Default: all of it. A refresh keeps the scope. */
  scope?: string;
  /** The resource of the token (RFC 8707): the address of this service, or of its MCP endpoint. */
  resource?: Array<string>;
  /** The client id, unless HTTP Basic has it. */
  client_id?: string;
  /** The client secret, unless HTTP Basic has it. */
  client_secret?: string;
};

export type LoginInput = {
  /** An email address. */
  email: string;
  /** The present password of the account. */
  password: string;
  /** The second factor. Without it, an account with two-factor authentication gets a login_token. */
  totp_code?: string;
};

export type LoginTotpInput = {
  /** The login_token of the pending login. */
  login_token: string;
  /** A code of the authenticator (six digits), or a recovery code (xxxx-xxxx). */
  totp_code: string;
};

/** A message between the operator and the account. */
export type Message = {
  /** The id of the message. */
  id: string;
  /** The side that wrote the message. */
  from: 'operator' | 'customer' | (string & {});
  /** The subject, in one line. */
  subject: string;
  /** The text. */
  body: string;
  /** A time, RFC 3339 in UTC. */
  created_at: string;
  /** When the recipient marked it as read. */
  read_at: string | null;
  /** The thing that it is about. */
  related: {
    /** The kind of the thing. */
    type: 'server' | 'topup' | 'message' | 'incident' | 'case' | (string & {});
    /** Its id or order number. */
    id: string;
  } | null;
};

/** The body of a message to a webhook. */
export type MessageEvent = {
  /** The id of the event. */
  id: string;
  /** The type of the event. */
  type: string;
  /** The time of the change. */
  timestamp: string;
  /** The version of the API. */
  api_version: string;
  /** The account of the webhook. */
  account_id: string;
  /** The resource, and the members that the description of the event names. */
  data: {
    /** The resource after the change, as REST shows it. */
    object: Message | NamedResource;
  };
};

/** The use of a machine since the point before. */
export type MetricPoint = {
  /** The minute or the hour at which the interval ends. */
  at: string;
  /** From the machine. */
  sent_bytes: number;
  /** To the machine. */
  received_bytes: number;
  /** The time of all vCPUs together. */
  cpu_seconds: number | null;
  /** The used memory at that time. */
  memory_bytes: number | null;
  /** The used disk at that time. */
  disk_bytes: number | null;
};

/** The body of a message to a webhook. */
export type NamedEvent = {
  /** The id of the event. */
  id: string;
  /** The type of the event. */
  type: string;
  /** The time of the change. */
  timestamp: string;
  /** The version of the API. */
  api_version: string;
  /** The account of the webhook. */
  account_id: string;
  /** The resource, and the members that the description of the event names. */
  data: {
    /** The resource after the change, as REST shows it. */
    object: NamedResource;
  };
};

/** A resource that is gone, or that a message does not show. */
export type NamedResource = {
  /** The id of the resource. */
  id: string;
  /** Present if the resource is gone. */
  deleted?: unknown;
};

export type NewRecoveryCodesInput = {
  /** A code of the authenticator (six digits), or a recovery code (xxxx-xxxx). */
  totp_code: string;
};

/** A registered OAuth client, with its secret. */
export type OauthClient = {
  /** Identifies the client. */
  client_id: string;
  /** The secret that authenticates the client. Keep it. */
  client_secret: string;
  /** When the client registered. */
  client_id_issued_at: number;
  /** When the secret and all tokens expire, in seconds since the epoch; 0: never. */
  client_secret_expires_at: number;
  /** The widest scope of its tokens. */
  scope: string;
  /** The grants that the client may use. */
  grant_types: Array<string>;
  /** Always empty. */
  response_types: Array<string>;
  /** The registered method; client_secret_basic and client_secret_post both work. */
  token_endpoint_auth_method: string;
  /** Stored, but not used. */
  redirect_uris: Array<string>;
  /** The name that the client gave. */
  client_name?: string;
  /** The client's site, as it gave it. */
  client_uri?: string;
  /** The client's picture, as it gave it. */
  logo_uri?: string;
  /** The people behind the client, as it named them. */
  contacts?: Array<string>;
  /** The id of the software, as the client gave it. */
  software_id?: string;
  /** The version of the software, as the client gave it. */
  software_version?: string;
  /** When the client and all its tokens stop; null: never. */
  expires_at?: string;
  /** The most that all its tokens together may spend in a calendar month (UTC). */
  spend_limit_usd?: number;
  /** Networks (CIDR) that may use its tokens; none: all networks. */
  ip_allowlist?: Array<string>;
};

/** An OAuth client, without its secret. */
export type OauthClientEntry = {
  /** Identifies the client. */
  client_id: string;
  /** The name that the client gave. */
  client_name: string | null;
  /** The widest scope of its tokens. */
  scope: string;
  /** A time, RFC 3339 in UTC. */
  created_at: string;
  /** When the client last got a token, with the precision of a minute. */
  last_used_at: string | null;
  /** When the client and all its tokens stop. */
  expires_at: string | null;
  /** The most that all its tokens together may spend in a calendar month (UTC). */
  spend_limit_usd: number | null;
  /** Networks (CIDR) that may use its tokens; none: all networks. */
  ip_allowlist: Array<string>;
};

/** A server after its order and payment. */
export type OrderedServer = {
  /** The id of the server. */
  order_number: string;
  /** A virtual server, or a whole machine. */
  kind: 'vps' | 'dedicated' | (string & {});
  /** Lasting: running, stopped, suspended (unpaid or by the operator), failed (refunded), deleted. Passing: pending (paid, not begun), provisioning, starting, stopping, rebooting, rebuilding, resizing, deleting. */
  status: 'pending' | 'provisioning' | 'running' | 'starting' | 'stopping' | 'stopped' | 'rebooting' | 'rebuilding' | 'resizing' | 'suspended' | 'failed' | 'deleting' | 'deleted' | (string & {});
  /** The name that the machine got. */
  hostname: string;
  /** The code of its tier. */
  service_code: string;
  /** The code of its bastion. */
  region: string;
  /** The code of its image. */
  os: string;
  /** Null until it has one. */
  ipv4: string | null;
  /** Null until it has one. */
  ipv6: string | null;
  /** The prefix that is routed to the server. */
  ipv6_prefix: string | null;
  /** The names of its addresses. */
  reverse_dns: Array<{
    /** An address of the server. */
    ip: string;
    /** Its name. */
    ptr: string;
  }>;
  /** The SSH keys that the machine got. */
  ssh_key_ids: Array<string>;
  /** Up to 20 labels: lower-case keys of up to 63 characters, and values of up to 63. */
  labels: Record<string, string>;
  /** Whether the balance pays the next month. */
  auto_renew: boolean;
  /** Whether the service refuses to delete it. */
  delete_protection: boolean;
  /** An amount in US dollars. */
  price_month_usd: number;
  /** The announced price of later months. Null: none is announced. */
  next_price_month_usd: number | null;
  /** The announced price counts for months that begin then or later. */
  next_price_from: string | null;
  /** Null until the server has run. */
  paid_until: string | null;
  /** Why the order or the last operation failed. */
  failure: {
    /** Such as out_of_stock or provisioning_failed. */
    code: string;
    /** The reason in words. */
    message: string;
  } | null;
  /** The sent GB of this calendar month (UTC); null if nothing counts them. */
  traffic_used_gb: number | null;
  /** A time, RFC 3339 in UTC. */
  created_at: string;
  /** A time, RFC 3339 in UTC. */
  updated_at: string;
  /** When to read again; null if no operation runs. */
  poll_after_seconds: number | null;
  /** The first month and the setup fee. */
  charged_usd: number;
  /** balance or x402. */
  paid_by: string;
  /** The given password, or a generated one if there is no SSH key. Only this answer shows it. */
  root_password: string | null;
};

/** An image of an operating system. */
export type OsImage = {
  /** The code for orders. */
  code: string;
  /** vps, dedicated, bastion or image. */
  kind: string;
  /** A name for humans. */
  name: string;
  /** The distribution, such as debian. */
  family: string;
  /** The version of the distribution. */
  version: string;
  /** The architecture of the processor, such as x86_64. */
  architecture: string;
  /** The smallest disk that it fits on, in GB. */
  min_disk_gb: number;
  /** The least memory that it runs with, in MB. */
  min_memory_mb: number;
  /** Whether it reads user_data. */
  cloud_init: boolean;
  /** The user for the first login. */
  default_user: string;
  /** When orders of the image end; null: not planned. */
  deprecated_at: string | null;
};

export type PlaceOrderInput = {
  /** The code of a VPS or dedicated tier. */
  service_code: string;
  /** The code of a bastion. Default: the first with stock. */
  region?: string;
  /** The code of an image. */
  os?: string;
  /** Default: a random name. */
  hostname?: string;
  /** Keys of the account. Default: all of them. */
  ssh_key_ids?: Array<string>;
  /** 12 to 72 characters. Default: a random one if there is no SSH key. */
  root_password?: string;
  /** cloud-init user data. */
  user_data?: string;
  /** Up to 20 labels of your own. Keys are lower-case. */
  labels?: Record<string, string>;
  /** Renews itself. Default: true, or false with a spending limit. */
  auto_renew?: boolean;
  /** The highest total price to accept. */
  max_price_usd?: number;
  /** Quotes the order, and orders nothing. */
  dry_run?: boolean;
};

export type PublishAgentInput = {
  /** The name of the entry: 3 to 40 of a-z, 0-9 and -. Publishing it again replaces the entry. */
  slug: string;
  /** Its name. */
  name: string;
  /** Its work. */
  description: string;
  /** Its URL. */
  url: string;
  /** Its own version. */
  version?: string;
  /** Its maker. */
  provider_name?: string;
  /** Its maker's site. */
  provider_url?: string;
  /** Its documentation. */
  documentation_url?: string;
  /** Its picture. */
  icon_url?: string;
  /** Its addresses, one to ten. */
  endpoints: Array<AgentEndpointInput>;
  /** Its skills, up to 20. */
  skills?: Array<AgentSkillInput>;
  /** As JWK or base64. */
  public_key?: string;
  /** Whether it takes x402 payments. */
  x402?: boolean;
  /** False removes the entry from the directory. */
  listed?: boolean;
};

/** The price of an order, without the order. */
export type Quote = {
  /** The code of the tier. */
  service_code: string;
  /** The bastion of the server. */
  region: string;
  /** The first month and the setup fee. */
  total_usd: number;
  /** An amount in US dollars. */
  setup_fee_usd: number;
  /** An amount in US dollars. */
  price_month_usd: number;
  /** The available balance. */
  balance_usd: number;
  /** Whether the balance covers the total. */
  sufficient: boolean;
  /** The stock of the tier at that bastion. */
  stock: 'available' | 'low' | 'none' | (string & {});
};

/** The changes of the balance by a payment or in a month. */
export type Receipt = {
  /** The order number of the top-up, or the month. */
  number: string;
  /** The account of the receipt. */
  account_id: string;
  /** The beginning of the range. */
  from: string;
  /** The end of the range. */
  to: string;
  /** When the service wrote the receipt. */
  issued_at: string;
  /** The sum of all changes. */
  total_usd: number;
  /** The first 1,000 changes. */
  lines: Array<{
    /** The time of the change. */
    at: string;
    /** The change, in words. */
    description: string;
    /** The server or the top-up of the change. */
    order_number: string | null;
    /** The amount; negative if it left the balance. */
    amount_usd: number;
    /** The coin of a payment. */
    coin: string | null;
    /** The payment, in its coin. Negative if its chain removed it. */
    amount_crypto: string | null;
    /** The network of a payment. */
    network: string | null;
    /** The transaction of a payment. */
    tx_id: string | null;
  }>;
};

export type RecoverInput = {
  /** The email of the account. Alone, it asks for a challenge. */
  email?: string;
  /** The challenge_id of the challenge that you answer. */
  challenge_id?: string;
  /** The decrypted challenge. */
  challenge_response?: string;
  /** An unused recovery code, with the email in place of a challenge. */
  recovery_code?: string;
  /** The new password: 8 to 128 characters. */
  new_password?: string;
  /** With a recovery_code, if the account has two-factor authentication. */
  totp_code?: string;
};

export type RefreshTokensInput = {
  /** The refresh token, unused. */
  refresh_token: string;
};

/** The stock of a tier at a bastion. */
export type RegionStock = {
  /** The code of the bastion. */
  code: string;
  /** Whether orders find room now. */
  stock: 'available' | 'low' | 'none' | (string & {});
};

export type RegisterInput = {
  /** For login. */
  email: string;
  /** 8 to 128 characters. */
  password: string;
  /** After proof_of_work_required (SHA-256). Onion services always ask. */
  proof_of_work?: string;
  /** True: answers codes that replace a lost password. */
  recovery_codes?: boolean;
};

/** Client metadata (RFC 7591). The service ignores unknown members. */
export type RegisterOauthClientInput = {
  /** The widest scope of its tokens: read (default), servers, billing, full, separated by spaces. */
  scope?: string;
  /** client_credentials (default), and refresh_token. */
  grant_types?: Array<string>;
  /** Must be empty: there is no authorization in a browser. */
  response_types?: Array<string>;
  /** client_secret_basic (default) or client_secret_post. */
  token_endpoint_auth_method?: string;
  /** Stored, but not used. */
  redirect_uris?: Array<string>;
  /** A name to recognise the client by. */
  client_name?: string;
  /** The client's site. */
  client_uri?: string;
  /** The client's picture. */
  logo_uri?: string;
  /** The people behind the client. */
  contacts?: Array<string>;
  /** The id of the software. */
  software_id?: string;
  /** The version of the software. */
  software_version?: string;
  /** After proof_of_work_required, and always to an onion service: the challenge, a colon, and a number. The SHA-256 of this text begins with as many zero bits as the second part of the challenge says. */
  proof_of_work?: string;
  /** When the client and all its tokens stop. Default: never. */
  expires_at?: string;
  /** The most that all its tokens together may spend in a calendar month (UTC). Default: the whole balance. */
  spend_limit_usd?: number;
  /** Up to 20 networks (CIDR) that may use its tokens, as a list or with commas. Default: all networks. */
  ip_allowlist?: Array<string> | string;
  /** The code for step_up_required. */
  totp_code?: string;
};

export type RelatedInput = {
  /** The kind of the thing. */
  type: 'server' | 'topup' | 'message' | 'incident' | 'case';
  /** Its id or order number. */
  id: string;
};

/** A revocation request (RFC 7009). The service ignores unknown members. */
export type RevokeOauthTokenInput = {
  /** The token to revoke, unless the Authorization header has it. */
  token?: string;
  /** Not needed: the token itself shows its kind. */
  token_type_hint?: string;
  /** The client id, unless HTTP Basic has it. */
  client_id?: string;
  /** The client secret, unless HTTP Basic has it. */
  client_secret?: string;
};

export type RotateOauthClientSecretInput = {
  /** The present secret of the client. */
  client_secret: string;
};

export type RotateWebhookSecretInput = {
  /** The code for step_up_required. */
  totp_code?: string;
};

/** A virtual or dedicated server. */
export type Server = {
  /** The id of the server. */
  order_number: string;
  /** A virtual server, or a whole machine. */
  kind: 'vps' | 'dedicated' | (string & {});
  /** Lasting: running, stopped, suspended (unpaid or by the operator), failed (refunded), deleted. Passing: pending (paid, not begun), provisioning, starting, stopping, rebooting, rebuilding, resizing, deleting. */
  status: 'pending' | 'provisioning' | 'running' | 'starting' | 'stopping' | 'stopped' | 'rebooting' | 'rebuilding' | 'resizing' | 'suspended' | 'failed' | 'deleting' | 'deleted' | (string & {});
  /** The name that the machine got. */
  hostname: string;
  /** The code of its tier. */
  service_code: string;
  /** The code of its bastion. */
  region: string;
  /** The code of its image. */
  os: string;
  /** Null until it has one. */
  ipv4: string | null;
  /** Null until it has one. */
  ipv6: string | null;
  /** The prefix that is routed to the server. */
  ipv6_prefix: string | null;
  /** The names of its addresses. */
  reverse_dns: Array<{
    /** An address of the server. */
    ip: string;
    /** Its name. */
    ptr: string;
  }>;
  /** The SSH keys that the machine got. */
  ssh_key_ids: Array<string>;
  /** Up to 20 labels: lower-case keys of up to 63 characters, and values of up to 63. */
  labels: Record<string, string>;
  /** Whether the balance pays the next month. */
  auto_renew: boolean;
  /** Whether the service refuses to delete it. */
  delete_protection: boolean;
  /** An amount in US dollars. */
  price_month_usd: number;
  /** The announced price of later months. Null: none is announced. */
  next_price_month_usd: number | null;
  /** The announced price counts for months that begin then or later. */
  next_price_from: string | null;
  /** Null until the server has run. */
  paid_until: string | null;
  /** Why the order or the last operation failed. */
  failure: {
    /** Such as out_of_stock or provisioning_failed. */
    code: string;
    /** The reason in words. */
    message: string;
  } | null;
  /** The sent GB of this calendar month (UTC); null if nothing counts them. */
  traffic_used_gb: number | null;
  /** A time, RFC 3339 in UTC. */
  created_at: string;
  /** A time, RFC 3339 in UTC. */
  updated_at: string;
  /** When to read again; null if no operation runs. */
  poll_after_seconds: number | null;
};

/** The body of a message to a webhook. */
export type ServerEvent = {
  /** The id of the event. */
  id: string;
  /** The type of the event. */
  type: string;
  /** The time of the change. */
  timestamp: string;
  /** The version of the API. */
  api_version: string;
  /** The account of the webhook. */
  account_id: string;
  /** The resource, and the members that the description of the event names. */
  data: {
    /** The resource after the change, as REST shows it. */
    object: Server | NamedResource;
  };
};

/** An open session. */
export type Session = {
  /** Identifies the session. */
  token_id: string;
  /** The scope of the tokens. */
  scope: string;
  /** register, login, or oauth: with the id of the client. */
  source: string;
  /** The User-Agent header of the login, up to 200 characters. */
  user_agent: string | null;
  /** Whether this request uses the session. */
  current: boolean;
  /** A time, RFC 3339 in UTC. */
  created_at: string;
  /** The time of the last use, with the precision of a minute. */
  last_used_at: string | null;
  /** When the access token expires. The refresh token may live longer. */
  expires_at: string;
};

export type SetupTotpInput = {
  /** The present password of the account. */
  password: string;
};

/** An SSH public key. */
export type SshKey = {
  /** The id of the key. */
  id: string;
  /** The name that its owner chose. */
  name: string;
  /** Type and base64, without the comment. */
  public_key: string;
  /** The type, such as ssh-ed25519. */
  type: string;
  /** The size of the key, in bits. */
  bits: number;
  /** The fingerprint that ssh-keygen -l prints. */
  fingerprint: string;
  /** A time, RFC 3339 in UTC. */
  created_at: string;
  /** When it leaves the account, with the credential that added it. */
  expires_at?: string;
};

/** The body of a message to a webhook. */
export type SshKeyEvent = {
  /** The id of the event. */
  id: string;
  /** The type of the event. */
  type: string;
  /** The time of the change. */
  timestamp: string;
  /** The version of the API. */
  api_version: string;
  /** The account of the webhook. */
  account_id: string;
  /** The resource, and the members that the description of the event names. */
  data: {
    /** The resource after the change, as REST shows it. */
    object: SshKey | NamedResource;
  };
};

/** The use of a token. For an invalid token, the answer has `active` only. */
export type TokenIntrospection = {
  /** Whether the token is valid now. */
  active: boolean;
  /** The scope of the token. */
  scope?: string;
  /** The OAuth client of the token. */
  client_id?: string;
  /** Bearer; refresh tokens have none. */
  token_type?: string;
  /** When the token expires. */
  exp?: number;
  /** When the service issued the token. */
  iat?: number;
  /** The account. */
  sub?: string;
  /** The resources that accept the token. */
  aud?: Array<string>;
  /** The issuer of the token. */
  iss?: string;
  /** The id of the token. It is not secret. */
  jti?: string;
};

/** An access token and the refresh token that renews it. */
export type TokenPair = {
  /** Identifies the session. */
  token_id: string;
  /** Send it as "Authorization: Bearer …". */
  access_token: string;
  /** Always Bearer. */
  token_type: string;
  /** Seconds until the access token expires. */
  expires_in: number;
  /** Valid for one refresh. */
  refresh_token: string;
  /** Seconds until the refresh token expires. */
  refresh_expires_in: number;
  /** The scope of the tokens. */
  scope: string;
};

/** A payment into the balance. */
export type TopUp = {
  /** Identifies the top-up. */
  order_number: string;
  /** pending: unpaid. confirming: paid, with too few confirmations. confirmed: in the balance. expired, cancelled: late payments count. */
  status: 'pending' | 'confirming' | 'confirmed' | 'expired' | 'cancelled' | (string & {});
  /** By coins to an address, or by x402. */
  mode: 'crypto' | 'x402' | (string & {});
  /** The amount that its owner asked for. */
  amount_usd: number;
  /** The bonus in addition to the amount. */
  bonus_usd: number;
  /** The code of the coin. */
  crypto: string;
  /** The network that carries the payment. */
  network: string;
  /** The amount to pay, in the coin, as a decimal string. */
  amount_crypto: string;
  /** The price of one coin, locked until expires_at. */
  rate_usd: number;
  /** The address to pay to. It belongs to this top-up only. */
  wallet_address: string | null;
  /** The payment for wallets: BIP 21, EIP-681 or monero:. */
  payment_uri: string | null;
  /** The received amount, in the coin, as a decimal string. */
  received_crypto: string;
  /** The fewest of a payment that waits. */
  confirmations: number;
  /** A payment with so many is in the balance. */
  confirmations_required: number;
  /** The transactions of its first hundred payments. */
  tx_ids: Array<string>;
  /** Null: the payment came in time, and in full. */
  payment_exception: 'underpaid' | 'overpaid' | 'late' | (string & {}) | null;
  /** The credited amount, including the bonus, less removed payments. */
  credited_usd: number;
  /** A time, RFC 3339 in UTC. */
  created_at: string;
  /** The end of the quoted rate. */
  expires_at: string | null;
  /** When the money came to the balance. */
  confirmed_at: string | null;
};

/** The body of a message to a webhook. */
export type TopUpEvent = {
  /** The id of the event. */
  id: string;
  /** The type of the event. */
  type: string;
  /** The time of the change. */
  timestamp: string;
  /** The version of the API. */
  api_version: string;
  /** The account of the webhook. */
  account_id: string;
  /** The resource, and the members that the description of the event names. */
  data: {
    /** The resource after the change, as REST shows it. */
    object: TopUp | NamedResource;
  };
};

export type UpdateAccountInput = {
  /** The new email, for login. */
  email?: string;
  /** An armored PGP key that can encrypt. It can recover the account. An empty text removes the key. */
  pgp_public_key?: string;
  /** How many days ahead renewals must be covered. */
  low_balance_alert_days?: number;
  /** True: replaces the recovery codes by new ones, which the answer shows once. */
  recovery_codes?: boolean;
  /** Needed for the email, the key and the recovery codes. */
  current_password?: string;
  /** Needed for the same, if the account has two-factor authentication. */
  totp_code?: string;
};

/** Any of the fields, and at most one operation: power_state, action or service_code. */
export type UpdateServerInput = {
  /** The machine takes the new name at its next rebuild. */
  hostname?: string;
  /** Replaces all labels. Keys are lower-case. */
  labels?: Record<string, string>;
  /** Whether the balance pays the next month. */
  auto_renew?: boolean;
  /** Whether the service refuses to delete the server. */
  delete_protection?: boolean;
  /** Replaces all names of the addresses of the server. */
  reverse_dns?: Array<{
    /** An address of the server. */
    ip: string;
    /** The new name of the address. */
    ptr: string;
  }>;
  /** Starts or stops the server. No effect if it is so already. */
  power_state?: 'on' | 'off';
  /** Reset cuts the power. Rebuild erases the disk, and installs an image. */
  action?: 'reboot' | 'reset' | 'rebuild';
  /** Resizes a stopped VPS to a larger tier. The difference for the rest of the month is charged. */
  service_code?: string;
  /** With a rebuild: the image. Default: the present one. */
  os?: string;
  /** With a rebuild: the keys. Default: the present ones. */
  ssh_key_ids?: Array<string>;
  /** With a rebuild: cloud-init user data. Default: none. */
  user_data?: string;
  /** With a rebuild: 12 to 72 characters. Default: a random one if there is no SSH key. */
  root_password?: string;
};

/** One change of the balance. */
export type UsageItem = {
  /** order, renewal, traffic, refund, topup, bonus or adjustment. A failed order gets a refund. */
  kind: string;
  /** The order number of the server or top-up. */
  order_number: string | null;
  /** The tier of the server. */
  service_code: string | null;
  /** The change, in words. */
  description: string;
  /** The beginning of the paid time; without a paid time, the moment of the change. */
  from: string;
  /** The end of the paid time. */
  to: string;
  /** The number of paid hours. */
  hours: number | null;
  /** The amount; negative if it left the balance. */
  amount_usd: number;
};

/** A tier of virtual servers. */
export type VpsTier = {
  /** The code for orders. */
  code: string;
  /** vps, dedicated, bastion or image. */
  kind: string;
  /** A name for humans. */
  name: string;
  /** The virtual processors. */
  vcpus: number;
  /** The memory, in MB. */
  memory_mb: number;
  /** The disk, in GB. */
  disk_gb: number;
  /** The kind of the disk, such as NVMe. */
  disk_type: string;
  /** The outgoing traffic of a month. */
  traffic_tb: number;
  /** The price of each begun TB above that; null: the machine gets slow until the next month. */
  extra_traffic_tb_usd: number | null;
  /** The speed of the network port, in Mbit/s. */
  port_mbps: number;
  /** container (shares the kernel) or kvm (a virtual machine). */
  virtualization: string;
  /** The price of a month, paid in advance. */
  price_month_usd: number;
  /** The month / 730: the refund of an unused hour. */
  price_hour_usd: number;
  /** Paid once, and not refunded. */
  setup_fee_usd: number;
  /** The bastions that offer it. */
  regions: Array<RegionStock>;
};

/** A URL that receives events. */
export type Webhook = {
  /** The id of the webhook. */
  id: string;
  /** The receiver. */
  url: string;
  /** The events that it receives: *, groups such as server.*, or names, with commas. */
  event_filter: string;
  /** The note that its owner gave it. */
  description: string | null;
  /** The service disables it after ten failed deliveries in a row. */
  status: 'enabled' | 'disabled' | (string & {});
  /** endpoint_gone, retries_exhausted, expired, creator_revoked or secret_revoked; null while it is enabled. */
  disabled_reason: string | null;
  /** A time, RFC 3339 in UTC. */
  created_at: string;
  /** When it stops: the expiry of the credential that created it. */
  expires_at?: string;
  /** The delivery of the latest event. */
  last_delivery: WebhookDelivery | null;
};

/** One event on its way to one webhook. */
export type WebhookDelivery = {
  /** The id of the delivery. */
  id: string;
  /** The webhook-id of the message, the same at every attempt. */
  event_id: string;
  /** Such as server.running. */
  event_type: string;
  /** retrying: the receiver refused it, or was away. */
  status: 'pending' | 'delivering' | 'retrying' | 'succeeded' | 'failed' | (string & {});
  /** Attempts that have ended. */
  attempts: number;
  /** The HTTP status of the last answer. */
  response_status: number | null;
  /** The duration of the last attempt, rounded up. */
  duration_ms: number | null;
  /** refused_address, dns, tls, unreachable, http_status, disabled or too_many_waiting. */
  error: string | null;
  /** Null at the end. */
  next_attempt_at: string | null;
  /** A time, RFC 3339 in UTC. */
  created_at: string;
};

/** The body of a message to a webhook. */
export type WebhookEvent = {
  /** The id of the event. */
  id: string;
  /** The type of the event. */
  type: string;
  /** The time of the change. */
  timestamp: string;
  /** The version of the API. */
  api_version: string;
  /** The account of the webhook. */
  account_id: string;
  /** The resource, and the members that the description of the event names. */
  data: {
    /** The resource after the change, as REST shows it. */
    object: Webhook | NamedResource;
  };
};

export type WriteMessageInput = {
  /** One line of up to 120 characters. */
  subject: string;
  /** Up to 4,000 characters. */
  body: string;
  /** The thing that the message is about. */
  related?: RelatedInput;
};

/** The input and the answer of each operation. */
export interface Operations {
  /** Shows the account of the credential, with its limits */
  GetAccount: { input: Record<string, never>; answer: Account };
  /** Shows the balance */
  GetBalance: { input: Record<string, never>; answer: Balance };
  /** Lists the changes of the balance, newest first */
  GetUsage: { input: {
    /** The first day, in UTC. Default: the first day of the month. */
    from?: string;
    /** The last day, in UTC. Default: today. */
    to?: string;
    /** Entries of a page. */
    limit?: number;
    /** The previous next_cursor. */
    cursor?: string;
  }; answer: {
    /** The beginning of the range. */
    from: string;
    /** The end of the range: the last millisecond of a day. */
    to: string;
    /** The sum of the whole range, not only of the page. */
    total_usd: number;
    /** The cost of the range: orders, renewals and traffic, less refunds. Negative if refunds were more. */
    spent_usd: number;
    /** The top-ups and bonuses of the range. */
    topped_up_usd: number;
    /** The adjustments of the range. total_usd is topped_up_usd - spent_usd + adjusted_usd. */
    adjusted_usd: number;
    /** The changes of the page. */
    data: Array<UsageItem>;
    /** Send it as cursor to read the next page; null on the last page. */
    next_cursor: string | null;
    /** Whether there is a next page. */
    has_more: boolean;
  } };
  /** Lists the audit log of the last 90 days, newest first */
  GetAuditLog: { input: {
    /** Entries of a page. */
    limit?: number;
    /** The previous next_cursor. */
    cursor?: string;
    /** Only these actions, or those that begin so: api.request, or the type of an event. An unknown action has no entries. */
    action?: Array<string>;
    /** Only entries of this day or time, or later. */
    since?: string;
    /** Only entries before this time, or to this day. */
    until?: string;
  }; answer: Page<AuditEntry> };
  /** Searches the directory of agents, newest first */
  SearchAgents: { input: {
    /** Entries of a page. */
    limit?: number;
    /** The previous next_cursor. */
    cursor?: string;
    /** Beginnings of words of the name, slug or description. */
    q?: string;
    /** The id or a tag of a skill. */
    skill?: string;
    /** Only agents with an endpoint of this protocol. */
    protocol?: 'mcp' | 'a2a' | 'http' | 'graphql';
    /** Only with a verified key, or without. It proves no endpoints. */
    verified?: boolean;
  }; answer: Page<Agent> };
  /** Adds an agent to the directory, or replaces its entry */
  PublishAgent: { input: {
    /** The name of the entry: 3 to 40 of a-z, 0-9 and -. Publishing it again replaces the entry. */
    slug: string;
    /** Its name. */
    name: string;
    /** Its work. */
    description: string;
    /** Its URL. */
    url: string;
    /** Its own version. */
    version?: string;
    /** Its maker. */
    provider_name?: string;
    /** Its maker's site. */
    provider_url?: string;
    /** Its documentation. */
    documentation_url?: string;
    /** Its picture. */
    icon_url?: string;
    /** Its addresses, one to ten. */
    endpoints: Array<AgentEndpointInput>;
    /** Its skills, up to 20. */
    skills?: Array<AgentSkillInput>;
    /** As JWK or base64. */
    public_key?: string;
    /** Whether it takes x402 payments. */
    x402?: boolean;
    /** False removes the entry from the directory. */
    listed?: boolean;
  }; answer: Agent };
  /** Creates an account, without an identity */
  Register: { input: {
    /** For login. */
    email: string;
    /** 8 to 128 characters. */
    password: string;
    /** After proof_of_work_required (SHA-256). Onion services always ask. */
    proof_of_work?: string;
    /** True: answers codes that replace a lost password. */
    recovery_codes?: boolean;
  }; answer: {
    account: Account;
    tokens: TokenPair;
    /** Codes that replace a lost password, if you asked for them. The service shows them only here. */
    recovery_codes?: Array<string>;
  } };
  /** Exchanges email and password for tokens */
  Login: { input: {
    /** An email address. */
    email: string;
    /** The present password of the account. */
    password: string;
    /** The second factor. Without it, an account with two-factor authentication gets a login_token. */
    totp_code?: string;
  }; answer: AuthResult };
  /** Completes a pending login */
  LoginTotp: { input: {
    /** The login_token of the pending login. */
    login_token: string;
    /** A code of the authenticator (six digits), or a recovery code (xxxx-xxxx). */
    totp_code: string;
  }; answer: AuthResult };
  /** Replaces a pair of tokens */
  RefreshTokens: { input: {
    /** The refresh token, unused. */
    refresh_token: string;
  }; answer: {
    tokens: TokenPair;
  } };
  /** Lists open sessions, newest first, without their tokens */
  ListSessions: { input: {
    /** Entries of a page. */
    limit?: number;
    /** The previous next_cursor. */
    cursor?: string;
  }; answer: Page<Session> };
  /** Ends a session */
  RevokeSession: { input: {
    /** The session to end. */
    token_id: string;
  }; answer: {
    /** The ended session. */
    token_id: string;
    /** Always true. */
    revoked: boolean;
  } };
  /** Makes a seed for an authenticator */
  SetupTotp: { input: {
    /** The present password of the account. */
    password: string;
  }; answer: {
    /** The URI for an authenticator, best as a QR code. */
    provisioning_uri: string;
    /** The seed, in base32. */
    secret: string;
    /** Always SHA1. */
    algorithm: string;
    /** The number of digits of a code. */
    digits: number;
    /** Seconds for which a code is valid. */
    period: number;
    /** Seconds until the setup expires. */
    expires_in: number;
  } };
  /** Turns two-factor authentication on */
  EnableTotp: { input: {
    /** A code of the authenticator. */
    totp_code: string;
  }; answer: {
    /** Always true. */
    totp_enabled: boolean;
    /** Ten codes, each valid once in place of a code. The service shows them once. */
    recovery_codes: Array<string>;
  } };
  /** Replaces the recovery codes by ten new ones */
  NewRecoveryCodes: { input: {
    /** A code of the authenticator (six digits), or a recovery code (xxxx-xxxx). */
    totp_code: string;
  }; answer: {
    /** Ten codes, each valid once in place of a code. The service shows them once. */
    recovery_codes: Array<string>;
  } };
  /** Turns two-factor authentication off */
  DisableTotp: { input: {
    /** A code of the authenticator (six digits), or a recovery code (xxxx-xxxx). */
    totp_code: string;
  }; answer: {
    /** Always false. */
    totp_enabled: boolean;
  } };
  /** Changes the password */
  ChangePassword: { input: {
    /** The present password of the account. */
    current_password: string;
    /** 8 to 128 characters. */
    new_password: string;
    /** Required if the account has two-factor authentication. */
    totp_code?: string;
    /** sessions: all other sessions. everything: also API keys, OAuth clients and webhook secrets, at once. */
    revoke?: 'sessions' | 'everything';
  }; answer: {
    /** Always true. */
    changed: boolean;
    /** The number of other sessions that ended. */
    sessions_revoked: number;
    /** The number of ended API keys. */
    api_keys_revoked?: number;
    /** The number of deleted OAuth clients. */
    oauth_clients_deleted?: number;
    /** The number of webhooks with a new secret. */
    webhook_secrets_replaced?: number;
  } };
  /** Creates a long-lived API key */
  CreateApiKey: { input: {
    /** A name to recognise the key by. */
    name: string;
    /** read, servers, billing, full, or several with spaces. */
    scope: string;
    /** Up to 20 networks (CIDR) that may use the key, as a list or with commas. Default: all networks. */
    ip_allowlist?: Array<string> | string;
    /** When the key stops working. Default: never. */
    expires_at?: string;
    /** The most to spend in a calendar month (UTC). Default: the whole balance. */
    spend_limit_usd?: number;
    /** The code for step_up_required. */
    totp_code?: string;
  }; answer: {
    /** Identifies the key. */
    key_id: string;
    /** The name that its creator chose. */
    name: string;
    /** One or more of read, servers, billing, full. */
    scope: string;
    /** The first 13 characters of the key. */
    prefix: string;
    /** Whether the key works. */
    status: 'active' | 'expired' | 'revoked' | (string & {});
    /** Networks (CIDR) that may use the key; none: all networks. */
    ip_allowlist: Array<string>;
    /** The most that the key may spend in a calendar month (UTC). */
    spend_limit_usd: number | null;
    /** A time, RFC 3339 in UTC. */
    created_at: string;
    /** The time of the last use, with the precision of a minute. */
    last_used_at: string | null;
    /** When the key stops working; null: never. */
    expires_at: string | null;
    /** When its owner or the operator ended the key. */
    revoked_at: string | null;
    /** The key itself. The service shows it only here. */
    plaintext: string;
  } };
  /** Lists API keys, newest first, without their plaintexts */
  ListApiKeys: { input: {
    /** Entries of a page. */
    limit?: number;
    /** The previous next_cursor. */
    cursor?: string;
    /** Only keys in these states. */
    status?: Array<'active' | 'expired' | 'revoked'>;
  }; answer: Page<ApiKey> };
  /** Revokes an API key */
  RevokeApiKey: { input: {
    /** The key to revoke. */
    key_id: string;
  }; answer: ApiKey };
  /** Lists the accepted coins */
  ListCoins: { input: Record<string, never>; answer: Page<Coin> };
  /** Lists the bonuses for larger top-ups */
  ListBonusTiers: { input: Record<string, never>; answer: Page<{
    /** The smallest top-up with this bonus. */
    min_usd: number;
    /** The bonus, as a percentage of the whole top-up. */
    bonus_percent: number;
  }> };
  /** Opens a top-up of 30 to 10,000 USD */
  CreateTopup: { input: {
    /** US dollars, 30 to 10,000. */
    amount_usd: number;
    /** The code of an accepted coin of GET /v1/billing/coins, in upper or lower case, else unknown_coin. Required unless x402 pays. */
    crypto?: string;
  }; answer: TopUp };
  /** Lists top-ups, by default newest first */
  ListTopups: { input: {
    /** Entries of a page. */
    limit?: number;
    /** The previous next_cursor. */
    cursor?: string;
    /** Only top-ups in these states. */
    status?: Array<'pending' | 'confirming' | 'confirmed' | 'expired' | 'cancelled'>;
    /** Only those of this day or time, or later. */
    created_since?: string;
    /** Only those before this time, or to this day. */
    created_until?: string;
    /** Default: the newest first. */
    sort?: '-created_at' | 'created_at';
  }; answer: Page<TopUp> };
  /** Shows one top-up */
  GetTopup: { input: {
    /** The order number of the top-up. */
    order_number: string;
  }; answer: TopUp };
  /** Cancels a pending top-up without payments */
  CancelTopup: { input: {
    /** The order number of the top-up. */
    order_number: string;
  }; answer: TopUp };
  /** Shows the receipt of a confirmed top-up */
  GetReceipt: { input: {
    /** The order number of the top-up. */
    order_number: string;
  }; answer: Receipt };
  /** Shows the receipt of a month */
  GetMonthlyReceipt: { input: {
    /** The month, in UTC. */
    month: string;
  }; answer: Receipt };
  /** Lists the whole catalog */
  GetCatalog: { input: Record<string, never>; answer: {
    /** The tiers of virtual servers. */
    vps: Array<VpsTier>;
    /** The tiers of dedicated servers. */
    dedicated: Array<DedicatedTier>;
    /** The data-centre locations. */
    bastions: Array<Bastion>;
    /** The images of operating systems. */
    images: Array<OsImage>;
  } };
  /** Lists the VPS tiers */
  ListVpsTiers: { input: Record<string, never>; answer: Page<VpsTier> };
  /** Lists the tiers of dedicated servers */
  ListDedicatedTiers: { input: Record<string, never>; answer: Page<DedicatedTier> };
  /** Lists the bastions (data-centre locations) */
  ListBastions: { input: Record<string, never>; answer: Page<Bastion> };
  /** Lists the OS images */
  ListOsImages: { input: Record<string, never>; answer: Page<OsImage> };
  /** Shows a tier, a bastion or an image of the catalog */
  GetCatalogItem: { input: {
    /** A code of the catalog. */
    code: string;
  }; answer: VpsTier | DedicatedTier | Bastion | OsImage };
  /** Lists the messages with the operator, newest first */
  ListMessages: { input: {
    /** Entries of a page. */
    limit?: number;
    /** The previous next_cursor. */
    cursor?: string;
    /** Only messages that the caller should still read. */
    unread?: boolean;
  }; answer: Page<Message> };
  /** Writes a message to the operator */
  WriteMessage: { input: {
    /** One line of up to 120 characters. */
    subject: string;
    /** Up to 4,000 characters. */
    body: string;
    /** The thing that the message is about. */
    related?: RelatedInput;
  }; answer: Message };
  /** Marks a message of the operator as read */
  MarkMessageRead: { input: {
    /** The message. */
    id: string;
  }; answer: Message };
  /** Registers an OAuth client (RFC 7591) */
  RegisterOauthClient: { input: {
    /** The widest scope of its tokens: read (default), servers, billing, full, separated by spaces. */
    scope?: string;
    /** client_credentials (default), and refresh_token. */
    grant_types?: Array<string>;
    /** Must be empty: there is no authorization in a browser. */
    response_types?: Array<string>;
    /** client_secret_basic (default) or client_secret_post. */
    token_endpoint_auth_method?: string;
    /** Stored, but not used. */
    redirect_uris?: Array<string>;
    /** A name to recognise the client by. */
    client_name?: string;
    /** The client's site. */
    client_uri?: string;
    /** The client's picture. */
    logo_uri?: string;
    /** The people behind the client. */
    contacts?: Array<string>;
    /** The id of the software. */
    software_id?: string;
    /** The version of the software. */
    software_version?: string;
    /** After proof_of_work_required, and always to an onion service: the challenge, a colon, and a number. The SHA-256 of this text begins with as many zero bits as the second part of the challenge says. */
    proof_of_work?: string;
    /** When the client and all its tokens stop. Default: never. */
    expires_at?: string;
    /** The most that all its tokens together may spend in a calendar month (UTC). Default: the whole balance. */
    spend_limit_usd?: number;
    /** Up to 20 networks (CIDR) that may use its tokens, as a list or with commas. Default: all networks. */
    ip_allowlist?: Array<string> | string;
    /** The code for step_up_required. */
    totp_code?: string;
  }; answer: OauthClient };
  /** Tells the use of a token (RFC 7662) */
  IntrospectOauthToken: { input: {
    /** The token, unless the Authorization header has it. */
    token?: string;
  }; answer: TokenIntrospection };
  /** Lists OAuth clients, newest first */
  ListOauthClients: { input: {
    /** Entries of a page. */
    limit?: number;
    /** The previous next_cursor. */
    cursor?: string;
  }; answer: Page<OauthClientEntry> };
  /** Replaces the secret of an OAuth client */
  RotateOauthClientSecret: { input: {
    /** The client. */
    client_id: string;
    /** The present secret of the client. */
    client_secret: string;
  }; answer: {
    /** The client. */
    client_id: string;
    /** The new secret. Keep it. */
    client_secret: string;
    /** The number of its sessions that ended. */
    tokens_revoked: number;
  } };
  /** Deletes an OAuth client */
  DeleteOauthClient: { input: {
    /** The client. */
    client_id: string;
  }; answer: {
    /** The deleted client. */
    client_id: string;
    /** The number of its sessions that ended. */
    tokens_revoked: number;
  } };
  /** Orders a server and pays its first month from the balance */
  OrderServer: { input: {
    /** The code of a VPS or dedicated tier. */
    service_code: string;
    /** The code of a bastion. Default: the first with stock. */
    region?: string;
    /** The code of an image. */
    os?: string;
    /** Default: a random name. */
    hostname?: string;
    /** Keys of the account. Default: all of them. */
    ssh_key_ids?: Array<string>;
    /** 12 to 72 characters. Default: a random one if there is no SSH key. */
    root_password?: string;
    /** cloud-init user data. */
    user_data?: string;
    /** Up to 20 labels of your own. Keys are lower-case. */
    labels?: Record<string, string>;
    /** Renews itself. Default: true, or false with a spending limit. */
    auto_renew?: boolean;
    /** The highest total price to accept. */
    max_price_usd?: number;
    /** Quotes the order, and orders nothing. */
    dry_run?: boolean;
  }; answer: OrderedServer | Quote };
  /** Lists servers without deleted ones, by default newest first */
  ListServers: { input: {
    /** Entries of a page. */
    limit?: number;
    /** The previous next_cursor. */
    cursor?: string;
    /** Only servers with one of these statuses. */
    status?: Array<'pending' | 'provisioning' | 'running' | 'starting' | 'stopping' | 'stopped' | 'rebooting' | 'rebuilding' | 'resizing' | 'suspended' | 'failed' | 'deleting' | 'deleted'>;
    /** Only servers at these bastions. */
    region?: Array<string>;
    /** Only servers with this hostname. */
    hostname?: string;
    /** Only servers with these labels: k=v,k2!=v. */
    label_selector?: string;
    /** Only those of this day or time, or later. */
    created_since?: string;
    /** Only those before this time, or to this day. */
    created_until?: string;
    /** Default: the newest first. */
    sort?: '-created_at' | 'created_at';
  }; answer: Page<Server> };
  /** Shows one server */
  GetServer: { input: {
    /** The order number of the server. */
    order_number: string;
    /** Answers when the server has this status, or another stable one. */
    wait_for?: 'pending' | 'provisioning' | 'running' | 'starting' | 'stopping' | 'stopped' | 'rebooting' | 'rebuilding' | 'resizing' | 'suspended' | 'failed' | 'deleting' | 'deleted';
    /** The longest wait, in seconds. */
    timeout?: number;
  }; answer: Server };
  /** Changes a server, and starts at most one operation */
  UpdateServer: { input: {
    /** The order number of the server. */
    order_number: string;
    /** The machine takes the new name at its next rebuild. */
    hostname?: string;
    /** Replaces all labels. Keys are lower-case. */
    labels?: Record<string, string>;
    /** Whether the balance pays the next month. */
    auto_renew?: boolean;
    /** Whether the service refuses to delete the server. */
    delete_protection?: boolean;
    /** Replaces all names of the addresses of the server. */
    reverse_dns?: Array<{
      /** An address of the server. */
      ip: string;
      /** The new name of the address. */
      ptr: string;
    }>;
    /** Starts or stops the server. No effect if it is so already. */
    power_state?: 'on' | 'off';
    /** Reset cuts the power. Rebuild erases the disk, and installs an image. */
    action?: 'reboot' | 'reset' | 'rebuild';
    /** Resizes a stopped VPS to a larger tier. The difference for the rest of the month is charged. */
    service_code?: string;
    /** With a rebuild: the image. Default: the present one. */
    os?: string;
    /** With a rebuild: the keys. Default: the present ones. */
    ssh_key_ids?: Array<string>;
    /** With a rebuild: cloud-init user data. Default: none. */
    user_data?: string;
    /** With a rebuild: 12 to 72 characters. Default: a random one if there is no SSH key. */
    root_password?: string;
  }; answer: {
    /** The id of the server. */
    order_number: string;
    /** A virtual server, or a whole machine. */
    kind: 'vps' | 'dedicated' | (string & {});
    /** Lasting: running, stopped, suspended (unpaid or by the operator), failed (refunded), deleted. Passing: pending (paid, not begun), provisioning, starting, stopping, rebooting, rebuilding, resizing, deleting. */
    status: 'pending' | 'provisioning' | 'running' | 'starting' | 'stopping' | 'stopped' | 'rebooting' | 'rebuilding' | 'resizing' | 'suspended' | 'failed' | 'deleting' | 'deleted' | (string & {});
    /** The name that the machine got. */
    hostname: string;
    /** The code of its tier. */
    service_code: string;
    /** The code of its bastion. */
    region: string;
    /** The code of its image. */
    os: string;
    /** Null until it has one. */
    ipv4: string | null;
    /** Null until it has one. */
    ipv6: string | null;
    /** The prefix that is routed to the server. */
    ipv6_prefix: string | null;
    /** The names of its addresses. */
    reverse_dns: Array<{
      /** An address of the server. */
      ip: string;
      /** Its name. */
      ptr: string;
    }>;
    /** The SSH keys that the machine got. */
    ssh_key_ids: Array<string>;
    /** Up to 20 labels: lower-case keys of up to 63 characters, and values of up to 63. */
    labels: Record<string, string>;
    /** Whether the balance pays the next month. */
    auto_renew: boolean;
    /** Whether the service refuses to delete it. */
    delete_protection: boolean;
    /** An amount in US dollars. */
    price_month_usd: number;
    /** The announced price of later months. Null: none is announced. */
    next_price_month_usd: number | null;
    /** The announced price counts for months that begin then or later. */
    next_price_from: string | null;
    /** Null until the server has run. */
    paid_until: string | null;
    /** Why the order or the last operation failed. */
    failure: {
      /** Such as out_of_stock or provisioning_failed. */
      code: string;
      /** The reason in words. */
      message: string;
    } | null;
    /** The sent GB of this calendar month (UTC); null if nothing counts them. */
    traffic_used_gb: number | null;
    /** A time, RFC 3339 in UTC. */
    created_at: string;
    /** A time, RFC 3339 in UTC. */
    updated_at: string;
    /** When to read again; null if no operation runs. */
    poll_after_seconds: number | null;
    /** The charge of a resize. A failed resize gives it back. */
    charged_usd: number;
    /** The given password of a rebuild, or a generated one if there is no SSH key. Only this answer shows it. */
    root_password: string | null;
  } };
  /** Deletes a server for good, in any state */
  DeleteServer: { input: {
    /** The order number of the server. */
    order_number: string;
  }; answer: {
    /** The id of the server. */
    order_number: string;
    /** A virtual server, or a whole machine. */
    kind: 'vps' | 'dedicated' | (string & {});
    /** Lasting: running, stopped, suspended (unpaid or by the operator), failed (refunded), deleted. Passing: pending (paid, not begun), provisioning, starting, stopping, rebooting, rebuilding, resizing, deleting. */
    status: 'pending' | 'provisioning' | 'running' | 'starting' | 'stopping' | 'stopped' | 'rebooting' | 'rebuilding' | 'resizing' | 'suspended' | 'failed' | 'deleting' | 'deleted' | (string & {});
    /** The name that the machine got. */
    hostname: string;
    /** The code of its tier. */
    service_code: string;
    /** The code of its bastion. */
    region: string;
    /** The code of its image. */
    os: string;
    /** Null until it has one. */
    ipv4: string | null;
    /** Null until it has one. */
    ipv6: string | null;
    /** The prefix that is routed to the server. */
    ipv6_prefix: string | null;
    /** The names of its addresses. */
    reverse_dns: Array<{
      /** An address of the server. */
      ip: string;
      /** Its name. */
      ptr: string;
    }>;
    /** The SSH keys that the machine got. */
    ssh_key_ids: Array<string>;
    /** Up to 20 labels: lower-case keys of up to 63 characters, and values of up to 63. */
    labels: Record<string, string>;
    /** Whether the balance pays the next month. */
    auto_renew: boolean;
    /** Whether the service refuses to delete it. */
    delete_protection: boolean;
    /** An amount in US dollars. */
    price_month_usd: number;
    /** The announced price of later months. Null: none is announced. */
    next_price_month_usd: number | null;
    /** The announced price counts for months that begin then or later. */
    next_price_from: string | null;
    /** Null until the server has run. */
    paid_until: string | null;
    /** Why the order or the last operation failed. */
    failure: {
      /** Such as out_of_stock or provisioning_failed. */
      code: string;
      /** The reason in words. */
      message: string;
    } | null;
    /** The sent GB of this calendar month (UTC); null if nothing counts them. */
    traffic_used_gb: number | null;
    /** A time, RFC 3339 in UTC. */
    created_at: string;
    /** A time, RFC 3339 in UTC. */
    updated_at: string;
    /** When to read again; null if no operation runs. */
    poll_after_seconds: number | null;
    /** The amount that goes back to the balance. A dedicated server gets it when its host is wiped. A dedicated order that is being made answers 0, and gets its price then. */
    refunded_usd: number;
  } };
  /** Shows the CPU, memory, disk and network that a server used */
  GetServerMetrics: { input: {
    /** The order number of the server. */
    order_number: string;
    /** The first time. Default: an hour before the last. */
    from?: string;
    /** The last time. Default: now. */
    to?: string;
    /** Minutes are kept for a day, hours for 60 days. Default: minutes, if from is within a day. */
    step?: 'minute' | 'hour';
  }; answer: {
    /** The beginning of the range. */
    from: string;
    /** The end of the range. */
    to: string;
    /** The time between two points. */
    step: 'minute' | 'hour' | (string & {});
    /** Whether the machine is slow until the end of the month. */
    slow: boolean;
    /** The oldest first. Without a reading, none. */
    points: Array<MetricPoint>;
  } };
  /** Adds an SSH public key */
  AddSshKey: { input: {
    /** The content of the .pub file, never the private key. */
    public_key: string;
    /** Default: the comment of the key. */
    name?: string;
    /** The code for step_up_required. */
    totp_code?: string;
  }; answer: SshKey };
  /** Lists SSH keys, newest first */
  ListSshKeys: { input: {
    /** Entries of a page. */
    limit?: number;
    /** The previous next_cursor. */
    cursor?: string;
  }; answer: Page<SshKey> };
  /** Shows one SSH key with its fingerprint */
  GetSshKey: { input: {
    /** The id of the key. */
    id: string;
  }; answer: SshKey };
  /** Deletes an SSH key */
  DeleteSshKey: { input: {
    /** The id of the key. */
    id: string;
  }; answer: {
    /** The id of the deleted thing. */
    id: string;
    /** Always true. */
    deleted: boolean;
  } };
  /** Shows the warrant canary */
  GetCanary: { input: Record<string, never>; answer: Canary };
  /** Shows a signed digest of all audit logs */
  GetAuditDigest: { input: {
    /** Default: the latest. */
    number?: number;
  }; answer: {
    /** A counter from 1 on. */
    number: number;
    /** A time, RFC 3339 in UTC. */
    signed_at: string;
    /** It names the digest before it. A second digest covers the last link of the ledger and of each grown log. */
    signed_text: string;
    /** Digest of the signed text. */
    sha256: string;
    /** The digest before it. */
    previous_sha256: string | null;
    /** Ed25519, 32 bytes in hexadecimal. */
    public_key: string;
    /** Ed25519 over the signed text, in hexadecimal. */
    signature: string;
  } };
  /** Shows the network and its peerings */
  GetPeering: { input: Record<string, never>; answer: {
    /** The number of the autonomous system; null: the network has none. */
    asn: number | null;
    /** The name of the network. */
    name: string;
    /** The set of its routes in the routing registries. */
    irr_as_set: string | null;
    /** Open, Selective, Restrictive or No. */
    policy: string;
    /** The page of the policy. */
    policy_url: string | null;
    /** The address of the network operations centre. */
    noc_email: string | null;
    /** The entry at PeeringDB. */
    peeringdb_url: string | null;
    /** The IPv4 prefixes that a peer should accept. */
    info_prefixes4: number | null;
    /** The IPv6 prefixes that a peer should accept. */
    info_prefixes6: number | null;
    /** The ports at internet exchanges. */
    exchanges: Array<{
      /** The name of the exchange. */
      name: string;
      /** The city of the exchange. */
      city: string;
      /** ISO 3166-1 alpha-2. */
      country: string;
      /** The speed of the port, in Mbit/s. */
      speed_mbps: number;
      /** The IPv4 address of the port. */
      ipv4: string | null;
      /** The IPv6 address of the port. */
      ipv6: string | null;
      /** Whether it peers with the route servers. */
      is_rs_peer: boolean;
      /** Whether the port is up. */
      operational: boolean;
    }>;
    /** The data centres where the network can be reached. */
    facilities: Array<{
      /** The name of the data centre. */
      name: string;
      /** The city of the data centre. */
      city: string;
      /** ISO 3166-1 alpha-2. */
      country: string;
    }>;
    /** A time, RFC 3339 in UTC. */
    updated_at: string;
  } };
  /** Shows the health of the service */
  GetStatus: { input: Record<string, never>; answer: {
    /** none, minor, major or critical. */
    indicator: string;
    /** The indicator in words. */
    description: string;
    /** The parts of the service. */
    components: Array<{
      /** The id of the part, which incidents name. */
      id: string;
      /** The name of the part. */
      name: string;
      /** The code of a bastion. */
      region: string | null;
      /** operational, degraded_performance, partial_outage, major_outage or under_maintenance. */
      status: string;
    }>;
    /** Open incidents. */
    incidents: Array<Incident>;
    /** Maintenances that are planned or in progress. */
    scheduled_maintenances: Array<Incident>;
    /** A time, RFC 3339 in UTC. */
    updated_at: string;
  } };
  /** Registers a URL that receives events */
  CreateWebhook: { input: {
    /** An https URL at a public address. */
    url: string;
    /** *, groups such as server.*, or names such as topup.confirmed. */
    event_filter?: string | Array<string>;
    /** A note for people. */
    description?: string;
    /** The code for step_up_required. */
    totp_code?: string;
  }; answer: {
    /** The id of the webhook. */
    id: string;
    /** The receiver. */
    url: string;
    /** The events that it receives: *, groups such as server.*, or names, with commas. */
    event_filter: string;
    /** The note that its owner gave it. */
    description: string | null;
    /** The service disables it after ten failed deliveries in a row. */
    status: 'enabled' | 'disabled' | (string & {});
    /** endpoint_gone, retries_exhausted, expired, creator_revoked or secret_revoked; null while it is enabled. */
    disabled_reason: string | null;
    /** A time, RFC 3339 in UTC. */
    created_at: string;
    /** When it stops: the expiry of the credential that created it. */
    expires_at?: string;
    /** The delivery of the latest event. */
    last_delivery: WebhookDelivery | null;
    /** The secret for Standard Webhooks. The service shows it only here. */
    secret: string;
  } };
  /** Lists webhooks, newest first, without their secrets */
  ListWebhooks: { input: {
    /** Entries of a page. */
    limit?: number;
    /** The previous next_cursor. */
    cursor?: string;
  }; answer: Page<Webhook> };
  /** Deletes a webhook and its open deliveries */
  DeleteWebhook: { input: {
    /** The id of the webhook. */
    id: string;
  }; answer: {
    /** The id of the deleted thing. */
    id: string;
    /** Always true. */
    deleted: boolean;
  } };
  /** Sends one test call to a webhook now, and shows the result */
  TestWebhook: { input: {
    /** The id of the webhook. */
    id: string;
  }; answer: {
    /** Whether the receiver answered with 2xx. */
    delivered: boolean;
    /** The webhook-id of the test message. */
    event_id: string;
    /** The HTTP status of the answer; null: there was none. */
    response_status: number | null;
    /** Rounded up to a step from 100 to 10,000. */
    duration_ms: number;
    /** refused_address, dns, tls, unreachable or http_status. */
    error: string | null;
  } };
  /** Replaces the secret of a webhook */
  RotateWebhookSecret: { input: {
    /** The id of the webhook. */
    id: string;
    /** The code for step_up_required. */
    totp_code?: string;
  }; answer: {
    /** The id of the webhook. */
    id: string;
    /** The receiver. */
    url: string;
    /** The events that it receives: *, groups such as server.*, or names, with commas. */
    event_filter: string;
    /** The note that its owner gave it. */
    description: string | null;
    /** The service disables it after ten failed deliveries in a row. */
    status: 'enabled' | 'disabled' | (string & {});
    /** endpoint_gone, retries_exhausted, expired, creator_revoked or secret_revoked; null while it is enabled. */
    disabled_reason: string | null;
    /** A time, RFC 3339 in UTC. */
    created_at: string;
    /** When it stops: the expiry of the credential that created it. */
    expires_at?: string;
    /** The delivery of the latest event. */
    last_delivery: WebhookDelivery | null;
    /** The new secret. The service shows it only here. */
    secret: string;
    /** When the secret before it stops signing. Null: it was revoked. */
    previous_secret_until: string | null;
  } };
  /** Lists the events that a webhook can receive */
  ListWebhookEvents: { input: Record<string, never>; answer: Page<{
    /** Its name for event_filter, such as server.running. */
    type: string;
    /** The change, as a sentence. */
    description: string;
    /** The body of a message, with example values. */
    example: unknown;
  }> };
  /** Lists the deliveries of a webhook in 30 days, newest first */
  ListWebhookDeliveries: { input: {
    /** Only deliveries to this webhook. */
    id: string;
    /** Entries of a page. */
    limit?: number;
    /** The previous next_cursor. */
    cursor?: string;
    /** Only deliveries in these states. */
    status?: Array<'pending' | 'delivering' | 'retrying' | 'succeeded' | 'failed'>;
  }; answer: Page<WebhookDelivery> };
  /** Delivers an event again, once a minute at most */
  RedeliverWebhook: { input: {
    /** The id of its webhook. */
    id: string;
    /** The id of the delivery. */
    delivery_id: string;
  }; answer: WebhookDelivery };
}

/** How the SDK calls each operation. */
export const ENDPOINTS = {
  GetAccount: { method: 'GET', path: '/v1/account', query: [], hasBody: false, isKeyed: false },
  GetBalance: { method: 'GET', path: '/v1/account/balance', query: [], hasBody: false, isKeyed: false },
  GetUsage: { method: 'GET', path: '/v1/account/usage', query: ["from","to","limit","cursor"], hasBody: false, isKeyed: false },
  GetAuditLog: { method: 'GET', path: '/v1/account/audit-log', query: ["limit","cursor","action","since","until"], hasBody: false, isKeyed: false },
  SearchAgents: { method: 'GET', path: '/v1/agents/directory', query: ["limit","cursor","q","skill","protocol","verified"], hasBody: false, isKeyed: false },
  PublishAgent: { method: 'POST', path: '/v1/agents/directory', query: [], hasBody: true, isKeyed: true },
  Register: { method: 'POST', path: '/v1/auth/register', query: [], hasBody: true, isKeyed: true },
  Login: { method: 'POST', path: '/v1/auth/login', query: [], hasBody: true, isKeyed: false },
  LoginTotp: { method: 'POST', path: '/v1/auth/login/totp', query: [], hasBody: true, isKeyed: false },
  RefreshTokens: { method: 'POST', path: '/v1/auth/token/refresh', query: [], hasBody: true, isKeyed: true },
  ListSessions: { method: 'GET', path: '/v1/auth/sessions', query: ["limit","cursor"], hasBody: false, isKeyed: false },
  RevokeSession: { method: 'DELETE', path: '/v1/auth/sessions/{token_id}', query: [], hasBody: false, isKeyed: true },
  SetupTotp: { method: 'POST', path: '/v1/auth/totp/setup', query: [], hasBody: true, isKeyed: false },
  EnableTotp: { method: 'POST', path: '/v1/auth/totp/enable', query: [], hasBody: true, isKeyed: false },
  NewRecoveryCodes: { method: 'POST', path: '/v1/auth/totp/recovery-codes', query: [], hasBody: true, isKeyed: false },
  DisableTotp: { method: 'POST', path: '/v1/auth/totp/disable', query: [], hasBody: true, isKeyed: true },
  ChangePassword: { method: 'POST', path: '/v1/auth/password', query: [], hasBody: true, isKeyed: true },
  CreateApiKey: { method: 'POST', path: '/v1/auth/api-keys', query: [], hasBody: true, isKeyed: true },
  ListApiKeys: { method: 'GET', path: '/v1/auth/api-keys', query: ["limit","cursor","status"], hasBody: false, isKeyed: false },
  RevokeApiKey: { method: 'DELETE', path: '/v1/auth/api-keys/{key_id}', query: [], hasBody: false, isKeyed: true },
  ListCoins: { method: 'GET', path: '/v1/billing/coins', query: [], hasBody: false, isKeyed: false },
  ListBonusTiers: { method: 'GET', path: '/v1/billing/bonus-tiers', query: [], hasBody: false, isKeyed: false },
  CreateTopup: { method: 'POST', path: '/v1/billing/topups', query: [], hasBody: true, isKeyed: true },
  ListTopups: { method: 'GET', path: '/v1/billing/topups', query: ["limit","cursor","status","created_since","created_until","sort"], hasBody: false, isKeyed: false },
  GetTopup: { method: 'GET', path: '/v1/billing/topups/{order_number}', query: [], hasBody: false, isKeyed: false },
  CancelTopup: { method: 'POST', path: '/v1/billing/topups/{order_number}/cancel', query: [], hasBody: false, isKeyed: true },
  GetReceipt: { method: 'GET', path: '/v1/billing/topups/{order_number}/receipt', query: [], hasBody: false, isKeyed: false },
  GetMonthlyReceipt: { method: 'GET', path: '/v1/billing/receipts/{month}', query: [], hasBody: false, isKeyed: false },
  GetCatalog: { method: 'GET', path: '/v1/catalog', query: [], hasBody: false, isKeyed: false },
  ListVpsTiers: { method: 'GET', path: '/v1/catalog/vps', query: [], hasBody: false, isKeyed: false },
  ListDedicatedTiers: { method: 'GET', path: '/v1/catalog/dedicated', query: [], hasBody: false, isKeyed: false },
  ListBastions: { method: 'GET', path: '/v1/catalog/bastions', query: [], hasBody: false, isKeyed: false },
  ListOsImages: { method: 'GET', path: '/v1/catalog/images', query: [], hasBody: false, isKeyed: false },
  GetCatalogItem: { method: 'GET', path: '/v1/catalog/{code}', query: [], hasBody: false, isKeyed: false },
  ListMessages: { method: 'GET', path: '/v1/account/messages', query: ["limit","cursor","unread"], hasBody: false, isKeyed: false },
  WriteMessage: { method: 'POST', path: '/v1/account/messages', query: [], hasBody: true, isKeyed: true },
  MarkMessageRead: { method: 'POST', path: '/v1/account/messages/{id}/read', query: [], hasBody: false, isKeyed: true },
  RegisterOauthClient: { method: 'POST', path: '/v1/oauth/register', query: [], hasBody: true, isKeyed: true },
  IntrospectOauthToken: { method: 'GET', path: '/v1/oauth/introspect', query: ["token"], hasBody: false, isKeyed: false },
  ListOauthClients: { method: 'GET', path: '/v1/oauth/clients', query: ["limit","cursor"], hasBody: false, isKeyed: false },
  RotateOauthClientSecret: { method: 'POST', path: '/v1/oauth/clients/{client_id}/rotate-secret', query: [], hasBody: true, isKeyed: true },
  DeleteOauthClient: { method: 'DELETE', path: '/v1/oauth/clients/{client_id}', query: [], hasBody: false, isKeyed: true },
  OrderServer: { method: 'POST', path: '/v1/servers', query: [], hasBody: true, isKeyed: true },
  ListServers: { method: 'GET', path: '/v1/servers', query: ["limit","cursor","status","region","hostname","label_selector","created_since","created_until","sort"], hasBody: false, isKeyed: false },
  GetServer: { method: 'GET', path: '/v1/servers/{order_number}', query: ["wait_for","timeout"], hasBody: false, isKeyed: false },
  UpdateServer: { method: 'PATCH', path: '/v1/servers/{order_number}', query: [], hasBody: true, isKeyed: true },
  DeleteServer: { method: 'DELETE', path: '/v1/servers/{order_number}', query: [], hasBody: false, isKeyed: true },
  GetServerMetrics: { method: 'GET', path: '/v1/servers/{order_number}/metrics', query: ["from","to","step"], hasBody: false, isKeyed: false },
  AddSshKey: { method: 'POST', path: '/v1/ssh-keys', query: [], hasBody: true, isKeyed: true },
  ListSshKeys: { method: 'GET', path: '/v1/ssh-keys', query: ["limit","cursor"], hasBody: false, isKeyed: false },
  GetSshKey: { method: 'GET', path: '/v1/ssh-keys/{id}', query: [], hasBody: false, isKeyed: false },
  DeleteSshKey: { method: 'DELETE', path: '/v1/ssh-keys/{id}', query: [], hasBody: false, isKeyed: true },
  GetCanary: { method: 'GET', path: '/v1/transparency/canary', query: [], hasBody: false, isKeyed: false },
  GetAuditDigest: { method: 'GET', path: '/v1/transparency/audit-digest', query: ["number"], hasBody: false, isKeyed: false },
  GetPeering: { method: 'GET', path: '/v1/transparency/peering', query: [], hasBody: false, isKeyed: false },
  GetStatus: { method: 'GET', path: '/v1/transparency/status', query: [], hasBody: false, isKeyed: false },
  CreateWebhook: { method: 'POST', path: '/v1/webhooks', query: [], hasBody: true, isKeyed: true },
  ListWebhooks: { method: 'GET', path: '/v1/webhooks', query: ["limit","cursor"], hasBody: false, isKeyed: false },
  DeleteWebhook: { method: 'DELETE', path: '/v1/webhooks/{id}', query: [], hasBody: false, isKeyed: true },
  TestWebhook: { method: 'POST', path: '/v1/webhooks/{id}/test', query: [], hasBody: false, isKeyed: true },
  RotateWebhookSecret: { method: 'POST', path: '/v1/webhooks/{id}/rotate-secret', query: [], hasBody: true, isKeyed: true },
  ListWebhookEvents: { method: 'GET', path: '/v1/webhooks/events', query: [], hasBody: false, isKeyed: false },
  ListWebhookDeliveries: { method: 'GET', path: '/v1/webhooks/{id}/deliveries', query: ["limit","cursor","status"], hasBody: false, isKeyed: false },
  RedeliverWebhook: { method: 'POST', path: '/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver', query: [], hasBody: false, isKeyed: true },
} as const;
