/**
 * Configuration: the only reader of process.env. `readConfig` reads the typed configuration from the table of variables, and
 * `configurationMarkdown` prints the table as docs/operate/configuration.md.
 */
import { join } from 'node:path';
import { VARIABLES } from './config-groups.ts';
import { partsOf, pemFile } from './config-kind.ts';
import { configurationPage, type Environment, type Values, valuesOf } from './config-variable.ts';

type Groups = typeof VARIABLES;
type Storage = Values<Groups['Storage'], ''>;
/** A variable such as DATA_DIR is the member `dataDir`. */
export type Config = ReturnType<typeof readConfig>;

/** @throws Error if the embedded PostgreSQL is in use, and a variable names another */
function refuseAlone({ databaseUrl, migrationDatabaseUrl, databasePoolerUrl, databaseReadUrl }: Storage): void {
  const others = {
    MIGRATION_DATABASE_URL: migrationDatabaseUrl,
    DATABASE_POOLER_URL: databasePoolerUrl,
    DATABASE_READ_URL: databaseReadUrl,
  };
  const name = Object.entries(others).find(([, url]) => url && !databaseUrl)?.[0];
  if (name)
    throw new Error(
      `${name} needs DATABASE_URL, with the role of the service. Set both, or unset both for the embedded PostgreSQL.`,
    );
}

/** @throws Error that names the wrong variable and the expected text */
export function readConfig(environment: Environment = process.env) {
  const read = <Name extends keyof Groups, Prefix extends string = ''>(name: Name, prefix = '' as Prefix) =>
    valuesOf<Groups[Name], Prefix>(VARIABLES[name], environment, prefix);
  const listeners = read('Listeners');
  const storage = read('Storage');
  const dedicated = read('Dedicated servers');
  const { store, ...rateLimits } = read('Rate limits', 'RATE_LIMIT_');
  if (store === 'redis' && !storage.redisUrl)
    throw new Error('RATE_LIMIT_STORE=redis needs REDIS_URL. Set it, or use postgres or memory as the store.');
  refuseAlone(storage);
  if (listeners.onionUrl && !listeners.onionListener)
    throw new Error('ONION_URL needs ONION_LISTENER, where Tor connects. Set both, or unset both.');
  return {
    ...listeners,
    ...storage,
    ...read('Secrets'),
    ...read('Processes'),
    ...read('Simulation'),
    ...read('Payments'),
    ...dedicated,
    ...read('Outgoing calls'),
    ...{ ...read('Logins'), ...read('Registrations') },
    operatorTokenFile: environment.OPERATOR_TOKEN_FILE?.trim() || undefined,
    brand: { ...read('Site', 'SITE_'), securityContact: listeners.securityContact },
    publicUrl: listeners.publicUrl ?? `http://localhost:${listeners.port}`,
    netbootDir: dedicated.netbootDir ?? join(storage.dataDir, 'netboot'),
    rateLimitStore: store ?? (storage.redisUrl ? 'redis' : storage.databaseUrl ? 'postgres' : 'memory'),
    rateLimits,
    traces: read('Traces', 'OTEL_'),
    limits: { ...read('Limits of an account', 'LIMIT_'), unpaidSessionsPerHour: rateLimits.unpaidPerHour },
    lxc: partsOf(environment.LXC_ENDPOINTS ?? '').length ? lxcOf(read('VPS on LXD or Incus', 'LXC_')) : undefined,
  };
}

/** Adds `tls` where an endpoint needs it. */
function lxcOf(values: Values<Groups['VPS on LXD or Incus'], 'LXC_'>) {
  const { clientCertFile, clientKeyFile, serverCertFile, ...rest } = values;
  if (!rest.endpoints.some((one) => one.startsWith('https:'))) return { ...rest, tls: undefined };
  const missing = (name: string): never => {
    throw new Error(`LXC_ENDPOINTS by https need ${name}. Set it to ${pemFile.expected}.`);
  };
  const tls = {
    certificateFile: clientCertFile ?? missing('LXC_CLIENT_CERT_FILE'),
    keyFile: clientKeyFile ?? missing('LXC_CLIENT_KEY_FILE'),
    serverCertificateFile: serverCertFile ?? missing('LXC_SERVER_CERT_FILE'),
  };
  return { ...rest, tls };
}

/** Prints docs/operate/configuration.md. */
export const configurationMarkdown = (): string => configurationPage(VARIABLES);
