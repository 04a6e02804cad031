/** The listeners of the service, and the parts that they share. */
import { timingSafeEqual } from 'node:crypto';
import type { Server } from 'node:http';
import type { Config } from './config.ts';
import { sweepLogins } from './entities/accounts/login-attempt.ts';
import { sweepRecoveryChallenges } from './entities/accounts/recovery.ts';
import { sweepChallenges } from './entities/accounts/registration.ts';
import type { Database } from './entities/database/database.ts';
import { ApiError } from './entities/errors.ts';
import { newId } from './entities/ids.ts';
import { log, logFault } from './entities/monitoring/log.ts';
import { REQUEST_SECONDS, REQUESTS } from './entities/monitoring/measures.ts';
import { requestSpans } from './entities/monitoring/traces.ts';
import { sweepRateLimits, takeRateLimits } from './entities/rate-limit.ts';
import { digest, type Vault } from './entities/secrets.ts';
import type { Operation } from './facades/compile/operation.ts';
import type { Authenticate, OnAnswer, OnCredentialEnd } from './facades/compile/run.ts';
import { internalListener } from './facades/graphql/listener.ts';
import { circuitServer, listenAt } from './facades/http/circuits.ts';
import { publicServer } from './facades/http/listener.ts';
import { ProxyWatch } from './facades/http/proxies.ts';
import { refuseDenied } from './facades/rate-limit/rate-headers.ts';
import { type RateLimitOptions, RateLimits } from './facades/rate-limit/rate-limit.ts';
import type { RateLimitStore } from './facades/rate-limit/window.ts';
import type { Provisioning } from './provisioning/index.ts';
import { Authenticator } from './resolvers/accounts/auth/credential.ts';
import { onCredentialEnd } from './resolvers/accounts/auth/credential-end.ts';
import { sweepPendingLogins } from './resolvers/accounts/auth/login.ts';
import { LoginAttempts } from './resolvers/accounts/auth/login-attempts.ts';
import { LoginThrottle } from './resolvers/accounts/auth/throttle.ts';
import { type CountUnpaid, Payers } from './resolvers/accounts/payers.ts';
import { RequestAudit } from './resolvers/accounts/request-audit.ts';
import { SecurityLog } from './resolvers/accounts/security-log.ts';
import { atTurnOf, type Context } from './resolvers/context.ts';
import { IdempotencyKeys } from './resolvers/idempotency.ts';

/** Registers the end of a part. The service ends its parts in the reverse order of their starts. */
export type OnStop = (stop: () => Promise<unknown>) => void;

export interface Parts {
  config: Config;
  db: Database;
  vault: Vault;
  provisioning: Provisioning;
  operations: readonly Operation[];
  operatorToken: string;
  /** Aborts before the service stops. While it drains, it is not ready. */
  leaving: AbortSignal;
  /** Aborts when the service stops. */
  stopping: AbortSignal;
}

/** Starts the listeners of the machines, of the operator, and of the customers. */
export async function startListeners(parts: Parts, onStop: OnStop): Promise<void> {
  const { config } = parts;
  if (config.provisioningPort) await startNetboot(parts, config.provisioningPort, onStop);
  const shared = await sharedBy(parts, onStop);
  await startInternal(parts, shared, onStop);
  if (config.roles.has('api')) await startPublic(parts, shared, onStop);
}

/** Most installations have no machines that boot from the network, so they do without these modules. */
async function startNetboot({ config, db, vault }: Parts, port: number, onStop: OnStop): Promise<void> {
  const [{ Netboot }, { netbootAnswers }, { netbootListener }] = await Promise.all([
    import('./provisioning/servers/netboot/boot.ts'),
    import('./provisioning/servers/netboot/answers.ts'),
    import('./facades/netboot/listener.ts'),
  ]);
  const onError = logFault;
  const boots = netbootAnswers({ netboot: new Netboot(db, vault), folder: config.netbootDir, onError });
  const app = netbootListener({ boots, onError });
  await app.listen({ port, host: addressOf(config.provisioningHost) });
  onStop(() => app.close());
}

type Request = Pick<Context, 'viewer' | 'userAgent' | 'address' | 'host' | 'signal' | 'setHeader'> & {
  requestId?: string;
};

/** The parts that the internal and the public listener share. */
async function sharedBy({ config, db, vault, provisioning, operatorToken, stopping }: Parts, onStop: OnStop) {
  const audit = new RequestAudit(db);
  onStop(() => audit.flush());
  const rateLimits = await rateLimitsOf(config, db, vault, onStop);
  const countUnpaid: CountUnpaid = async (accountId, address, act) =>
    refuseDenied(await rateLimits.takeChange(accountId, address, act));
  const security = new SecurityLog(db, countUnpaid);
  onStop(() => security.flush());
  const authenticator = new Authenticator(db, operatorToken, security);
  const { limits, publicUrl, trustedProxyCidrs: trustedProxies } = config;
  const logins = new LoginThrottle(
    config.loginFailuresMax,
    new LoginAttempts(db, logFault),
    vault.derive('logins'),
    ({ name, address }, code) => security.login(name, code, address),
  );
  const registrations = { perMinute: config.registrationsPerMinute, proofBits: config.registrationProofBits };
  const proxyWatch = new ProxyWatch({ publicUrl, trustedProxies, onWarning: (warning) => log.warn(warning) });
  const tools = {
    ...{ db, provisioning, vault, stopping, publicUrl, logins, registrations, security, countUnpaid },
    backupDaysMax: config.backupDaysMax,
    features: config.features,
    operatorLimitMicros: BigInt(config.operatorLimitUsd) * 1_000_000n,
  };
  /** Makes the contexts of a listener, with tools of its own. */
  const contextWith = (own: Partial<Context>) => {
    const all = { ...tools, listenerWarning: () => proxyWatch.warning, ...own };
    return ({ requestId = newId('req'), ...request }: Request): Context => ({
      ...all,
      limits: { ...limits, ...request.viewer?.accountLimits },
      requestId,
      ...request,
    });
  };
  const watchEnd: OnCredentialEnd = (viewer, ended) => onCredentialEnd(db, viewer, ended);
  const authenticateOn =
    (listener: 'public' | 'internal'): Authenticate =>
    (authorization, address) =>
      authenticator.fromHeader(authorization, address, listener);
  const options = { onCredentialEnd: watchEnd, onError: logFault, onAnswer, openSpan: requestSpans() };
  return { options, contextWith, audit, authenticateOn, proxyWatch, security, rateLimits };
}
type Shared = Awaited<ReturnType<typeof sharedBy>>;

/** Counts an answer, and ends its span. The log has it at the level debug. */
const onAnswer: OnAnswer = ({ facade, operation, status, ms, requestId, span }) => {
  log.debug({ request_id: requestId, facade, operation, status, ms: Math.round(ms) }, 'answered');
  REQUESTS.add(facade, operation, String(status));
  REQUEST_SECONDS.observe(ms / 1000, facade, operation);
  span?.note({
    'freehold.facade': facade,
    'freehold.operation': operation,
    'freehold.request_id': requestId,
    'http.response.status_code': status,
  });
  span?.end({ name: `${facade} ${operation}`, failed: status >= 500 });
};

/** The page of metrics, for the bearer of METRICS_TOKEN and for operators. */
function metricsOf({ config, db, provisioning }: Parts, authenticate: Authenticate) {
  const expected = config.metricsToken && digest(`Bearer ${config.metricsToken}`);
  const load = async () => {
    const { Metrics } = await import('./entities/monitoring/metrics.ts');
    return new Metrics({ db, lanes: Object.keys(provisioning.lanes), networks: provisioning.payments.networks });
  };
  let metrics: ReturnType<typeof load> | undefined;
  return async (authorization: string | undefined, address: string | null) => {
    if (!expected || !timingSafeEqual(digest(authorization ?? ''), expected)) {
      const viewer = await authenticate(authorization, address);
      if (!viewer) throw new ApiError('missing_credential');
      if (viewer.kind !== 'operator') throw new ApiError('insufficient_scope', 'Only operators read the metrics.');
    }
    metrics ??= load();
    return (await metrics).page();
  };
}

async function startInternal(
  parts: Parts,
  { options, contextWith, audit, authenticateOn, rateLimits }: Shared,
  onStop: OnStop,
): Promise<void> {
  const { config, db, leaving } = parts;
  const authenticate = authenticateOn('internal');
  const { server, closeSockets } = internalListener({
    ...options,
    contextOf: contextWith({ audit }),
    authenticate,
    metrics: metricsOf(parts, authenticate),
    admit: async (viewer, address, calls = 1, changes = 0) => {
      if (viewer.kind === 'operator') return;
      for (let call = 0; call < calls; call++)
        refuseDenied(await rateLimits.take(viewer, address ?? '', { isInternal: true }));
      const count = () => rateLimits.takeChange(viewer.accountId, address ?? '', 'change');
      for (let change = 0; change < changes; change++) refuseDenied(await atTurnOf({ viewer, address }, count));
    },
    leaving,
    ready: () =>
      db.query('select 1').then(
        () => true,
        () => false,
      ),
  });
  await listen(server, config.internalPort, config.internalHost, onStop, closeSockets);
}

/**
 * The most connections that the system keeps until the process accepts them. A proxy may open one for each refusal. It would fill
 * the default of 511, and a customer's connection would then take a second.
 */
const BACKLOG = 4_096;

async function startPublic(parts: Parts, shared: Shared, onStop: OnStop): Promise<void> {
  const { config, db, vault, operations } = parts;
  const { publicUrl, onionListener, onionUrl = publicUrl } = config;
  const keys = new IdempotencyKeys(db, vault);
  sweepEachMinute(parts, shared, keys, onStop);
  /** Makes the app of an address. Its answers name no other one. */
  const appAt = (publicUrl: string) =>
    publicServer({
      ...shared.options,
      contextOf: shared.contextWith({ publicUrl }),
      auditRequest: (caller, request) => shared.audit.add(caller, request),
      authenticate: shared.authenticateOn('public'),
      proxyWatch: shared.proxyWatch,
      once: (request, work) => keys.once(request, work),
      rateLimits: shared.rateLimits,
      trustedProxies: config.trustedProxyCidrs,
      connectionLimits: {
        perNetwork: config.connectionsMax,
        perOnion: config.onionConnectionsMax,
        total: config.connectionsTotalMax,
      },
      mcpSecrets: vault.deriveAll('mcp'),
      publicUrl,
      onionUrl: publicUrl === config.publicUrl && onionUrl !== publicUrl ? onionUrl : undefined,
      brand: config.brand,
      operations,
      newRequestId: () => newId('req'),
    });
  const app = await appAt(publicUrl);
  const onionApp = onionListener && onionUrl !== publicUrl ? await appAt(onionUrl) : app;
  const onion = onionListener && circuitServer(onionApp, (warning) => log.warn(warning));
  await app.listen({ port: config.port, host: addressOf(config.host), backlog: BACKLOG });
  onStop(() => app.close());
  if (onionApp !== app) {
    await onionApp.ready();
    // Node looks for slow requests only at servers that listen.
    onionApp.server.emit('listening');
    onStop(() => onionApp.close());
  }
  if (onion) await listenAt(onion, onionListener);
}

/** Fastify would open a second server for `localhost`, which has no guards. */
const addressOf = (host: string): string => (host === 'localhost' ? '127.0.0.1' : host);

/** Deletes expired rows. */
function sweepEachMinute(
  { db, provisioning }: Parts,
  { security }: Shared,
  keys: IdempotencyKeys,
  onStop: OnStop,
): void {
  const sweeper = setInterval(() => {
    void Promise.all([
      keys.sweep(),
      sweepRateLimits(db),
      sweepLogins(db),
      sweepPendingLogins(db, security),
      sweepChallenges(db),
      sweepRecoveryChallenges(db),
      provisioning.payments.x402?.sweep(),
    ]).catch(logFault);
  }, 60_000).unref();
  onStop(async () => clearInterval(sweeper));
}

/** @param closeUpgraded closes the connections that the server has handed over to another protocol */
async function listen(server: Server, port: number, host: string, onStop: OnStop, closeUpgraded = () => {}) {
  await new Promise<void>((done, fail) => server.once('error', fail).listen(port, host, done));
  onStop(
    () =>
      new Promise((done) => {
        server.close(done);
        server.closeAllConnections();
        closeUpgraded();
      }),
  );
}

async function rateLimitsOf(config: Config, db: Database, vault: Vault, onStop: OnStop) {
  const { rateLimitStore, redisUrl, rateLimits: quotas } = config;
  const redis =
    rateLimitStore === 'redis'
      ? new (await import('./facades/rate-limit/redis.ts')).RedisRateLimits(redisUrl!)
      : undefined;
  if (redis) onStop(async () => redis.close());
  const take: RateLimitStore['take'] = (all) => takeRateLimits(db, all);
  const shared = redis ?? (rateLimitStore === 'postgres' ? { take } : undefined);
  const payers = new Payers(db);
  const isPayer: RateLimitOptions['isPayer'] = (accountId, isRead) => payers.has(accountId, isRead);
  return new RateLimits({ quotas, secret: vault.derive('rate limits'), shared, isPayer, onError: logFault });
}
