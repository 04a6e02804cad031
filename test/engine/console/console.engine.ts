/** The first day of a new company, from an empty folder on. Its operator uses the console alone, over a real LXD and a real chain. */
import { createReadStream, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { mnemonicToAccount } from 'viem/accounts';
import { beforeAll, describe, expect, it } from 'vitest';
import { consoleAt, visitPath } from '../../facades/console/open-page.ts';
import { type Anvil, NO_ANVIL, startAnvil, USDC } from '../../payments/drivers/evm/anvil.ts';
import { rateSources } from '../../payments/drivers/gateway-world.ts';
import { secretFileIn } from '../../payments/payments-file.ts';
import { serve, sha256 } from '../../servers/images/source.ts';
import { atEnd } from '../../setup/end.ts';
import { eventually } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import {
  newFolder,
  type RestClient,
  type RunningService,
  removeFolder,
  restClient,
  spawnService,
} from '../../setup/spawn.ts';
import { login } from '../customer.ts';
import { FOLDER, type Lxd, newKey, startSingleLxd } from '../lxd.ts';
import { follow, isDone, openRow, submit } from './forms.ts';

const XPUB = mnemonicToAccount('legal winner thank year wave sausage worth useful legal winner thank yellow', {
  path: "m/44'/60'/0'",
}).getHdKey().publicExtendedKey;
const IMAGE = join(FOLDER, 'tiny.tar.gz');

describe.skipIf(NO_ANVIL || !hasChromium)('The operator of a new company, in the console alone', () => {
  let lxd: Lxd;
  let anvil: Anvil;
  let service: RunningService;
  let page: Page;
  let imageUrl: string;
  let rest: RestClient;
  let ipv4: string;
  let orderNumber: string;
  const key = () => newKey('console');

  beforeAll(async () => {
    lxd = await startSingleLxd('console', []);
    atEnd(() => lxd.stop());
    imageUrl = await serve(atEnd, (_, response) => createReadStream(IMAGE).pipe(response));
    anvil = await startAnvil({ blockSeconds: 1 });
    atEnd(() => anvil.stop());
    const folder = newFolder();
    atEnd(() => removeFolder(folder));
    service = await startCompany(folder, anvil.url);
    atEnd(() => service.stop());
    const { start, stop, open } = consoleAt(new URL(service.graphql).origin);
    await start();
    atEnd(stop);
    page = await open(service.operatorToken);
  });

  it('begins with nothing done but the gateway that the configuration names', async () => {
    await isDone(page, 'A gateway takes coins');
    const steps = page.getByRole('region', { name: 'To the first sale' }).getByRole('listitem');
    expect((await steps.allInnerTexts()).filter((text) => text.includes('done'))).toHaveLength(1);
  });

  it('offers a region', async () => {
    await follow(page, 'A region is on offer');
    await submit(page, 'Add a region', { Code: 'osl', Name: 'Oslo', City: 'Oslo', Country: 'NO' });
    await isDone(page, 'A region is on offer');
  });

  it('sets a price for a tier', async () => {
    await follow(page, 'A tier has a price');
    const size = { vCPUs: '1', 'Memory MB': '256', 'Disk GB': '1', 'Traffic TB': '1' };
    await submit(page, 'Add a tier of VPS', { Code: 'tiny', Name: 'The tiny one', 'Price month USD': '6', ...size });
    await openRow(page, 'tiny');
    await submit(page, 'Set the price', { 'Price month USD': '7' });
    await page.getByRole('gridcell', { name: '$7.00' }).waitFor();
    await isDone(page, 'A tier has a price');
  });

  it('adds an engine, and sees that it answers', async () => {
    await follow(page, 'An engine answers');
    const place = { Pool: 'machines', Network: 'machines' };
    await submit(page, 'Add an engine', {
      ...{ Name: 'lxd', Region: 'osl', Endpoints: `unix:${lxd.socketPath}`, ...place },
    });
    await isDone(page, 'An engine answers');
  });

  it('adds the host that the engine told of', async () => {
    await follow(page, 'A host has room');
    await submit(page, 'Add a host', { Name: hostname(), Kind: 'VPS', Region: 'osl', Engine: 'lxd' });
    await isDone(page, 'A host has room');
  });

  it('adds the network of its machines', async () => {
    await follow(page, 'A network has addresses');
    const range = { First: '10.79.0.100', Last: '10.79.0.199' };
    await submit(page, 'Add a network', { Region: 'osl', Network: '10.79.0.0/24', Gateway: '10.79.0.1', ...range });
    await isDone(page, 'A network has addresses');
  });

  it('offers a system, and brings its image to the engine', async () => {
    await follow(page, 'A system is on offer');
    const size = { 'Min disk GB': '1', 'Min memory MB': '64' };
    await submit(page, 'Add a system', { Code: 'busybox', Name: 'Tiny', Family: 'busybox', Version: '1', ...size });
    await visitPath(page, 'engine-images');
    const file = { URL: `${imageUrl}/tiny.tar.gz`, 'SHA-256': sha256(readFileSync(IMAGE)) };
    await submit(page, 'Import an image', { Code: 'busybox', Engine: 'lxd', ...file });
    await page.getByRole('gridcell', { name: 'ready' }).waitFor();
    await isDone(page, 'A system is on offer');
  });

  it('sets how much it sells', async () => {
    await follow(page, 'A tier has stock');
    await submit(page, 'Set a limit', { Region: 'osl', 'Service code': 'tiny', Total: '3' });
    await isDone(page, 'A tier has stock');
    await page.getByText('All is ready.').waitFor();
  });

  it('sees the customer who pays on the chain, and orders by REST', async () => {
    const registered = await restClient(service.url)('POST', '/v1/auth/register', {
      ...{ email: 'first@example.org', password: 'a password of the first customer' },
    });
    rest = restClient(service.url, registered.body.tokens.access_token);
    const topUp = await eventually(async () => {
      const { status, body } = await rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'USDC-BASE' });
      // The worker asks the sources of rates first.
      if (status !== 200 && body.code !== 'coin_unavailable') throw new Error(JSON.stringify(body));
      return status === 200 && body;
    });
    await anvil.mint(anvil.account(0).address, 30_000_000n);
    await anvil.mined(await anvil.transfer(0, topUp.wallet_address, 30_000_000n));
    await anvil.control.mine({ blocks: 150 });
    await visitPath(page, 'payments');
    await page.getByRole('gridcell', { name: /credited|final/ }).waitFor();
    const { publicKey, file } = key();
    const { id } = (await rest('POST', '/v1/ssh-keys', { public_key: publicKey })).body;
    const wanted = { service_code: 'tiny', region: 'osl', os: 'busybox', hostname: 'first', ssh_key_ids: [id] };
    const ordered = await rest('POST', '/v1/servers', wanted);
    expect(ordered).toMatchObject({ status: 200 });
    orderNumber = ordered.body.order_number;
    await visitPath(page, `servers?row=${orderNumber}`);
    await page.getByRole('gridcell', { name: 'running', exact: true }).waitFor();
    ipv4 = (await rest('GET', `/v1/servers/${orderNumber}`)).body.ipv4;
    expect(await login(ipv4, file, 'echo in')).toBe('in');
    await visitPath(page, '');
    await page.getByRole('link', { name: new RegExp(`first ${orderNumber}`) }).waitFor();
    await page.getByRole('heading', { name: 'To the first sale' }).waitFor({ state: 'detached' });
  });

  it('opens a case for a complaint, and suspends the customer', async () => {
    await visitPath(page, 'cases');
    const [at, deadline] = [0, 1].map((days) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 19));
    await submit(page, 'Open a case', {
      ...{ Address: ipv4, At: at!, Deadline: deadline!, Source: 'abuse@example.net', Text: 'It scans our network.' },
    });
    await openRow(page, ipv4);
    await submit(page, 'Take a measure', { Measure: 'suspend', Reason: 'It scans other networks.' });
    const { body } = await rest('POST', '/v1/servers', { service_code: 'tiny', region: 'osl', os: 'busybox' });
    expect(body).toMatchObject({ code: 'account_suspended' });
    await visitPath(page, `servers?row=${orderNumber}`);
    await page.getByRole('gridcell', { name: /suspended|stopped/ }).waitFor();
    await visitPath(page, 'cases');
    await openRow(page, ipv4);
    await submit(page, 'Close', { Result: 'The customer is suspended.' });
  });

  it('deletes the server, and gives the unused hours back', async () => {
    await visitPath(page, `servers?row=${orderNumber}`);
    await submit(page, 'Delete', { Refund: 'yes', Reason: 'It scans other networks.' });
    await eventually(async () => (await rest('GET', `/v1/servers/${orderNumber}`)).status === 404);
    expect((await rest('GET', '/v1/account/balance')).body.balance_usd).toBeGreaterThan(29);
    expect(await lxd.call('GET', '/1.0/instances?project=freehold')).toEqual([]);
  });

  it('requests a payout of the rest of the balance', async () => {
    await visitPath(page, 'accounts?search=first@example.org');
    await openRow(page, 'first@example.org');
    await submit(page, 'Request a payout', {
      ...{ Address: anvil.account(5).address, 'Amount USD': '29', Coin: 'USDC-BASE', Reason: 'The customer left.' },
    });
    await visitPath(page, 'payouts');
    await page.getByRole('gridcell', { name: 'requested' }).waitFor();
    expect((await rest('GET', '/v1/account/balance')).body.balance_usd).toBeLessThan(1);
  });

  it('reads the report of the day', async () => {
    await visitPath(page, 'income');
    await page.getByRole('row').filter({ hasText: 'USDC-BASE' }).filter({ hasText: '$30.00' }).waitFor();
    await visitPath(page, 'sales');
    await page.getByRole('row').filter({ hasText: 'tiny' }).filter({ hasText: 'osl' }).waitFor();
    await visitPath(page, 'daily-totals');
    await page.getByRole('row').filter({ hasText: 'refund' }).waitFor();
    await visitPath(page, 'audit');
    await page.getByRole('gridcell', { name: 'case.measure_taken' }).first().waitFor();
  });
});

/** Starts the service over an empty folder, with the settings that a console cannot have: no simulation, and a gateway. */
async function startCompany(folder: string, chainUrl: string): Promise<RunningService> {
  const token = { code: 'USDC-BASE', name: 'USD Coin', contract: USDC, decimals: 6, pegged: true };
  const gateway = { driver: 'evm', network: 'base', chainId: 8453, urls: [chainUrl], xpub: XPUB, tokens: [token] };
  const ratesUrl = await serve(atEnd, (_, response) => response.end(JSON.stringify({ 'USDC-BASE': 1 })));
  const payments = {
    gateways: [{ ...gateway, confirmations: 2, pollSeconds: 0.1 }],
    rates: rateSources(ratesUrl, ['USDC-BASE']),
  };
  return spawnService({
    ...{ DATA_DIR: join(folder, 'data'), VPS_DRIVER: 'none', DEDICATED_DRIVER: 'none' },
    PAYMENTS_FILE: secretFileIn(folder, 'payments.json', JSON.stringify(payments)),
  });
}
