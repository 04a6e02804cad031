/**
 * `npm start`: starts the embedded database, and loads the service meanwhile. Each takes about a second, and a service that
 * was killed shall be back soon.
 */
import { enableCompileCache, flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { type Config, readConfig } from './config.ts';
import { type Arrival, type EmbeddedPostgres, startEmbeddedPostgres } from './entities/database/embedded-postgres.ts';
import type { Service } from './main.ts';

/** What an operator is told of how the database came. */
const ARRIVALS: Record<Arrival, string> = {
  started: 'it was started',
  recovered: 'it had crashed, and recovered',
  adopted: 'it still ran',
};

try {
  // Half of the time that modules take is their compilation. Where the folder cannot be written, they are compiled again.
  enableCompileCache(join(import.meta.dirname, 'node_modules', '.cache', 'node'));
  const config = readConfig();
  const starting = start(config);
  stopOnSignal(starting);
  announce(await starting, config.roles);
  flushCompileCache(); // a process that is killed would not write it
} catch (error) {
  console.error(`Freehold cannot start. ${error instanceof Error ? error.message : error}`);
  process.exit(1);
}

async function start(config: Config): Promise<Service> {
  const database = config.databaseUrl ? undefined : await launchDatabase(config.dataDir);
  const { startService } = await import('./main.ts');
  return startService(config, database?.answers);
}

/** Is over as soon as PostgreSQL works alone: loading modules keeps this process from everything else. */
async function launchDatabase(dataDir: string): Promise<{ answers: Promise<EmbeddedPostgres> }> {
  const waiting = Promise.withResolvers<void>();
  const answers = startEmbeddedPostgres(dataDir, [], waiting.resolve);
  await Promise.race([waiting.promise, answers]);
  answers.catch(() => {}); // the service says so when it has been loaded
  return { answers };
}

function announce({ publicUrl, internalUrl, operatorTokenFile, embedded, simulated }: Service, roles: Config['roles']) {
  const lines = [
    ['REST', `${publicUrl}/v1`],
    ['OpenAPI', `${publicUrl}/v1/openapi.json`],
    ['Reference', `${publicUrl}/docs`],
    ['MCP', `${publicUrl}/mcp`],
    ['GraphiQL', `${internalUrl}/graphql`],
    ['Operator token', operatorTokenFile ?? 'OPERATOR_TOKEN'],
    ['Database', embedded?.folder ?? 'DATABASE_URL'],
    ['Start', startOf(embedded)],
  ];
  console.log(`\nFreehold is running (${[...roles].join(' and ')}).\n`);
  for (const [name, value] of lines) console.log(`  ${name!.padEnd(16)}${value}`);
  if (simulated.machines)
    console.log('\n  Machines are SIMULATED, all or those without a driver of their own: these servers run nowhere.');
  if (simulated.payments) console.log('  Payments are SIMULATED: top-ups confirm by themselves, and no coin moves.');
  console.log('');
}

/** How long the start took, and what became of the database. */
function startOf(embedded: EmbeddedPostgres | undefined): string {
  const whole = `${process.uptime().toFixed(1)} s`;
  if (!embedded) return whole;
  return `${whole}; the database answered after ${embedded.seconds.toFixed(1)} s: ${ARRIVALS[embedded.arrival]}`;
}

/** Stops on the signals of supervisors and terminals, also when they come during the start: then once it has started. */
function stopOnSignal(starting: Promise<Service>) {
  let askedAt: number | undefined;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      // A second signal ends the process at once. One Ctrl-C comes twice: from the terminal, and from npm.
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
