/** A chain of the audit log that somebody broke holds up no other one. */
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { proveAudit } from '../../entities/history/audit-proof.ts';
import { publicKeyOf, signingKeys } from '../../entities/history/audit-signature.ts';
import { newId } from '../../entities/ids.ts';
import { asSuperuser, truncate } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { openShop } from '../setup/shop.ts';
import { VAULT } from '../setup/vault.ts';

const shop = await openShop(atEnd);
const { db } = shop;
beforeEach(() => truncate(db, 'audit_entry, audit_link, audit_unlinked, audit_signature'));

const link = () => shop.tick('audit-links');
const prove = () => proveAudit(db, { publicKeys: signingKeys(VAULT).map(publicKeyOf) });

describe('A chain that somebody broke', () => {
  const entry = (accountId: string) =>
    db.query<{ id: string }>(
      `insert into audit_entry (id, account_id, action, actor_type) values ($1, $2, 'x', 'system') returning id`,
      [newId('aud'), accountId],
    );
  const linkTo = (accountId: string, number: bigint, entryId: string): [string, unknown[]] => [
    'insert into audit_link (account_id, number, entry_id, hash) values ($1, $2, $3, sha256($4))',
    [accountId, number, entryId, 'x'],
  ];

  it('cannot be one that the role of the service broke by links without an entry or out of order', async () => {
    const [{ id } = { id: '' }] = await entry('zz');
    for (const [accountId, number, entryId] of [
      ['zz', 2n ** 63n - 1n, id],
      ['zz', 2n, id],
      ['zz', 1n, 'aud_none'],
      ['other', 1n, id],
    ] as const)
      await expect(db.query(...linkTo(accountId, number, entryId))).rejects.toMatchObject({ code: '23000' });
    await db.transaction(async (tx) => {
      await tx.query('create temporary table audit_entry (id text, account_id text) on commit drop');
      await tx.query(`insert into pg_temp.audit_entry values ('aud_none', 'zz')`);
      await expect(tx.attempt((inner) => inner.query(...linkTo('zz', 1n, 'aud_none')))).rejects.toMatchObject({
        code: '23000',
      });
    });
    await link();
    expect(await prove()).toMatchObject({ entries: 1, faults: [] });
  });

  it('holds up no other chain, and the worker and the proof name it', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    onTestFinished(() => logged.mockRestore());
    await asSuperuser(db, ...linkTo('zz', 2n ** 63n - 1n, 'aud_none'));
    const [{ id } = { id: '' }] = await entry('zz');
    const accountId = newId('acct');
    for (let number = 1; number <= 3; number++) {
      await entry(accountId);
      await link();
      expect(await db.query('select from audit_link where account_id = $1', [accountId])).toHaveLength(number);
    }
    const lines = () => logged.mock.calls.flat().join('\n');
    expect(lines().match(/The worker cannot link audit entries of zz: /g)).toHaveLength(1);
    await asSuperuser(db, `update audit_entry set created_at = now() - interval '2 hours' where id = $1`, [id]);
    const detail = 'Entries that wait for their chain for longer than an hour: 1.';
    expect((await prove()).faults).toEqual([{ accountId: 'zz', entryId: id, detail }]);
    await shop.tick('audit-signature');
    expect(lines()).toContain(`The audit log of zz, from entry ${id}: ${detail}`);
  });
});
