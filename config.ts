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
  /** What makes dedicated servers. */
  dedicatedDriver: (typeof DEDICATED_DRIVERS)[number];
  /** The inventory of the driver `bmc`. */
  bmcBoxesFile: string | undefined;
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
  limits: typeof DEFAULT_LIMITS;
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
  const port = number('PORT', 3000, 1, 65_535);
  const dataDir = resolve(given('DATA_DIR') ?? 'data');
  const dedicatedDriver = DEDICATED_DRIVERS.find((name) => name === (given('DEDICATED_DRIVER') ?? 'simulated'));
  if (!dedicatedDriver) throw wrong('DEDICATED_DRIVER', DEDICATED_DRIVERS.join(', '));
  const bmcBoxesFile = given('BMC_BOXES_FILE');
  if (dedicatedDriver === 'bmc' && !bmcBoxesFile) throw wrong('BMC_BOXES_FILE', 'a file, with DEDICATED_DRIVER=bmc');
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
    dedicatedDriver,
    bmcBoxesFile: bmcBoxesFile && resolve(bmcBoxesFile),
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
    limits: Object.fromEntries(
      Object.entries(DEFAULT_LIMITS).map(([name, fallback]) => [
        name,
        number(limitVariable(name), fallback, 1, 1_000_000),
      ]),
    ) as typeof DEFAULT_LIMITS,
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
