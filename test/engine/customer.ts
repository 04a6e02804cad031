/** The service beside a real engine, and a customer that logs in to the servers. */
import { atEnd } from '../setup/end.ts';
import { eventually } from '../setup/freehold.ts';
import { graphqlClient, type RestClient, type RunningService, restClient, spawnService } from '../setup/spawn.ts';
import { runGuide } from './guide.ts';
import { newKey, ssh } from './lxd.ts';

export interface World {
  service: RunningService;
  operator: ReturnType<typeof graphqlClient>;
}

/** Starts the service with addresses from .100 on and /64s of 2001:db8:79::/56, as in the operator's guide. */
export async function startWorld(
  databaseUrl: string,
  environment: Record<string, string>,
  network: string,
  onEnd: (end: () => Promise<unknown>) => void = atEnd,
): Promise<World> {
  const service = await spawnService({
    DATABASE_URL: databaseUrl,
    ALLOW_SIMULATED: 'true',
    SIMULATED_PAYMENT_SECONDS: '0.05',
    ...environment,
  });
  onEnd(() => service.stop());
  runGuide(service, 'addAddressPool', network);
  return { service, operator: graphqlClient(service.graphql, service.operatorToken) };
}

/** Counts the addresses and prefixes that machines hold, or held until a moment ago. */
export async function heldAddresses({ operator }: World): Promise<number> {
  const { data } = await operator('{ addressPools { held } }');
  return data.addressPools.reduce((sum: number, { held }: { held: number }) => sum + held, 0);
}

/** Runs the checks of the engines now, not at the next tick. */
export async function lookAround({ operator }: World): Promise<void> {
  for (const subject of ['observer', 'driver-health'])
    await operator(`mutation { retryTask(subject: "cron:${subject}") { subject } }`);
}

/** A server as REST shows it. */
export interface Sold {
  order_number: string;
  status: string;
  ipv4: string;
  ipv6: string;
  ipv6_prefix: string;
  failure: { code: string } | null;
}

export interface Customer {
  rest: RestClient;
  balance(): Promise<number>;
  /** Uploads a key. @returns its id */
  upload(publicKey: string): Promise<string>;
  order(more?: object): Promise<string>;
  /** Waits until the server reaches a stable state, this one or another. */
  settled(orderNumber: string, seconds?: number): Promise<Sold>;
  change(orderNumber: string, body: object, status: string, seconds?: number): Promise<Sold>;
}

/** A key pair with an uploaded public half. */
export interface UploadedKey {
  id: string;
  /** The file of the private half. */
  file: string;
}

export async function uploadKey(customer: Customer, name: string): Promise<UploadedKey> {
  const { file, publicKey } = newKey(name);
  return { file, id: await customer.upload(publicKey) };
}

let customers = 0;

export async function newCustomer({ service }: World, usd: number): Promise<Customer> {
  const account = { email: `engine-${++customers}@example.org`, password: 'a password of the engine' };
  const { body } = await restClient(service.url)('POST', '/v1/auth/register', account);
  const rest = restClient(service.url, body.tokens.access_token);
  const expect200 = async (method: string, path: string, given?: object) => {
    const { status, body } = await rest(method, path, given);
    if (status !== 200) throw new Error(`${method} ${path}: ${JSON.stringify(body)}`);
    return body;
  };
  const balance = async () => (await expect200('GET', '/v1/account/balance')).balance_usd as number;
  const settled: Customer['settled'] = (orderNumber, seconds = 120) =>
    eventually(async () => {
      const server = await expect200('GET', `/v1/servers/${orderNumber}`);
      return ['running', 'stopped', 'failed'].includes(server.status) && server;
    }, seconds);
  await expect200('POST', '/v1/billing/topups', { amount_usd: usd, crypto: 'USDC-BASE' });
  await eventually(async () => (await balance()) >= usd);
  return {
    rest,
    balance,
    upload: async (public_key) => (await expect200('POST', '/v1/ssh-keys', { public_key })).id,
    order: async (more) =>
      (await expect200('POST', '/v1/servers', { service_code: 'vps-1', region: 'zrh', ...more })).order_number,
    settled,
    change: async (orderNumber, body, status, seconds) => {
      await expect200('PATCH', `/v1/servers/${orderNumber}`, body);
      const server = await settled(orderNumber, seconds);
      if (server.status !== status || server.failure)
        throw new Error(`${JSON.stringify(body)} led to ${JSON.stringify(server)}`);
      return server;
    },
  };
}

/** Retries the login until it succeeds. @returns the output of the command */
export async function login(address: string, keyFile: string, command: string, seconds = 60): Promise<string> {
  const { output } = await eventually(async () => {
    const output = await ssh(address, keyFile, command);
    return output !== undefined && { output };
  }, seconds);
  return output;
}
