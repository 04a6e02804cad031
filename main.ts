/** The composition root: reads the configuration, puts the parts together, starts and stops them. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { join } from 'node:path';
import { type Config, readConfig } from './config.ts';
import { Database } from './entities/database.ts';
import { startEmbeddedPostgres } from './entities/embedded-postgres.ts';
import { newId } from './entities/ids.ts';
import { sweepLogins } from './entities/login-tally.ts';
import { sweepRates, takeRate } from './entities/rate.ts';
import { mintCredential, Vault } from './entities/secrets.ts';
import { internalServer } from './facades/graphql.ts';
import { publicServer } from './facades/http.ts';
import { RateLimits } from './facades/rate-limit.ts';
import { RedisRates } from './facades/rates/redis.ts';
import { resourceRenderer } from './facades/resources.ts';
import { newWebhookSecret, Provisioning } from './provisioning/index.ts';
import { Netboot } from './provisioning/netboot/boot.ts';
import { provisioningServer } from './provisioning/netboot/listener.ts';
import { SimulatedPayments } from './provisioning/payments/drivers/simulated.ts';
import { SimulatedX402 } from './provisioning/payments/drivers/x402/simulated.ts';
import { readGateways } from './provisioning/payments/gateways.ts';
import { enginesOf } from './provisioning/servers/engines.ts';
import { RequestAudit } from './resolvers/audit.ts';
import { Authenticator, watchCredential } from './resolvers/auth/credential.ts';
import { prepareDummy } from './resolvers/auth/password.ts';
import { SharedTallies } from './resolvers/auth/tallies.ts';
import { LoginThrottle } from './resolvers/auth/throttle.ts';
import type { Context } from './resolvers/context.ts';
import { IdempotencyKeys } from './resolvers/idempotency.ts';

export interface Service {
  publicUrl: string;
  internalUrl: string;
  operatorToken: string;
  operatorTokenFile: string | undefined;
  databaseFolder: string | undefined;
  simulated: { machines: boolean; payments: boolean };
  db: Database;
  /** Finishes what is under way, then stops everything. */
  stop(): Promise<void>;
}

/** Starts the service. Whatever fails on the way, what was started before is stopped. */
export async function startService(config: Config): Promise<Service> {
  const stops: (() => Promise<unknown>)[] = [];
  const stopping = new AbortController();
  const stop = async () => {
    stopping.abort();
    for (const one of stops.splice(0).reverse()) await one();
  };
  try {
    return { ...(await compose(config, stopping.signal, (one) => stops.push(one))), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function compose(
  config: Config,
  stopping: AbortSignal,
  onStop: (stop: () => Promise<unknown>) => void,
): Promise<Omit<Service, 'stop'>> {
  mkdirSync(config.dataDir, { recursive: true });
  const operatorToken = config.operatorToken ?? kept(config, 'operator-token', () => mintCredential('op'));
  const secretKey =
    config.secretKey ??
    kept(config, 'secret-key', () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64'));
  const vault = new Vault(Buffer.from(secretKey, 'base64'));

  const embedded = config.databaseUrl ? undefined : await startEmbeddedPostgres(config.dataDir);
  if (embedded) onStop(embedded.stop);
  const db = await Database.open(config.databaseUrl ?? embedded!.url, { poolSize: config.databasePoolSize });
  onStop(() => db.close());

  const gateways = config.paymentsFile ? readGateways(config.paymentsFile) : simulatedGateways(config);
  const provisioning = new Provisioning({
    db,
    vault,
    drivers: enginesOf(config, db, vault),
    ...gateways,
    pollSeconds: config.pollSeconds,
    allowCidrs: config.webhookAllowCidrs,
    render: resourceRenderer(),
    reverseDns: reverseDnsOf(config),
  });
  refuseSimulated(config, provisioning);
  await provisioning.prepare();
  if (config.webhookAllowCidrs.length)
    console.log(`Webhooks may call what is not public: ${config.webhookAllowCidrs.join(', ')}`);
  if (config.roles.has('worker')) {
    await provisioning.schedule();
    const worker = provisioning.newWorker({ leaseSeconds: config.leaseSeconds });
    worker.start();
    onStop(() => worker.stop());
  }

  if (config.provisioningPort) {
    const server = provisioningServer({ netboot: new Netboot(db, vault), folder: config.netbootDir, onError: report });
    await listen(server, config.provisioningPort, config.provisioningHost, onStop);
  }

  const audit = new RequestAudit(db);
  onStop(() => audit.flush());
  const auditRequest: RequestAudit['add'] = (caller, request) => audit.add(caller, request);
  const authenticator = new Authenticator(db, operatorToken);
  const { limits, publicUrl } = config;
  const logins = loginsOf(config, db, vault);
  const contextOf = ({
    requestId = newId('req'),
    ...request
  }: Pick<Context, 'viewer' | 'userAgent' | 'address' | 'signal' | 'setHeader'> & { requestId?: string }): Context => ({
    db,
    provisioning,
    vault,
    limits,
    stopping,
    publicUrl,
    logins,
    requestId,
    ...request,
  });
  const authenticate = (authorization: string | undefined, address: string | null) =>
    authenticator.fromHeader(authorization, address);
  const internal = internalServer({
    authenticate,
    contextOf,
    auditRequest,
    watchCredential: (viewer, ended) => watchCredential(db, viewer, ended),
    ready: () =>
      db.query('select 1').then(
        () => true,
        () => false,
      ),
    onError: report,
  });
  await listen(internal, config.internalPort, config.internalHost, onStop);

  if (config.roles.has('api')) {
    await prepareDummy();
    const keys = new IdempotencyKeys(db, vault);
    const sweeper = setInterval(() => {
      void Promise.all([keys.sweep(), sweepRates(db), sweepLogins(db), provisioning.x402?.sweep()]).catch(report);
    }, SWEEP_MS).unref();
    onStop(async () => clearInterval(sweeper));
    const app = await publicServer({
      authenticate,
      contextOf,
      once: (request, work) => keys.once(request, work),
      rateLimits: rateLimitsOf(config, db, vault, onStop),
      trustedProxies: config.trustedProxies,
      mcpSecret: vault.derive('mcp'),
      watchCredential: (viewer, ended) => watchCredential(db, viewer, ended),
      publicUrl,
      newRequestId: () => newId('req'),
      auditRequest,
      onError: report,
    });
    await app.listen({ port: config.port, host: config.host });
    onStop(() => app.close());
  }
  return {
    publicUrl,
    internalUrl: `http://${config.internalHost}:${config.internalPort}`,
    operatorToken,
    operatorTokenFile: config.operatorToken ? undefined : join(config.dataDir, 'operator-token'),
    databaseFolder: embedded?.folder,
    simulated: provisioning.simulated,
    db,
  };
}

/** Undefined: names of addresses are told to nobody. */
function reverseDnsOf(config: Config) {
  const { reverseDnsUrl: url, reverseDnsSecret } = config;
  return url ? { url, secret: reverseDnsSecret ?? kept(config, 'reverse-dns-secret', newWebhookSecret) } : undefined;
}

/** Nobody is paid: whoever tops up has what he asked for. */
const simulatedGateways = ({ simulatedPaymentSeconds, dataDir }: Config) => ({
  payments: [new SimulatedPayments({ confirmSeconds: simulatedPaymentSeconds })],
  x402: new SimulatedX402({ folder: join(dataDir, 'x402') }),
});

/** Nobody shall buy what is not there with real money, or what is there with money that is not. */
function refuseSimulated({ lxc, dedicatedDriver, paymentsFile, allowSimulated }: Config, { simulated }: Provisioning) {
  const isReal = lxc !== undefined || dedicatedDriver !== 'simulated' || paymentsFile !== undefined;
  if (!isReal || allowSimulated || !(simulated.machines || simulated.payments)) return;
  const what = [simulated.machines && 'machines', simulated.payments && 'payments'].filter(Boolean).join(' and ');
  throw new Error(`Some ${what} are simulated beside real ones: set ALLOW_SIMULATED=true if that is meant.`);
}

/** How often what has expired is deleted. */
const SWEEP_MS = 60_000;

async function listen(server: Server, port: number, host: string, onStop: (stop: () => Promise<unknown>) => void) {
  await new Promise<void>((done, fail) => server.once('error', fail).listen(port, host, done));
  onStop(
    () =>
      new Promise((done) => {
        server.close(done);
        server.closeAllConnections();
      }),
  );
}

function rateLimitsOf(config: Config, db: Database, vault: Vault, onStop: (stop: () => Promise<unknown>) => void) {
  const { rateLimitStore, redisUrl, rateLimits: quotas } = config;
  const redis = rateLimitStore === 'redis' ? new RedisRates(redisUrl!) : undefined;
  if (redis) onStop(async () => redis.close());
  const take = (name: string, perMinute: number, perHour: number) => takeRate(db, name, perMinute, perHour);
  const shared = redis ?? (rateLimitStore === 'postgres' ? { take } : undefined);
  return new RateLimits({ quotas, secret: vault.derive('rate limits'), shared, onError: report });
}

/** Counted together where calls are; in the database also with Redis, for a login needs the database anyway. */
function loginsOf({ rateLimitStore, loginFailuresMax }: Config, db: Database, vault: Vault) {
  if (rateLimitStore === 'memory') return new LoginThrottle(loginFailuresMax);
  return new LoginThrottle(loginFailuresMax, new SharedTallies(db, report), vault.derive('logins'));
}

/** Where faults of ours go. */
const report = (fault: unknown) => console.error(fault);

/** A secret of the installation, made on first start and kept in a file that only its owner can read. */
function kept({ dataDir }: Config, name: string, make: () => string): string {
  const file = join(dataDir, name);
  if (!existsSync(file)) writeFileSync(file, `${make()}\n`, { mode: 0o600, flag: 'wx' });
  return readFileSync(file, 'utf8').trim();
}

function announce(
  { publicUrl, internalUrl, operatorTokenFile, databaseFolder, simulated }: Service,
  roles: Config['roles'],
) {
  const lines = [
    ['REST', `${publicUrl}/v1`],
    ['OpenAPI', `${publicUrl}/v1/openapi.json`],
    ['Reference', `${publicUrl}/docs`],
    ['MCP', `${publicUrl}/mcp`],
    ['GraphiQL', `${internalUrl}/graphql`],
    ['Operator token', operatorTokenFile ?? 'OPERATOR_TOKEN'],
    ['Database', databaseFolder ?? 'DATABASE_URL'],
  ];
  console.log(`\nFreehold is running (${[...roles].join(' and ')}).\n`);
  for (const [name, value] of lines) console.log(`  ${name!.padEnd(16)}${value}`);
  if (simulated.machines)
    console.log('\n  Machines are SIMULATED, all or those without a driver of their own: these servers run nowhere.');
  if (simulated.payments) console.log('  Payments are SIMULATED: top-ups confirm by themselves, and no coin moves.');
  console.log('');
}

/** Stops on the signals of supervisors and terminals, also when they come during the start: then once it has started. */
function stopOnSignal(starting: Promise<Service>) {
  let askedAt: number | undefined;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      // Whoever asks twice does not want to wait. One Ctrl-C comes twice: from the terminal, and from npm.
      if (askedAt !== undefined && performance.now() - askedAt > 1_000) process.exit(1);
      if (askedAt !== undefined) return;
      askedAt = performance.now();
      // What fails to start says so itself, and ends by itself.
      void starting.then(
        (service) => service.stop().then(() => process.exit(0)),
        () => {},
      );
    });
  }
}

if (import.meta.main) {
  try {
    const config = readConfig();
    const starting = startService(config);
    stopOnSignal(starting);
    announce(await starting, config.roles);
  } catch (error) {
    console.error(`Freehold cannot start. ${error instanceof Error ? error.message : error}`);
    process.exit(1);
  }
}
