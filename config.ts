/** Configuration: the only reader of process.env. Everything is optional; set but empty means unset. */
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';

/** How many of each thing an account may have. LIMIT_API_KEYS and so on change them. */
const DEFAULT_LIMITS = {
  apiKeys: 10,
  servers: 25,
  sshKeys: 50,
  webhooks: 10,
  agentEntries: 10,
  pendingTopups: 5,
  sessions: 100,
  oauthClients: 20,
};

const DEDICATED_DRIVERS = ['simulated', 'bmc', 'manual'] as const;

export type Role = 'api' | 'worker';

export interface Config {
  host: string;
  port: number;
  internalHost: string;
  internalPort: number;
  /** How the outside reaches the public listener; without a slash at its end. */
  publicUrl: string;
  dataDir: string;
  /** Absent: an embedded PostgreSQL in dataDir. */
  databaseUrl: string | undefined;
  roles: ReadonlySet<Role>;
  /** Absent: made in dataDir on first start. */
  operatorToken: string | undefined;
  /** 32 bytes, base64. Absent: made in dataDir on first start. */
  secretKey: string | undefined;
  simulatedPaymentSeconds: number;
  simulatedProvisionSeconds: number;
  /** By what coins come in. Absent: payments are simulated. */
  paymentsFile: string | undefined;
  /** What makes dedicated servers. */
  dedicatedDriver: (typeof DEDICATED_DRIVERS)[number];
  /** Prints what port 22 of an address says. Absent: the worker itself connects to dedicated machines. */
  bmcProbeCommand: string | undefined;
  provisioningHost: string;
  /** Of the listener for machines that boot from the network. Absent: there is none. */
  provisioningPort: number | undefined;
  /** What it gives them: vmlinuz, initrd.img, and an image for each system. */
  netbootDir: string;
  /** How long a worker waits before it looks at a machine or an invoice again. */
  pollSeconds: number;
  /** How long a worker may be silent before another takes its work over. */
  leaseSeconds: number;
  databasePoolSize: number;
  /** Where calls are counted: `memory` of this process, or together with other processes. */
  rateLimitStore: 'memory' | 'postgres' | 'redis';
  redisUrl: string | undefined;
  rateLimits: { keyPerMinute: number; keyPerHour: number; publicPerMinute: number };
  /** Addresses or CIDR blocks of proxies whose X-Forwarded-For is believed. */
  trustedProxies: string[];
  /** Failed logins within 15 minutes, for an account and for a network, before others have to wait. */
  loginFailuresMax: number;
  /** Addresses that webhooks may call although they are not public, also without TLS. */
  webhookAllowCidrs: string[];
  /** Where names of addresses are told; absent: nowhere. */
  reverseDnsUrl: string | undefined;
  /** Signs what is told there, as webhooks are signed. Absent: made in dataDir on first start. */
  reverseDnsSecret: string | undefined;
  limits: typeof DEFAULT_LIMITS;
  /** Absent: VPS are simulated. */
  lxc: LxcConfig | undefined;
  /** Whether what is simulated may run beside what is real. */
  allowSimulated: boolean;
}

/** LXD or Incus, one server or a cluster. */
export interface LxcConfig {
  /** `unix:/path` or `https://host:8443`; several of one cluster. */
  endpoints: string[];
  /** PEM files; for https endpoints. */
  tls: { certificateFile: string; keyFile: string; serverCertificateFile: string } | undefined;
  project: string;
  pool: string;
  /** Of the engine, or a bridge of its hosts. */
  network: string;
  nameservers: string[];
  /** Absent: the worker itself connects to the machines. */
  probeCommand: string | undefined;
}

type Environment = Record<string, string | undefined>;

/** @throws Error with the name of a variable and what was expected of it */
export function readConfig(environment: Environment = process.env): Config {
  const given = (name: string) => environment[name]?.trim() || undefined;
  const wrong = (name: string, expected: string) => new Error(`${name} is wrong: expected ${expected}.`);
  const number = (name: string, fallback: number, min: number, max: number, whole = true) => {
    const text = given(name);
    const value = text === undefined ? fallback : Number(text);
    if (!(value >= min && value <= max) || (whole && !Number.isInteger(value))) {
      throw wrong(name, `a ${whole ? 'whole ' : ''}number from ${min} to ${max}`);
    }
    return value;
  };
  const url = (name: string, fallback: string | undefined, protocols: string[]) => {
    const text = given(name) ?? fallback;
    if (text !== undefined && !protocols.includes(URL.parse(text)?.protocol ?? ''))
      throw wrong(name, `a URL with ${protocols.join(' or ')}`);
    return text?.replace(/\/+$/, '');
  };
  const roles = (given('ROLES') ?? 'api,worker').split(',').map((role) => role.trim());
  if (roles.some((role) => role !== 'api' && role !== 'worker'))
    throw wrong('ROLES', 'api, worker, or both with a comma');
  const secretKey = given('SECRET_KEY');
  if (secretKey && Buffer.from(secretKey, 'base64').length !== 32) throw wrong('SECRET_KEY', '32 bytes in base64');
  const operatorToken = given('OPERATOR_TOKEN');
  if (operatorToken && !/^svc_op_[0-9A-Za-z]{38}$/.test(operatorToken)) {
    throw wrong('OPERATOR_TOKEN', 'a token as the service makes it (svc_op_…)');
  }
  const redisUrl = url('REDIS_URL', undefined, ['redis:', 'rediss:']);
  const databaseUrl = url('DATABASE_URL', undefined, ['postgres:', 'postgresql:']);
  const rateLimitStore = given('RATE_LIMIT_STORE') ?? (redisUrl ? 'redis' : databaseUrl ? 'postgres' : 'memory');
  if (!['memory', 'postgres', 'redis'].includes(rateLimitStore))
    throw wrong('RATE_LIMIT_STORE', 'memory, postgres or redis');
  if (rateLimitStore === 'redis' && !redisUrl) throw wrong('RATE_LIMIT_STORE', 'REDIS_URL with redis');
  const trustedProxies = (given('TRUSTED_PROXY_CIDRS') ?? '').split(',').flatMap((one) => one.trim() || []);
  if (!trustedProxies.every(isNetwork)) throw wrong('TRUSTED_PROXY_CIDRS', 'addresses or CIDR blocks with commas');
  const webhookAllowCidrs = (given('WEBHOOK_ALLOW_CIDRS') ?? '').split(',').flatMap((cidr) => cidr.trim() || []);
  if (!webhookAllowCidrs.every((cidr) => cidr.includes('/') && isNetwork(cidr)))
    throw wrong('WEBHOOK_ALLOW_CIDRS', 'networks such as 10.0.0.0/8, with commas');
  const reverseDnsSecret = given('REVERSE_DNS_SECRET');
  if (reverseDnsSecret && !/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/.test(reverseDnsSecret))
    throw wrong('REVERSE_DNS_SECRET', 'whsec_ and 24 to 64 bytes in base64');
  const allowSimulated = given('ALLOW_SIMULATED') ?? 'false';
  if (allowSimulated !== 'true' && allowSimulated !== 'false') throw wrong('ALLOW_SIMULATED', 'true or false');
  const port = number('PORT', 3000, 1, 65_535);
  const dataDir = resolve(given('DATA_DIR') ?? 'data');
  const dedicatedDriver = DEDICATED_DRIVERS.find((name) => name === (given('DEDICATED_DRIVER') ?? 'simulated'));
  if (!dedicatedDriver) throw wrong('DEDICATED_DRIVER', DEDICATED_DRIVERS.join(', '));
  const paymentsFile = given('PAYMENTS_FILE');
  return {
    host: given('HOST') ?? '127.0.0.1',
    port,
    internalHost: given('INTERNAL_HOST') ?? '127.0.0.1',
    internalPort: number('INTERNAL_PORT', 3001, 1, 65_535),
    publicUrl: url('PUBLIC_URL', `http://localhost:${port}`, ['http:', 'https:'])!,
    dataDir,
    databaseUrl,
    roles: new Set(roles as Role[]),
    operatorToken,
    secretKey,
    simulatedPaymentSeconds: number('SIMULATED_PAYMENT_SECONDS', 2, 0, 3600, false),
    simulatedProvisionSeconds: number('SIMULATED_PROVISION_SECONDS', 2, 0, 3600, false),
    paymentsFile: paymentsFile && resolve(paymentsFile),
    dedicatedDriver,
    bmcProbeCommand: given('BMC_PROBE_COMMAND'),
    provisioningHost: given('PROVISIONING_HOST') ?? '127.0.0.1',
    provisioningPort: given('PROVISIONING_PORT') ? number('PROVISIONING_PORT', 0, 1, 65_535) : undefined,
    netbootDir: resolve(given('NETBOOT_DIR') ?? join(dataDir, 'netboot')),
    pollSeconds: number('POLL_SECONDS', 0.5, 0.01, 60, false),
    leaseSeconds: number('LEASE_SECONDS', 30, 1, 3600),
    databasePoolSize: number('DATABASE_POOL_SIZE', 10, 2, 1000),
    rateLimitStore: rateLimitStore as Config['rateLimitStore'],
    redisUrl,
    rateLimits: {
      keyPerMinute: number('RATE_LIMIT_KEY_PER_MINUTE', 120, 1, 1_000_000_000),
      keyPerHour: number('RATE_LIMIT_KEY_PER_HOUR', 3_000, 1, 1_000_000_000),
      publicPerMinute: number('RATE_LIMIT_PUBLIC_PER_MINUTE', 30, 1, 1_000_000_000),
    },
    trustedProxies,
    loginFailuresMax: number('LOGIN_FAILURES_MAX', 10, 1, 1_000_000),
    webhookAllowCidrs,
    reverseDnsUrl: url('REVERSE_DNS_URL', undefined, ['http:', 'https:']),
    reverseDnsSecret,
    limits: Object.fromEntries(
      Object.entries(DEFAULT_LIMITS).map(([name, fallback]) => [
        name,
        number(limitVariable(name), fallback, 1, 1_000_000),
      ]),
    ) as typeof DEFAULT_LIMITS,
    lxc: lxcOf(given, wrong),
    allowSimulated: allowSimulated === 'true',
  };
}

function lxcOf(
  given: (name: string) => string | undefined,
  wrong: (name: string, expected: string) => Error,
): LxcConfig | undefined {
  const list = (name: string) => (given(name) ?? '').split(',').flatMap((one) => one.trim() || []);
  const endpoints = list('LXC_ENDPOINTS');
  if (!endpoints.length) return undefined;
  const isEndpoint = (text: string) => /^unix:\/./.test(text) || URL.parse(text)?.protocol === 'https:';
  if (!endpoints.every(isEndpoint)) throw wrong('LXC_ENDPOINTS', 'unix:/path or https://host:8443, with commas');
  const file = (name: string) => {
    const path = given(name);
    if (!path) throw wrong(name, 'a PEM file, for an endpoint by https');
    return path;
  };
  const remote = endpoints.some((text) => text.startsWith('https:'));
  const nameservers = list('LXC_NAMESERVERS');
  if (!nameservers.every(isIP)) throw wrong('LXC_NAMESERVERS', 'addresses, with commas');
  return {
    endpoints,
    tls: remote
      ? {
          certificateFile: file('LXC_CLIENT_CERT_FILE'),
          keyFile: file('LXC_CLIENT_KEY_FILE'),
          serverCertificateFile: file('LXC_SERVER_CERT_FILE'),
        }
      : undefined,
    project: given('LXC_PROJECT') ?? 'default',
    pool: given('LXC_POOL') ?? 'default',
    network: given('LXC_NETWORK') ?? 'lxdbr0',
    nameservers,
    probeCommand: given('LXC_PROBE_COMMAND'),
  };
}

/** An address, or a block such as 10.0.0.0/8. */
function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const version = isIP(address);
  if (!version || rest.length) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

/** `apiKeys` is LIMIT_API_KEYS. */
const limitVariable = (name: string) => `LIMIT_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
