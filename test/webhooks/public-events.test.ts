/** A worker delivers public events to the webhooks of all accounts in batches. No number of webhooks stops the operator. */
import { describe, expect, it } from 'vitest';
import { insert } from '../../entities/database/table.ts';
import { SYSTEM } from '../../entities/history/audit.ts';
import type { EventType } from '../../entities/history/event.ts';
import { record } from '../../entities/history/record.ts';
import { newId } from '../../entities/ids.ts';
import { Webhook } from '../../entities/webhooks/webhook.ts';
import { publicEventProcess, publicEventTask } from '../../provisioning/webhooks/public-events.ts';
import { atEnd } from '../setup/end.ts';
import { openShop } from '../setup/shop.ts';

const shop = await openShop(atEnd);
const { db } = shop;

async function newWebhook(accountId: string, eventFilter = ['canary.updated']): Promise<string> {
  const id = newId('whk');
  const webhook = { id, accountId, url: 'https://example.org/', eventFilter, secret: Buffer.from('s') };
  await db.transaction((tx) => insert(tx, Webhook, webhook));
  return id;
}
const delivered = async () =>
  (await db.query<{ webhookId: string }>('select webhook_id from webhook_delivery')).map(({ webhookId }) => webhookId);

/** Runs the steps of the task as a worker does. @returns the webhooks of each batch */
async function spread(
  eventId: string,
  between = async () => {},
  type: EventType = 'canary.updated',
): Promise<string[][]> {
  const { data } = publicEventTask(eventId, type);
  const { start } = publicEventProcess(db, 2).steps;
  const batches: string[][] = [];
  let known: string[] = [];
  for (
    let task = { subject: eventId, data: data as Record<string, unknown>, createdAt: new Date(Date.now() + 60_000) };
    ;
  ) {
    const outcome = await start!(task as never);
    await db.transaction(async (tx) => outcome.commit?.(tx));
    const all = await delivered();
    if (outcome.commit) batches.push(all.filter((id) => !known.includes(id)));
    known = all;
    if (outcome.kind === 'done') return batches;
    if (!outcome.commit) await between();
    task = { ...task, data: { ...task.data, ...outcome.data } };
  }
}

describe('A public event', () => {
  it('reaches accounts that have paid first, and then others, but no suspended account and no other filter', async () => {
    const [free, paid, suspended] = [await shop.account(0n), await shop.account(1_000_000n), await shop.account(1n)];
    await db.query(`update account set suspended_at = now(), suspended_for = 'spam' where id = $1`, [suspended]);
    const ofFree = [await newWebhook(free), await newWebhook(free, ['canary.*']), await newWebhook(free, ['*'])];
    const ofPayer = await newWebhook(paid);
    await newWebhook(suspended);
    await newWebhook(paid, ['server.*']);
    const happening = { type: 'canary.updated', resource: 'canary', actor: SYSTEM } as const;
    const eventId = await db.transaction((tx) => record(tx, 'operator', newId('can'), happening));
    expect(await delivered()).toEqual([]);
    const batches = await spread(eventId);
    expect(batches.map((batch) => batch.toSorted())).toEqual([
      [ofPayer],
      ofFree.slice(0, 2).toSorted(),
      ofFree.slice(2),
    ]);
    expect(await db.query('select event_id from webhook_snapshot')).toEqual([{ eventId }]);
  });

  it('reaches an account that pays between those that have paid and the others', async () => {
    const payer = await shop.account(0n);
    const id = await newWebhook(payer, ['status.changed']);
    const happening = { type: 'status.changed', resource: 'incident', actor: SYSTEM } as const;
    const eventId = await db.transaction((tx) => record(tx, 'operator', newId('inc'), happening));
    await spread(eventId, () => shop.fund(payer, 1_000_000n), 'status.changed');
    const found = await db.query('select webhook_id from webhook_delivery where event_id = $1', [eventId]);
    expect(found).toContainEqual({ webhookId: id });
  });

  it('keeps its row until its deliveries are written', async () => {
    const happening = { type: 'status.changed', resource: 'incident', actor: SYSTEM } as const;
    const eventId = await db.transaction(async (tx) => {
      const id = await record(tx, 'operator', newId('inc'), happening);
      await shop.provisioning.webhooks.spread(tx, id, 'status.changed');
      return id;
    });
    await shop.tick('webhook-retention');
    expect(await db.query('select event_id from webhook_snapshot where event_id = $1', [eventId])).toHaveLength(1);
  });
});

describe('A transaction', () => {
  it('tells of more changes than a call has arguments', async () => {
    const changes = Array.from({ length: 200_000 }, () => ({ kind: 'canary', accountId: '', id: 'x' }) as const);
    const count = await db.transaction(async (tx) => {
      tx.changedAll(changes as never);
      const told = tx.changes.length;
      tx.changes.length = 0;
      return told;
    });
    expect(count).toBe(200_000);
  });
});
