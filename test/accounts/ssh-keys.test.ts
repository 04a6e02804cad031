import { describe, expect, it } from 'vitest';
import { startFreehold } from '../setup/freehold.ts';

const { newAccount } = await startFreehold({
  LIMIT_SSH_KEYS: '3',
  LIMIT_PENDING_TOPUPS: '2',
  SIMULATED_PAYMENT_SECONDS: '3600',
});
const KEYS = [
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/ ada@laptop',
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAtf29R2oqEL0j49mOzngviMOahjgH8Ed42butMPobDe',
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOjbHPa/G/F5L/Ofke1pT5q6ouKLPzdkq38/tQzNiKhX',
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEWCpYpfL6Rvwm3Z2Dn9XEyxE/5hBza4k8f8s2bH1UoG',
];

describe('SSH keys', () => {
  it('are the same object after a second addition, even by twenty requests at once', async () => {
    const { rest } = await newAccount();
    const added = await Promise.all(
      Array.from({ length: 20 }, () => rest('POST', '/v1/ssh-keys', { public_key: KEYS[0] })),
    );
    expect(new Set(added.map(({ body }) => body.id)).size).toBe(1);
    expect(added[0]!.body).toMatchObject({
      name: 'ada@laptop',
      type: 'ssh-ed25519',
      bits: 256,
      public_key: KEYS[0]!.replace(' ada@laptop', ''),
    });
    expect((await rest('POST', '/v1/ssh-keys', { public_key: KEYS[0], name: 'another name' })).body).toEqual(
      added[0]!.body,
    );
  });

  it('are readable and deletable only for their owner', async () => {
    const [mine, theirs] = [await newAccount(), await newAccount()];
    const { body: key } = await mine.rest('POST', '/v1/ssh-keys', { public_key: KEYS[1], name: 'one' });
    expect((await mine.rest('GET', `/v1/ssh-keys/${key.id}`)).body).toEqual(key);
    for (const method of ['GET', 'DELETE'])
      expect((await theirs.rest(method, `/v1/ssh-keys/${key.id}`)).body.code).toBe('not_found');
    expect((await mine.rest('DELETE', `/v1/ssh-keys/${key.id}`)).body).toEqual({ id: key.id, deleted: true });
    expect((await mine.rest('GET', '/v1/ssh-keys')).body).toEqual({ data: [], next_cursor: null, has_more: false });
    expect((await mine.rest('DELETE', `/v1/ssh-keys/${key.id}`)).status).toBe(404);
  });

  it('stay within the limit of the account', async () => {
    const { rest } = await newAccount();
    for (const public_key of KEYS.slice(0, 3))
      expect((await rest('POST', '/v1/ssh-keys', { public_key })).status).toBe(200);
    expect((await rest('POST', '/v1/ssh-keys', { public_key: KEYS[3] })).body.code).toBe('ssh_key_limit_reached');
    expect((await rest('POST', '/v1/ssh-keys', { public_key: KEYS[2] })).status).toBe(200);
  });
});
