/** The audit log as JSON Lines ends with the credential that reads it. */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { expect, it } from 'vitest';
import { startFreehold } from '../setup/freehold.ts';

const { db, newAccount, publicUrl } = await startFreehold({ ROLES: 'api' });
/** More than the buffers of a connection hold. */
const ENTRIES = 60_000;

it('ends before the last page if the owner revokes the key meanwhile', async () => {
  const { id, rest } = await newAccount();
  const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'stolen', scope: 'read' });
  await db.query(
    `insert into audit_entry (id, account_id, action, actor_type)
      select 'aud_' || lpad(n::text, 26, '0'), $1, 'server.updated', 'system' from generate_series(1, $2::int) as n`,
    [id, ENTRIES],
  );
  const headers = { accept: 'application/x-ndjson', authorization: `Bearer ${key.plaintext}` };
  const request = get(`${publicUrl}/v1/account/audit-log?action=server.updated`, { headers });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  await once(response, 'readable');
  expect((await rest('DELETE', `/v1/auth/api-keys/${key.key_id}`)).status).toBe(200);
  let lines = 0;
  try {
    for await (const chunk of response) lines += String(chunk).split('\n').length - 1;
  } catch {
    // The service ends the connection, so that the reader does not take a part for the whole.
  }
  expect(lines).toBeGreaterThan(0);
  expect(lines).toBeLessThan(ENTRIES);
});
