/** The table of all environment variables. */
import {
  addresses,
  calls,
  choice,
  colour,
  contact,
  count,
  endpoints,
  features,
  flag,
  listenerHere,
  metricsToken,
  networks,
  number,
  onionUrl,
  operatorToken,
  pairs,
  path,
  pemFile,
  port,
  proxies,
  roles,
  sealingKey,
  sealingKeys,
  signingSecret,
  text,
  title,
  url,
  webUrl,
  whole,
} from './config-kind.ts';
import { optional, secret, variable } from './config-variable.ts';

/** Every variable, by group. */
export const VARIABLES = {
  Listeners: {
    HOST: variable(text, '127.0.0.1', 'Address of the public listener: REST, MCP and the site.'),
    PORT: variable(port, '3000', 'Port of the public listener.'),
    PUBLIC_URL: optional(webUrl, '`http://localhost:PORT`', 'The URL at which customers reach the public listener.'),
    CONNECTIONS_MAX: variable(
      count('connections'),
      '100',
      'Connections of one address to the public listener. Through a trusted proxy: its requests under way.',
    ),
    CONNECTIONS_TOTAL_MAX: variable(count('connections'), '10000', 'Connections of all addresses to that listener.'),
    INTERNAL_HOST: variable(text, '127.0.0.1', 'Address of the internal listener: GraphQL and health checks.'),
    INTERNAL_PORT: variable(port, '3001', 'Port of the internal listener.'),
    ONION_LISTENER: optional(
      listenerHere,
      'no such listener',
      'Where Tor connects to an [onion service](install.md#as-an-onion-service), and names the circuit of each caller.',
    ),
    ONION_URL: optional(
      onionUrl,
      '`PUBLIC_URL`',
      'The URL of the onion service. Answers through `ONION_LISTENER` name it and no other.',
    ),
    ONION_CONNECTIONS_MAX: variable(
      count('connections'),
      '1000',
      'Connections of all circuits together to `ONION_LISTENER`. One circuit has `CONNECTIONS_MAX` at most.',
    ),
    SECURITY_CONTACT: optional(contact, 'no such file', 'Where to report a weakness, in `/.well-known/security.txt`.'),
    TRUSTED_PROXY_CIDRS: variable(proxies, '', 'Proxies whose `X-Forwarded-For` header the service believes.'),
  },
  Site: {
    SITE_NAME: variable(title, 'Freehold', 'Your name on the [site](site.md).'),
    SITE_COLOR: variable(
      colour,
      '#1f6f54',
      'Your colour on the site. Pages darken or lighten it until text is readable.',
    ),
    SITE_TERMS_URL: optional(webUrl, 'no link', 'Your terms, to which each page of the site links.'),
  },
  Storage: {
    DATA_DIR: variable(path, 'data', 'Folder of secrets, the embedded database and simulated machines.'),
    DATABASE_URL: secret(
      optional(
        url('postgres:', 'postgresql:'),
        'the embedded PostgreSQL 18',
        'Your own PostgreSQL, version 15 or newer. Several processes may share it.',
      ),
    ),
    MIGRATION_DATABASE_URL: secret(
      optional(
        url('postgres:', 'postgresql:'),
        '`DATABASE_URL`',
        'The same by the [role that owns its tables](install.md#your-own-postgresql). Only migrations use it.',
      ),
    ),
    DATABASE_POOLER_URL: secret(
      optional(
        url('postgres:', 'postgresql:'),
        'no pooler',
        'The same through a [pooler](scaling.md#poolers) in transaction mode, for requests and tasks.',
      ),
    ),
    DATABASE_READ_URL: secret(
      optional(
        url('postgres:', 'postgresql:'),
        'no standby',
        'One [standby](scaling.md#a-standby-for-reads) of `DATABASE_URL`. It answers reads, and misses no commit.',
      ),
    ),
    ARCHIVE_DIR: optional(path, 'no archives', 'Folder to which a worker writes an [archive](archives.md) each day.'),
    ARCHIVE_KEEP_DAYS: variable(count('days'), '14', 'A worker deletes older archives there, except the last one.'),
    BACKUP_DAYS_MAX: variable(count('days'), '7', 'An older [backup](running.md#backups) is an open matter.'),
    DATABASE_POOL_SIZE: variable(whole(2, 1000, 'connections'), '10', 'Database connections of this process.'),
    REDIS_URL: secret(optional(url('redis:', 'rediss:'), 'none', 'Redis or Valkey, where processes count calls.')),
  },
  Secrets: {
    OPERATOR_TOKEN: secret(optional(operatorToken, 'made in `DATA_DIR`', "The operator's credential for GraphQL.")),
    METRICS_TOKEN: secret(
      optional(metricsToken, 'only operators', 'Reads [the metrics](monitoring.md), and nothing else.'),
    ),
    SECRET_KEY: secret(
      optional(sealingKey, 'made in `DATA_DIR`', 'Encrypts the secrets in the database. Do not lose it.'),
    ),
    SECRET_KEY_PREVIOUS: secret(
      variable(
        sealingKeys,
        '',
        'Other keys that open secrets, while you [replace `SECRET_KEY`](security.md#replacing-secret_key).',
      ),
    ),
  },
  Processes: {
    ROLES: variable(roles, 'api,worker', 'The roles of this process. Any number of each may share a database.'),
    FEATURES: variable(features, '', 'Announced endpoints to serve: `PATCH /v1/account`, and `POST /v1/auth/recover`.'),
    POLL_SECONDS: variable(number(0.01, 60, 'seconds'), '0.5', 'The wait before a look at a machine or a top-up.'),
    LEASE_SECONDS: variable(
      whole(1, 3600, 'seconds'),
      '30',
      'How long a worker may be silent before another worker takes over its tasks.',
    ),
    DRAIN_SECONDS: variable(
      whole(0, 600, 'seconds'),
      '0',
      'How long a process that stops still answers. Meanwhile, `/readyz` sends [the proxy](proxies.md) to others.',
    ),
    LOG_LEVEL: variable(
      choice(['error', 'warn', 'info', 'debug']),
      'info',
      'The least level of a line of [the log](monitoring.md#logs). `debug` has a line for each answer.',
    ),
    PACKETS_PER_SECOND_MAX: variable(count('packets'), '50000', 'A VPS that sends more is a [finding](running.md).'),
  },
  Traces: {
    OTEL_EXPORTER_OTLP_ENDPOINT: optional(
      webUrl,
      'no traces',
      'The URL of a collector that takes [traces](monitoring.md#traces) by OTLP over HTTP, without `/v1/traces`.',
    ),
    OTEL_EXPORTER_OTLP_HEADERS: secret(
      variable(pairs, '', 'Headers of each message to it, such as `authorization=Bearer%20…`.'),
    ),
    OTEL_TRACES_SAMPLER: variable(
      choice([
        ...(['always_on', 'always_off', 'traceidratio'] as const),
        ...(['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'] as const),
      ]),
      'parentbased_always_on',
      'The choice of the traces that the service sends.',
    ),
    OTEL_TRACES_SAMPLER_ARG: variable(number(0, 1), '1', 'The part of all traces that a sampler with `ratio` sends.'),
    OTEL_SERVICE_NAME: variable(text, 'freehold', 'The name of the service in its traces.'),
    OTEL_RESOURCE_ATTRIBUTES: variable(
      pairs,
      '',
      'More attributes of this process, such as `deployment.environment.name=test`.',
    ),
  },
  Simulation: {
    VPS_DRIVER: variable(choice(['simulated', 'none']), 'simulated', 'VPS without `LXC_ENDPOINTS`.'),
    SIMULATED_PAYMENT_SECONDS: variable(number(0, 3600, 'seconds'), '2', 'Time until a simulated payment confirms.'),
    SIMULATED_PROVISION_SECONDS: variable(number(0, 3600, 'seconds'), '2', 'Time until a simulated machine runs.'),
    ALLOW_SIMULATED: variable(flag, 'false', 'Lets simulated machines or payments run beside real ones.'),
  },
  Payments: {
    OPERATOR_LIMIT_USD: variable(whole(0, 1e9), '0', 'The limit of [large sums](security.md#large-sums) in USD.'),
    PAYMENTS_FILE: optional(path, 'simulated payments', 'A JSON file of [gateways](payments.md) for coins.'),
  },
  'VPS on LXD or Incus': {
    LXC_ENDPOINTS: variable(
      endpoints,
      '',
      '[LXD or Incus](lxd.md): one server, or several members of one cluster. Unset: see `VPS_DRIVER`.',
    ),
    LXC_CLIENT_CERT_FILE: optional(pemFile, 'none', 'The certificate by which the engine knows the service.'),
    LXC_CLIENT_KEY_FILE: optional(pemFile, 'none', 'The key of that certificate.'),
    LXC_SERVER_CERT_FILE: optional(pemFile, 'none', 'The only certificate of the engine that the service trusts.'),
    LXC_PROJECT: variable(text, 'freehold', 'The project of the machines. Over a socket the driver creates it.'),
    LXC_POOL: variable(text, 'default', 'The storage pool of the machines.'),
    LXC_NETWORK: variable(text, 'lxdbr0', 'A network of the engine, or a bridge of its hosts.'),
    LXC_NAMESERVERS: variable(addresses, '', 'Nameservers of the machines.'),
    LXC_OPEN_MAIL: variable(flag, 'false', 'Lets machines on the network of the engine send mail to port 25.'),
    LXC_PROBE_COMMAND: optional(text, 'the worker connects', 'Prints what port 22 of `{address}` says.'),
  },
  'Dedicated servers': {
    DEDICATED_DRIVER: variable(
      choice(['simulated', 'bmc', 'manual', 'none']),
      'simulated',
      'The driver of [dedicated servers](dedicated.md). With `none` there are none.',
    ),
    PROVISIONING_HOST: variable(text, '127.0.0.1', 'Address of the listener for machines that boot from the network.'),
    PROVISIONING_PORT: optional(port, 'no such listener', 'Port of the listener for machines that boot.'),
    PROVISIONING_URL: optional(
      webUrl,
      '`http://PROVISIONING_HOST:PROVISIONING_PORT`',
      'The URL of that listener for controllers.',
    ),
    NETBOOT_DIR: optional(path, '`DATA_DIR/netboot`', 'Folder of `vmlinuz`, `initrd.img` and an image of each system.'),
  },
  'Outgoing calls': {
    WEBHOOK_ALLOW_CIDRS: variable(networks, '', 'Non-public networks that webhooks may call, also by http.'),
    WEBHOOK_DENY_CIDRS: variable(networks, '', 'Networks that webhooks never call, such as your own public ones.'),
    REVERSE_DNS_URL: optional(
      webUrl,
      'no calls',
      'The service posts each change of a reverse DNS name there: `{"ip", "ptr"}`. `ptr` is null for a removed name.',
    ),
    REVERSE_DNS_SECRET: secret(
      optional(signingSecret, 'made in `DATA_DIR`', 'Signs these calls as webhooks are signed.'),
    ),
  },
  'Rate limits': {
    RATE_LIMIT_STORE: optional(
      choice(['memory', 'postgres', 'redis'], 'memory, postgres or redis'),
      '`redis` with `REDIS_URL`, else `postgres` with `DATABASE_URL`, else `memory`',
      'Where processes count calls. `memory` serves one process and costs no query.',
    ),
    RATE_LIMIT_KEY_PER_MINUTE: variable(calls, '120', 'Calls of one credential in a minute.'),
    RATE_LIMIT_KEY_PER_HOUR: variable(calls, '3000', 'Calls of one credential in an hour.'),
    RATE_LIMIT_ACCOUNT_PER_MINUTE: variable(calls, '600', 'Calls of all credentials of an account in a minute.'),
    RATE_LIMIT_ACCOUNT_PER_HOUR: variable(calls, '12000', 'Calls of all credentials of an account in an hour.'),
    RATE_LIMIT_PUBLIC_PER_MINUTE: variable(calls, '30', 'Calls of one address without a credential in a minute.'),
    RATE_LIMIT_PAGES_PER_MINUTE: variable(calls, '300', 'Pages of the site that one address gets in a minute.'),
    RATE_LIMIT_ONION_PER_MINUTE: variable(
      calls,
      '600',
      'Calls of all circuits of `ONION_LISTENER` together without a credential in a minute.',
    ),
    RATE_LIMIT_UNPAID_PER_HOUR: variable(calls, '60', 'Changes, sessions, refreshes of unpaid or suspended accounts.'),
  },
  Logins: {
    LOGIN_FAILURES_MAX: variable(count('failures'), '10', 'Failed logins in 15 minutes, per account and per network.'),
  },
  Registrations: {
    REGISTRATIONS_PER_MINUTE: variable(count('accounts'), '60', 'New accounts in a minute without a proof of work.'),
    REGISTRATION_PROOF_BITS: variable(whole(1, 40, 'bits'), '20', 'The work of a proof. Each bit doubles it.'),
  },
  'Limits of an account': {
    LIMIT_API_KEYS: variable(count('API keys'), '10', 'Active API keys.'),
    LIMIT_SERVERS: variable(count('servers'), '25', 'Servers.'),
    LIMIT_SSH_KEYS: variable(count('SSH keys'), '50', 'SSH keys.'),
    LIMIT_WEBHOOKS: variable(count('webhooks'), '10', 'Webhooks.'),
    LIMIT_AGENT_ENTRIES: variable(count('entries'), '10', 'Entries in the directory of agents.'),
    LIMIT_AGENT_CHANGES_PER_HOUR: variable(count('changes'), '60', 'Changes of these entries in an hour.'),
    LIMIT_PENDING_TOPUPS: variable(count('top-ups'), '5', 'Top-ups that wait for a payment.'),
    LIMIT_UNPAID_TOPUPS_PER_DAY: variable(count('top-ups'), '30', 'Top-ups that got less than 1 USD, in 24 hours.'),
    LIMIT_OPEN_PAYMENTS: variable(count('payments'), '5', 'Open payments by x402. It is also the limit of each payer.'),
    LIMIT_SESSIONS: variable(count('sessions'), '100', 'Sessions.'),
    LIMIT_OAUTH_CLIENTS: variable(count('clients'), '20', 'OAuth clients.'),
  },
} as const;
