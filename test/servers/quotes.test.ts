/** Quotes of orders, and label selectors. */
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../setup/freehold.ts';

const { newAccount } = await startFreehold();

describe('A dry run', () => {
  it('quotes by the checks of an order, and orders nothing', async () => {
    const account = await newAccount();
    const asked = { service_code: 'ded-2', region: 'ams', dry_run: true };
    const { status, body } = await account.rest('POST', '/v1/servers', asked);
    expect(status).toBe(200);
    expect(body).toEqual({
      service_code: 'ded-2',
      region: 'ams',
      total_usd: 228,
      setup_fee_usd: 49,
      price_month_usd: 179,
      balance_usd: 0,
      sufficient: false,
      stock: 'available',
    });
    await account.fund(30);
    expect((await account.rest('POST', '/v1/servers', { service_code: 'vps-1', dry_run: true })).body).toMatchObject({
      balance_usd: 30,
      sufficient: true,
    });
    expect((await account.rest('GET', '/v1/servers')).body.data).toEqual([]);
    const { data } = await account.graphql('{ quoteServer(serviceCode: "vps-2") { region totalUsd stock } }');
    expect(data.quoteServer).toEqual({ region: 'ams', totalUsd: 12, stock: 'AVAILABLE' });
    expect((await account.rest('POST', '/v1/servers', { service_code: 'vps-1', dry_run: false })).body.status).toBe(
      'pending',
    );
  });

  it('says that there is no stock, and refuses invalid orders', async () => {
    const account = await newAccount();
    const dry = (more: object) =>
      account.rest('POST', '/v1/servers', { service_code: 'vps-1', dry_run: true, ...more });
    expect((await dry({ service_code: 'ded-3', region: 'kef' })).body).toMatchObject({ region: 'kef', stock: 'none' });
    for (const [more, code] of [
      [{ service_code: 'vps-99' }, 'unknown_service_code'],
      [{ region: 'mars' }, 'unknown_region'],
      [{ os: 'plan9' }, 'unknown_os'],
      [{ max_price_usd: 1 }, 'price_exceeds_max'],
      [{ dry_run: 'yes' }, 'validation_failed'],
    ] as const)
      expect((await dry(more)).body.code).toBe(code);
  });
});

describe('A label selector', () => {
  it('finds the servers that meet all its terms', async () => {
    const account = await newAccount();
    await account.fund(60);
    for (const labels of [{ env: 'prod', tier: 'web' }, { env: 'prod', tier: 'db' }, { env: 'test' }, {}])
      await account.rest('POST', '/v1/servers', { service_code: 'vps-1', labels });
    const found = async (selector: string) =>
      (await account.rest('GET', `/v1/servers?label_selector=${encodeURIComponent(selector)}`)).body.data.map(
        ({ labels }: { labels: object }) => Object.values(labels).join(' '),
      );
    expect(await found('env=prod')).toEqual(['prod db', 'prod web']);
    expect(await found('env=prod,tier!=db')).toEqual(['prod web']);
    expect(await found('tier!=db')).toEqual(['', 'test', 'prod web']);
    expect(await found('env=')).toEqual([]);
    expect(await found("env=' or 1=1 --")).toEqual([]);
  });

  it.each(['env', 'env=prod,', '=x', 'Env=x', `k=${'x'.repeat(64)}`, 'a==b'.repeat(700), ''])(
    'is refused when malformed: %s',
    async (selector) => {
      const account = await newAccount();
      const { status, body } = await account.rest('GET', `/v1/servers?label_selector=${encodeURIComponent(selector)}`);
      expect([status, body.code]).toEqual([400, 'invalid_query']);
    },
  );
});
