/** The service beside a real engine, and a customer of it who logs in to what was sold. */
import { Database } from '../../entities/database.ts';
import { eventually } from '../freehold.ts';
import { type RestClient, type RunningService, restClient, spawnService } from '../spawn.ts';
import { ssh } from './lxd.ts';

export interface World {
  service: RunningService;
  db: Database;
}

/** Its addresses are those of a network, from .100 on; machines are given them, and documentation ones never. */
export async function startWorld(
  databaseUrl: string,
  environment: Record<string, string>,
  network: string,
  onEnd: (end: () => Promise<unknown>) => void,
): Promise<World> {
  const service = await spawnService({
    DATABASE_URL: databaseUrl,
    ALLOW_SIMULATED: 'true',
    SIMULATED_PAYMENT_SECONDS: '0.05',
    ...environment,
  });
  onEnd(() => service.stop());
  const db = await Database.open(databaseUrl, { poolSize: 2 });
  onEnd(() => db.close());
  await db.query(
    `insert into address (address, family, region_code, prefix_length, gateway)
      select $1::inet + n, 'IPV4', 'zrh', 24, $1::inet + 1 from generate_series(100, 199) n
      union all select format('2001:db8:%s::/64', to_hex(n))::inet, 'IPV6', 'zrh', 64, null from generate_series(1, 100) n`,
    [network],
  );
  return { service, db };
}

export interface Customer {
  rest: RestClient;
  balance(): Promise<number>;
  /** Uploads a key. @returns its id */
  upload(publicKey: string): Promise<string>;
  order(more?: object): Promise<string>;
  /** Waits until the server is settled, in this state or in another. */
  settled(orderNumber: string, seconds?: number): Promise<{ status: string; ipv4: string }>;
  change(orderNumber: string, body: object, status: string): Promise<{ status: string; ipv4: string }>;
}

let customers = 0;

export async function newCustomer({ service, db }: World, usd: number): Promise<Customer> {
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
  await db.query('update stock set total = 1000');
  return {
    rest,
    balance,
    upload: async (public_key) => (await expect200('POST', '/v1/ssh-keys', { public_key })).id,
    order: async (more) =>
      (await expect200('POST', '/v1/servers', { service_code: 'vps-1', region: 'zrh', ...more })).order_number,
    settled,
    change: async (orderNumber, body, status) => {
      await expect200('PATCH', `/v1/servers/${orderNumber}`, body);
      const server = await settled(orderNumber);
      if (server.status !== status) throw new Error(`${JSON.stringify(body)} led to ${JSON.stringify(server)}`);
      return server;
    },
  };
}

/** Logs in until it succeeds. @returns what the command printed */
export async function login(address: string, keyFile: string, command: string): Promise<string> {
  const { output } = await eventually(async () => {
    const output = await ssh(address, keyFile, command);
    return output !== undefined && { output };
  }, 60);
  return output;
}
