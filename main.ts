/** The composition root: puts the parts together, starts and stops them. */
import { mkdirSync } from 'node:fs';
import type { Server } from 'node:http';
import { join } from 'node:path';
import type { Config } from './config.ts';
import { sweepLogins } from './entities/accounts/login-attempt.ts';
import { sweepChallenges } from './entities/accounts/registration.ts';
import { Database } from './entities/database/database.ts';
import type { EmbeddedPostgres } from './entities/database/embedded-postgres.ts';
import { newId } from './entities/ids.ts';
import { sweepRateLimits, takeRateLimits } from './entities/rate-limit.ts';
import { connectionName } from './entities/secret-key.ts';
import { credentialKind, mintCredential, type Vault } from './entities/secrets.ts';
import { checkKeys, useKey } from './entities/use-secret-key.ts';
import { readOperations } from './facades/compile/read.ts';
import { resourceRenderer } from './facades/compile/resources.ts';
import { compiled } from './facades/compile/run.ts';
import { internalServer } from './facades/graphql/listener.ts';
import { circuitServer, listenAt } from './facades/http/circuits.ts';
import { publicServer } from './facades/http/listener.ts';
import { ProxyWatch } from './facades/http/proxies.ts';
import { RateLimits } from './facades/rate-limit/rate-limit.ts';
import { RedisRateLimits } from './facades/rate-limit/redis.ts';
import type { RateLimitStore } from './facades/rate-limit/window.ts';
import { newWebhookSecret, Provisioning } from './provisioning/index.ts';
import { SimulatedPayments } from './provisioning/payments/drivers/simulated.ts';
import { SimulatedX402 } from './provisioning/payments/drivers/x402/simulated.ts';
import { readGateways } from './provisioning/payments/gateways.ts';
import { hardwareDriversOf } from './provisioning/servers/hardware-drivers.ts';
import { Netboot } from './provisioning/servers/netboot/boot.ts';
import { provisioningServer } from './provisioning/servers/netboot/listener.ts';
import { endLeases } from './provisioning/tasks/lease.ts';
import { Authenticator, onCredentialEnd } from './resolvers/accounts/auth/credential.ts';
import { SharedLoginAttempts } from './resolvers/accounts/auth/login-attempts.ts';
import { prepareDummy } from './resolvers/accounts/auth/password.ts';
import { LoginThrottle } from './resolvers/accounts/auth/throttle.ts';
import { RequestAudit } from './resolvers/accounts/request-audit.ts';
import { SecurityLog } from './resolvers/accounts/security-log.ts';
import type { Context } from './resolvers/context.ts';
import { IdempotencyKeys } from './resolvers/idempotency.ts';
import { schema } from './schema/index.ts';
import { keptSecret, vaultOf } from './secret-files.ts';

export interface Service {
  publicUrl: string;
  internalUrl: string;
  operatorToken: string;
  operatorTokenFile: string | undefined;
  embedded: EmbeddedPostgres | undefined;
  simulated: { machines: boolean; payments: boolean };
  db: Database;
  /** Finishes the requests and steps under way, then stops every part. */
  stop(): Promise<void>;
}

/**
 * Starts the service. If a part fails to start, it stops all parts that were started before, the database among them.
 * @param starting the embedded database, whose start is under way; absent if DATABASE_URL names a database
 */
export async function startService(config: Config, starting?: Promise<EmbeddedPostgres>): Promise<Service> {
  const stops: (() => Promise<unknown>)[] = [async () => (await starting?.catch(() => undefined))?.stop()];
  const stopping = new AbortController();
  const stop = async () => {
    stopping.abort();
    for (const one of stops.splice(0).reverse()) await one();
  };
  try {
    return { ...(await compose(config, starting, stopping.signal, (one) => stops.push(one))), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function compose(
  config: Config,
  starting: Promise<EmbeddedPostgres> | undefined,
  stopping: AbortSignal,
  onStop: (stop: () => Promise<unknown>) => void,
): Promise<Omit<Service, 'stop'>> {
  mkdirSync(config.dataDir, { recursive: true });
  const operatorToken = config.operatorToken ?? keptSecret(config, 'operator-token', () => mintCredential('op'));
  if (credentialKind(operatorToken) !== 'op')
    throw new Error(
      `${config.operatorToken ? 'OPERATOR_TOKEN or its file' : join(config.dataDir, 'operator-token')} has a wrong ` +
        'checksum. Use the operator-token that a service made, or remove this one: the next start makes another.',
    );

  // The database may still be starting, so the parts that do not need it come first.
  const operations = readOperations(schema);
  const render = resourceRenderer(operations);
  if (config.roles.has('api')) {
    operations.forEach(compiled);
    await prepareDummy();
  }
  const embedded = await starting;
  const url = config.databaseUrl ?? embedded!.url;
  const ownerUrl = embedded?.ownerUrl ?? config.migrationDatabaseUrl;
  const vault = await vaultOf(config, (vault) => checkKeys(ownerUrl ?? url, vault));
  const db = await Database.open(url, { name: connectionName(vault), poolSize: config.databasePoolSize, ownerUrl });
  if (db.role?.isOwner) console.warn(ownerWarning(db.role.name));
  onStop(() => db.close());
  await useKey(db, vault);

  const gateways = config.paymentsFile ? readGateways(config.paymentsFile) : simulatedGateways(config);
  const provisioning = new Provisioning({
    db,
    vault,
    drivers: hardwareDriversOf(config, db, vault),
    ...gateways,
    pollSeconds: config.pollSeconds,
    allowCidrs: config.webhookAllowCidrs,
    denyCidrs: config.webhookDenyCidrs,
    render,
    reverseDns: reverseDnsOf(config),
  });
  refuseSimulated(config, provisioning);
  await provisioning.prepare();
  if (config.webhookAllowCidrs.length)
    console.log(`Webhooks may call non-public addresses: ${config.webhookAllowCidrs.join(', ')}`);
  if (config.roles.has('worker')) {
    await provisioning.schedule();
    if (embedded) await takeOver(db);
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
  const security = new SecurityLog(db);
  onStop(() => security.flush());
  const authenticator = new Authenticator(db, operatorToken, security);
  const { limits, publicUrl } = config;
  const logins = loginsOf(config, db, vault, security);
  const trustedProxies = config.trustedProxyCidrs;
  const proxyWatch = new ProxyWatch({ publicUrl, trustedProxies, onWarning: (warning) => console.warn(warning) });
  const contextOf = ({
    requestId = newId('req'),
    ...request
  }: Pick<Context, 'viewer' | 'userAgent' | 'address' | 'host' | 'signal' | 'setHeader'> & {
    requestId?: string;
  }): Context => ({
    db,
    provisioning,
    vault,
    limits,
    stopping,
    publicUrl,
    logins,
    registrations: { perMinute: config.registrationsPerMinute, proofBits: config.registrationProofBits },
    listenerWarning: () => proxyWatch.warning,
    security,
    audit,
    requestId,
    ...request,
  });
  const authenticateOn =
    (listener: 'public' | 'internal') => (authorization: string | undefined, address: string | null) =>
      authenticator.fromHeader(authorization, address, listener);
  const internal = internalServer({
    authenticate: authenticateOn('internal'),
    contextOf,
    auditRequest,
    onCredentialEnd: (viewer, ended) => onCredentialEnd(db, viewer, ended),
    ready: () =>
      db.query('select 1').then(
        () => true,
        () => false,
      ),
    onError: report,
  });
  await listen(internal, config.internalPort, config.internalHost, onStop);

  if (config.roles.has('api')) {
    const keys = new IdempotencyKeys(db, vault);
    const sweeper = setInterval(() => {
      void Promise.all([
        keys.sweep(),
        sweepRateLimits(db),
        sweepLogins(db),
        sweepChallenges(db),
        provisioning.payments.x402?.sweep(),
      ]).catch(report);
    }, SWEEP_MS).unref();
    onStop(async () => clearInterval(sweeper));
    const app = await publicServer({
      authenticate: authenticateOn('public'),
      contextOf,
      once: (request, work) => keys.once(request, work),
      rateLimits: rateLimitsOf(config, db, vault, onStop),
      trustedProxies,
      proxyWatch,
      connectionLimits: { perNetwork: config.connectionsMax, perOnion: config.onionConnectionsMax },
      mcpSecrets: vault.deriveAll('mcp'),
      onCredentialEnd: (viewer, ended) => onCredentialEnd(db, viewer, ended),
      publicUrl,
      operations,
      newRequestId: () => newId('req'),
      auditRequest,
      onError: report,
    });
    const { onionListener } = config;
    const onion = onionListener && circuitServer(app);
    await app.listen({ port: config.port, host: config.host });
    onStop(() => app.close());
    if (onion) await listenAt(onion, onionListener);
  }
  return {
    publicUrl,
    internalUrl: `http://${config.internalHost}:${config.internalPort}`,
    operatorToken,
    operatorTokenFile: config.operatorToken ? undefined : join(config.dataDir, 'operator-token'),
    embedded,
    simulated: provisioning.simulated,
    db,
  };
}

/** One process at a time uses an embedded database, so any lease in it belongs to a dead process. */
async function takeOver(db: Database) {
  const tasks = await endLeases(db);
  if (tasks) console.log(`Restarted tasks of a process that died: ${tasks}`);
}

/** Returns undefined if the operator has set no receiver of reverse DNS names. */
function reverseDnsOf(config: Config) {
  const { reverseDnsUrl: url, reverseDnsSecret } = config;
  return url
    ? { url, secret: reverseDnsSecret ?? keptSecret(config, 'reverse-dns-secret', newWebhookSecret) }
    : undefined;
}

/** Gateways that credit every payment without moving money. */
const simulatedGateways = ({ simulatedPaymentSeconds, dataDir }: Config) => ({
  payments: [new SimulatedPayments({ confirmSeconds: simulatedPaymentSeconds })],
  x402: new SimulatedX402({ folder: join(dataDir, 'x402') }),
});

/** Refuses to sell simulated servers for real money, or real servers for simulated money. */
function refuseSimulated({ lxc, dedicatedDriver, paymentsFile, allowSimulated }: Config, { simulated }: Provisioning) {
  const isReal = lxc !== undefined || dedicatedDriver !== 'simulated' || paymentsFile !== undefined;
  if (!isReal || allowSimulated || !(simulated.machines || simulated.payments)) return;
  const what = [simulated.machines && 'machines', simulated.payments && 'payments'].filter(Boolean).join(' and ');
  throw new Error(`Some ${what} are simulated beside real ones. To allow this, set ALLOW_SIMULATED=true.`);
}

/** Milliseconds between two deletions of expired rows. */
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
  const redis = rateLimitStore === 'redis' ? new RedisRateLimits(redisUrl!) : undefined;
  if (redis) onStop(async () => redis.close());
  const take: RateLimitStore['take'] = (all) => takeRateLimits(db, all);
  const shared = redis ?? (rateLimitStore === 'postgres' ? { take } : undefined);
  return new RateLimits({ quotas, secret: vault.derive('rate limits'), shared, onError: report });
}

/** Login attempts live in the store of the rate limits, except Redis: a login needs the database anyway. */
function loginsOf(
  { rateLimitStore, loginFailuresMax: max }: Config,
  db: Database,
  vault: Vault,
  security: SecurityLog,
) {
  const isShared = rateLimitStore !== 'memory';
  const attempts = isShared ? new SharedLoginAttempts(db, report) : undefined;
  const key = isShared ? vault.derive('logins') : undefined;
  return new LoginThrottle(max, attempts, key, (name, code) => security.login(name, code));
}

const ownerWarning = (role: string) =>
  `The role ${role} of DATABASE_URL owns the tables, so a flaw could change the records. Set MIGRATION_DATABASE_URL, ` +
  'as docs/operate/install.md shows.';

/** Logs unexpected errors. */
const report = (fault: unknown) => console.error(fault);
