/** The composition root: puts the parts together, starts and stops them. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from './config.ts';
import { reach } from './entities/database/connection.ts';
import { clockAhead, Database } from './entities/database/database.ts';
import type { EmbeddedPostgres } from './entities/database/embedded/postgres.ts';
import { requireOwnDatabase } from './entities/archive/own-database.ts';
import { announcements, log } from './entities/monitoring/log.ts';
import { connectionName } from './entities/secret-key.ts';
import { credentialKind, mintCredential } from './entities/secrets.ts';
import { checkKeys, useKey } from './entities/use-secret-key.ts';
import { readOperations, withFeatures } from './facades/compile/read.ts';
import { resourceRenderer } from './facades/compile/resources.ts';
import { resourceExamples } from './facades/openapi/examples.ts';
import { type OnStop, type Parts, startListeners } from './listeners.ts';
import { newWebhookSecret, Provisioning, type ProvisioningOptions } from './provisioning/index.ts';
import { SimulatedPayments } from './provisioning/payments/drivers/simulated.ts';
import { SimulatedX402 } from './provisioning/payments/drivers/x402/simulated.ts';
import type { Gateways } from './provisioning/payments/gateways.ts';
import { connectBy, hardwareDriversOf } from './provisioning/servers/hardware-drivers.ts';
import { endLeases } from './provisioning/tasks/lease.ts';
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
  const stops: Parameters<OnStop>[0][] = [async () => (await starting?.catch(() => undefined))?.stop()];
  const [leaving, stopping] = [new AbortController(), new AbortController()];
  const end = async () => {
    stopping.abort();
    for (const one of stops.splice(0).reverse()) await one();
  };
  const stop = async () => {
    leaving.abort();
    if (config.drainSeconds) await sleep(config.drainSeconds * 1000);
    await end();
  };
  try {
    const signals = { leaving: leaving.signal, stopping: stopping.signal };
    return { ...(await compose(config, starting, signals, (one) => stops.push(one))), stop };
  } catch (error) {
    await end();
    throw error;
  }
}

async function compose(
  config: Config,
  starting: Promise<EmbeddedPostgres> | undefined,
  signals: Pick<Parts, 'leaving' | 'stopping'>,
  onStop: OnStop,
): Promise<Omit<Service, 'stop'>> {
  log.level = config.logLevel;
  mkdirSync(config.dataDir, { recursive: true });
  await startTraces(config, onStop);
  const operatorToken = operatorTokenOf(config);
  // The database may still be starting, so the parts that do not need it come first.
  const operations = withFeatures(readOperations(schema), config.features);
  const render = resourceRenderer(operations);
  const embedded = await starting;
  const { db, vault } = await openStorage(config, embedded, onStop);
  const provisioning = await prepareProvisioning(config, {
    db,
    vault,
    archives: archivesOf(config, embedded),
    render,
    exampleOf: resourceExamples(operations),
  });
  if (config.roles.has('worker')) await startWorker(config, provisioning, embedded && db, onStop);
  await startListeners({ config, db, vault, provisioning, operations, operatorToken, ...signals }, onStop);
  const { publicUrl, internalHost, internalPort } = config;
  return {
    publicUrl,
    internalUrl: `http://${internalHost}:${internalPort}`,
    operatorToken,
    operatorTokenFile: config.operatorToken ? config.operatorTokenFile : join(config.dataDir, 'operator-token'),
    embedded,
    simulated: provisioning.simulated,
    db,
  };
}

/** Sends traces, if the operator has named a collector. The last ones go when all parts have ended. */
async function startTraces({ traces, roles }: Config, onStop: OnStop): Promise<void> {
  const { exporterOtlpEndpoint: endpoint, exporterOtlpHeaders: headers } = traces;
  if (!endpoint) return;
  const { sendSpans } = await import('./entities/monitoring/collector.ts');
  const resource = {
    'service.name': traces.serviceName,
    'freehold.roles': [...roles].join(),
    ...traces.resourceAttributes,
  };
  onStop(sendSpans({ endpoint, headers, resource, sampler: traces.tracesSampler, ratio: traces.tracesSamplerArg }));
}

function operatorTokenOf(config: Config): string {
  const token = config.operatorToken ?? keptSecret(config, 'operator-token', () => mintCredential('op'));
  if (credentialKind(token) === 'op') return token;
  const source = config.operatorToken ? 'OPERATOR_TOKEN or its file' : join(config.dataDir, 'operator-token');
  throw new Error(
    `${source} has a wrong checksum. Use the operator-token that a service made, or remove this one: ` +
      'the next start makes another.',
  );
}

/** Opens the database and the vault, and checks that they belong together. */
async function openStorage(config: Config, embedded: EmbeddedPostgres | undefined, onStop: OnStop) {
  const { databaseUrl, migrationDatabaseUrl } = config;
  if (migrationDatabaseUrl) await reach('MIGRATION_DATABASE_URL', migrationDatabaseUrl);
  if (databaseUrl) await reach('DATABASE_URL', databaseUrl);
  const url = databaseUrl ?? embedded!.url;
  const ownerUrl = embedded?.ownerUrl ?? migrationDatabaseUrl;
  const vault = await vaultOf(config, (vault) => checkKeys(ownerUrl ?? url, vault));
  const db = await Database.open(url, {
    ...{ name: connectionName(vault), poolSize: config.databasePoolSize, ownerUrl },
    poolerUrl: config.databasePoolerUrl,
  });
  const aheadSeconds = await clockAhead(db);
  if (Math.abs(aheadSeconds) > CLOCK_SECONDS_MAX) log.warn(clockWarning(aheadSeconds));
  if (db.role?.isOwner) log.warn(ownerWarning(db.role.name, migrationDatabaseUrl !== undefined));
  onStop(() => db.close());
  if (config.databaseReadUrl) {
    const { StandbyReads } = await import('./entities/database/standby.ts');
    const reads = await StandbyReads.follow(db, url, config.databaseReadUrl);
    onStop(() => reads.close());
    db.reads = reads;
  }
  await useKey(db, vault);
  await requireOwnDatabase(db);
  return { db, vault };
}

/** The clock of this process and that of PostgreSQL may differ by so much without a warning. */
const CLOCK_SECONDS_MAX = 10;
const clockWarning = (seconds: number): string =>
  `The clock of this process is ${Math.abs(Math.round(seconds))} seconds ${seconds > 0 ? 'ahead of' : 'behind'} that of PostgreSQL. ` +
  'Set both, such as by NTP: credentials end at wrong times, and lists lack entries.';

const ownerWarning = (role: string, isOwnerGiven: boolean) =>
  isOwnerGiven
    ? `The role ${role} of DATABASE_URL is a superuser or owns the tables, so a flaw could change the records. ` +
      'Name a role there that owns nothing, as docs/operate/install.md shows.'
    : `The role ${role} of DATABASE_URL owns the tables, so a flaw could change the records. Set MIGRATION_DATABASE_URL, ` +
      'as docs/operate/install.md shows.';

type Composed = Pick<ProvisioningOptions, 'db' | 'vault' | 'archives' | 'render' | 'exampleOf'>;

async function prepareProvisioning(
  config: Config,
  { db, vault, archives, render, exampleOf }: Composed,
): Promise<Provisioning> {
  const { pollSeconds, webhookAllowCidrs: allowCidrs, webhookDenyCidrs: denyCidrs } = config;
  const provisioning = new Provisioning({
    db,
    vault,
    drivers: await hardwareDriversOf(config, db, vault),
    connect: connectBy(config, vault),
    ...(await gatewaysOf(config)),
    pollSeconds,
    packetsPerSecondMax: config.packetsPerSecondMax,
    allowCidrs,
    denyCidrs,
    archives,
    render,
    exampleOf,
    reverseDns: reverseDnsOf(config),
  });
  refuseSimulated(config, provisioning);
  await provisioning.prepare();
  if (allowCidrs.length) announcements.info(`Webhooks may call non-public addresses: ${allowCidrs.join(', ')}`);
  return provisioning;
}

/** @param embedded the database, if it is embedded */
async function startWorker(
  { leaseSeconds }: Config,
  provisioning: Provisioning,
  embedded: Database | undefined,
  onStop: OnStop,
): Promise<void> {
  for (const warning of await provisioning.servers.check()) log.warn(warning);
  await provisioning.schedule();
  if (embedded) await takeOver(embedded);
  const worker = provisioning.newWorker({ leaseSeconds });
  worker.start();
  onStop(() => worker.stop());
}

/** One process at a time uses an embedded database, so any lease in it belongs to a dead process. */
async function takeOver(db: Database) {
  const tasks = await endLeases(db);
  if (tasks) log.info(`Restarted tasks of a process that died: ${tasks}`);
}

/** Returns undefined if the operator wants no archives, or this process has no worker. */
function archivesOf({ archiveDir: folder, archiveKeepDays, databaseUrl, roles }: Config, embedded?: EmbeddedPostgres) {
  if (!folder || !roles.has('worker')) return undefined;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return { folder, keepDays: archiveKeepDays, url: databaseUrl ?? embedded!.url };
}

/** Returns undefined if the operator has set no receiver of reverse DNS names. */
function reverseDnsOf(config: Config) {
  const { reverseDnsUrl: url, reverseDnsSecret } = config;
  return url
    ? { url, secret: reverseDnsSecret ?? keptSecret(config, 'reverse-dns-secret', newWebhookSecret) }
    : undefined;
}

/** The gateways of the operator's file. Without one, gateways that credit every payment without moving money. */
async function gatewaysOf({ paymentsFile, simulatedPaymentSeconds, dataDir }: Config): Promise<Gateways> {
  if (paymentsFile) return (await import('./provisioning/payments/gateways.ts')).readGateways(paymentsFile);
  return {
    payments: [new SimulatedPayments({ confirmSeconds: simulatedPaymentSeconds })],
    rates: [],
    x402: new SimulatedX402({ folder: join(dataDir, 'x402') }),
  };
}

/** Refuses to sell simulated servers for real money, or real servers for simulated money. */
function refuseSimulated({ lxc, dedicatedDriver, paymentsFile, allowSimulated }: Config, { simulated }: Provisioning) {
  const isReal = lxc !== undefined || ['bmc', 'manual'].includes(dedicatedDriver) || paymentsFile !== undefined;
  if (!isReal || allowSimulated || !(simulated.machines || simulated.payments)) return;
  const what = [simulated.machines && 'machines', simulated.payments && 'payments'].filter(Boolean).join(' and ');
  throw new Error(`Some ${what} are simulated beside real ones. To allow this, set ALLOW_SIMULATED=true.`);
}
