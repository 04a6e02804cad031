/**
 * Starts the embedded database and loads the service at the same time. Each takes about a second, and a
 * killed service should be back soon.
 */
import { flushCompileCache } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { type Config, readConfig } from './config.ts';
import { type Arrival, type EmbeddedPostgres, startEmbeddedPostgres } from './entities/database/embedded/postgres.ts';
import type { Service } from './main.ts';

/** The words for the operator about the start of the database. */
const ARRIVALS: Record<Arrival, string> = {
  started: 'it started normally',
  recovered: 'it had crashed, and recovered',
  adopted: 'it was still running',
};

const loadLog = () => import('./entities/monitoring/log.ts');
process.removeAllListeners('warning').on('warning', async (warning) => (await loadLog()).logWarning(warning));
process.on('uncaughtException', async (fault) => {
  (await loadLog()).logFault(fault);
  process.exit(1);
});

try {
  const config = readConfig();
  const starting = start(config);
  stopOnSignal(starting);
  await announce(await starting, config);
  flushCompileCache(); // a killed process would not write it
} catch (error) {
  (await loadLog()).announcements.fatal(`Freehold cannot start. ${reasonOf(error)}`);
  process.exit(1);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, address, port } = error as NodeJS.ErrnoException & { address?: string; port?: number };
  if (code !== 'EADDRINUSE') return error.message;
  const place = Number(port) > 0 ? `${address}:${port}` : address;
  return `Another process listens on ${place}. Stop it, or set another PORT, INTERNAL_PORT, PROVISIONING_PORT or ONION_LISTENER.`;
}

async function start(config: Config): Promise<Service> {
  const database = config.databaseUrl ? undefined : await launchDatabase(config.dataDir);
  // Modules and the schema stay in memory. A nursery that grows with them would keep 30 MiB of garbage through the rest.
  growNurseryBy(1);
  const { startService } = await import('./main.ts');
  const service = await startService(config, database?.answers);
  // Requests leave garbage, and a small nursery costs them time. So it grows in larger steps than V8's own.
  growNurseryBy(4);
  return service;
}

/** Sets the factor by which V8 grows its nursery, the space of new objects. V8 grows it when as much as its size has survived. */
function growNurseryBy(factor: number): void {
  setFlagsFromString(`--semi-space-growth-factor=${factor}`);
}

/** Resolves as soon as PostgreSQL starts by itself: loading the modules blocks this process from then on. */
async function launchDatabase(dataDir: string): Promise<{ answers: Promise<EmbeddedPostgres> }> {
  const waiting = Promise.withResolvers<void>();
  const answers = startEmbeddedPostgres(dataDir, [], waiting.resolve);
  await Promise.race([waiting.promise, answers]);
  // The service reports the error of a failed start once it is loaded.
  answers.then(exitAtDeath, () => {});
  return { answers };
}

/** Ends this process after its database, so that its supervisor starts both again. */
async function exitAtDeath({ died, logFile }: EmbeddedPostgres): Promise<never> {
  await died;
  (await loadLog()).announcements.fatal(
    `PostgreSQL died, so this process exits. The next start recovers the data. See ${logFile}`,
  );
  process.exit(1);
}

async function announce({ publicUrl, internalUrl, operatorTokenFile, embedded, simulated }: Service, config: Config) {
  const { roles, host, port, onionListener } = config;
  const onion =
    onionListener &&
    ('path' in onionListener ? `unix:${onionListener.path}` : `${onionListener.host}:${onionListener.port}`);
  const customers = [
    ['REST', `${publicUrl}/v1`],
    ['OpenAPI', `${publicUrl}/v1/openapi.json`],
    ['Reference', `${publicUrl}/docs`],
    ['MCP', `${publicUrl}/mcp`],
    ['Listens on', `${host}:${port}${onion ? `, and for Tor on ${onion}` : ''}`],
  ];
  const lines = [
    ...(roles.has('api') ? customers : []),
    ['Console', internalUrl],
    ['GraphiQL', `${internalUrl}/graphql`],
    ['Operator token', operatorTokenFile ?? 'OPERATOR_TOKEN'],
    ['Database', embedded?.folder ?? 'DATABASE_URL'],
    ['Start', startOf(embedded)],
  ];
  const notes = [
    ...(simulated.machines
      ? ['Machines are SIMULATED unless their kind has a driver: simulated servers do not exist.']
      : []),
    ...(simulated.payments ? ['Payments are SIMULATED: top-ups confirm by themselves, without money.'] : []),
  ];
  const title = `Freehold is running (${[...roles].join(' and ')}).`;
  if (!process.stdout.isTTY)
    return (await loadLog()).announcements.info({ ...Object.fromEntries(lines), notes }, title);
  const rows = lines.map(([name, value]) => `  ${name!.padEnd(16)}${value}`);
  console.log(['', title, '', ...rows, '', ...notes.map((note) => `  ${note}`), ''].join('\n'));
}

/** The duration of the start, and how the database started. */
function startOf(embedded: EmbeddedPostgres | undefined): string {
  const whole = `${process.uptime().toFixed(1)} s`;
  if (!embedded) return whole;
  return `${whole}; the database answered after ${embedded.seconds.toFixed(1)} s: ${ARRIVALS[embedded.arrival]}`;
}

/** Stops the service on signals of supervisors and terminals. A signal during the start takes effect after it. */
function stopOnSignal(starting: Promise<Service>) {
  let askedAt: number | undefined;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      // A second signal ends the process at once. One Ctrl-C arrives twice: from the terminal, and from npm.
      if (askedAt !== undefined && performance.now() - askedAt > 1_000) process.exit(1);
      if (askedAt !== undefined) return;
      askedAt = performance.now();
      // A failed start reports its error and ends the process by itself.
      void starting.then(
        (service) => service.stop().then(() => process.exit(0)),
        () => {},
      );
    });
  }
}
