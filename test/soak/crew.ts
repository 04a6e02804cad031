/** The clients of one account, which all work on it at the same time. */
import { type Account, must, type Opening } from './account.ts';
import type { Actor, Operation, Weighed } from './actor.ts';
import type { ApiClient } from './api-client.ts';
import { Chance } from './chance.ts';
import { KEY_OPERATIONS, SSH_KEY_OPERATIONS } from './key-operations.ts';
import { McpClient } from './mcp-client.ts';
import { MONEY_OPERATIONS } from './money-operations.ts';
import { newTokens, OAUTH_OPERATIONS, registerClient } from './oauth-operations.ts';
import { RestClient } from './rest-client.ts';
import { SERVER_OPERATIONS } from './server-operations.ts';
import { SESSION_OPERATIONS } from './session-operations.ts';

export interface Member extends Actor {
  operations: Weighed<Operation>;
}

const SHOPPING = [...SERVER_OPERATIONS, ...MONEY_OPERATIONS, ...SSH_KEY_OPERATIONS];

/** A new password of the owner revokes the tokens of OAuth clients. */
const REVOKED = ['revoked_credential'];

export async function newCrew(account: Account, opening: Opening, seed: number): Promise<Member[]> {
  const { who, urls, measurements, always, number } = opening;
  const member = (role: string, api: ApiClient, operations: Weighed<Operation>): Member => {
    const name = `${role} of account ${number}`;
    let keys = 0;
    const newKey = () => `${role.replaceAll(' ', '-')}-${number}-${++keys}`;
    return { name, account, api, operations, chance: new Chance(seed, name), measurements, urls, always, newKey };
  };
  const options = { who, measurements, urls, always };
  const chance = new Chance(seed, `clients ${number}`);
  const shopKey = () => newKey(account, 'servers billing', { spend_limit_usd: 100_000 });
  const oauth = await registerClient(account, 'full');
  const stranger = new RestClient({ ...options, chance });
  const token = async () => (await newTokens(stranger, oauth)).access_token as string;
  const agent = { ...options, chance, always: [...always, ...REVOKED], credential: await token(), renew: token };
  return [
    member('owner', account.owner, [...SESSION_OPERATIONS, ...OAUTH_OPERATIONS, ...MONEY_OPERATIONS]),
    member('shopper', new RestClient({ ...options, chance, credential: await shopKey() }), SHOPPING),
    member('OAuth client', new RestClient(agent), [...SHOPPING, ...KEY_OPERATIONS]),
    ...(await Promise.all(
      (['old', 'new'] as const).map(async (generation, i) => {
        const url = urls[(number + i) % urls.length]!;
        // One agent may do everything. The other has a limited key.
        const credential = await (i ? newKey(account, 'full') : shopKey());
        const api = await McpClient.connect({ who, measurements, always, url, credential, generation });
        return member(`${generation} MCP client`, api, i ? [...SHOPPING, ...KEY_OPERATIONS] : SHOPPING);
      }),
    )),
  ];
}

const newKey = async ({ owner }: Account, scope: string, limits: object = {}): Promise<string> =>
  (
    await must(owner, 'createApiKey', {
      name: 'soak',
      scope,
      ...limits,
      ...(scope !== 'full' && {
        ip_allowlist: '127.0.0.0/8',
        expires_at: new Date(Date.now() + 86_400_000).toISOString(),
      }),
    })
  ).plaintext;
