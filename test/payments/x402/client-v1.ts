/**
 * Pays for a server on anvil with the published x402 client of version 1 (x402-fetch 1.2.0). Run it by hand:
 * `node test/payments/x402/client-v1.ts`. It installs some hundred packages in a temporary folder. An empty package
 * replaces the client's wallet page, which would add 350 MB.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Database } from '../../../entities/database/database.ts';
import { startEmbeddedPostgres } from '../../../entities/database/embedded/postgres.ts';
import { newFolder, removeFolder, restClient, spawnService } from '../../setup/spawn.ts';
import { startAnvil } from '../drivers/evm/anvil.ts';
import { PAY_TO, paymentsFileIn } from '../payments-file.ts';

const KEY = `0x${'42'.repeat(32)}`;
const PAYER = '0x17c5185167401eD00cF5F5b2fc97D9BBfDb7D025';

const PACKAGE = {
  type: 'module',
  dependencies: { viem: '2.57.1', 'x402-fetch': '1.2.0' },
  overrides: { viem: '$viem', wagmi: 'file:./nothing' },
};
const PAY = `
  import { privateKeyToAccount } from 'viem/accounts';
  import { createSigner, decodeXPaymentResponse, wrapFetchWithPayment } from 'x402-fetch';
  const [url, token, key] = process.argv.slice(2);
  const headers = { authorization: 'Bearer ' + token, 'content-type': 'application/json' };
  const order = { method: 'POST', headers, body: JSON.stringify({ service_code: 'vps-1' }) };
  const signer = privateKeyToAccount(key);
  const refused = await wrapFetchWithPayment(fetch, signer)(url, order).catch((error) => error.message);
  console.log('With the default limit: ' + refused);
  const answer = await wrapFetchWithPayment(fetch, signer, 10_000_000n)(url, order);
  const body = await answer.json();
  console.log(answer.status, body.order_number, body.paid_by, body.charged_usd);
  console.log(decodeXPaymentResponse(answer.headers.get('x-payment-response')));
  process.exit(answer.status === 200 ? 0 : 1);
`;

const folder = newFolder();
const stops: (() => unknown)[] = [() => removeFolder(folder)];
try {
  mkdirSync(join(folder, 'nothing'));
  const nothing = {
    name: 'wagmi',
    version: '2.0.0',
    type: 'module',
    exports: { './*': './index.js', '.': './index.js' },
  };
  writeFileSync(join(folder, 'nothing', 'package.json'), JSON.stringify(nothing));
  writeFileSync(join(folder, 'nothing', 'index.js'), '');
  writeFileSync(join(folder, 'package.json'), JSON.stringify(PACKAGE));
  writeFileSync(join(folder, 'pay.js'), PAY);
  execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: 'inherit',
  });
  const anvil = await startAnvil();
  stops.push(anvil.stop);
  await anvil.mint(PAYER, 10_000_000n);
  const postgres = await startEmbeddedPostgres(folder);
  stops.push(() => removeFolder(postgres.folder), postgres.stop);
  const db = await Database.open(postgres.url, { ownerUrl: postgres.ownerUrl });
  stops.push(() => db.close());
  await db.query(`insert into coin_rate (coin, source, rate_micros, observed_at)
    select 'USDC-BASE', source, 1000000, now() + interval '1 day' from unnest(array['one', 'two']) as source`);
  const file = paymentsFileIn(folder, anvil.url);
  const environment = {
    DATABASE_URL: postgres.url,
    MIGRATION_DATABASE_URL: postgres.ownerUrl,
    DATA_DIR: folder,
    PAYMENTS_FILE: file,
    ALLOW_SIMULATED: 'true',
  };
  const service = await spawnService(environment);
  stops.push(service.stop);
  const registration = { email: 'v1@example.org', password: 'a password of version 1' };
  const { body } = await restClient(service.url)('POST', '/v1/auth/register', registration);
  const child = spawn(process.execPath, ['pay.js', `${service.url}/v1/servers`, body.tokens.access_token, KEY], {
    cwd: folder,
    stdio: 'inherit',
  });
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
  assert.deepEqual([await anvil.balance(PAYER), await anvil.balance(PAY_TO)], [4_000_000n, 6_000_000n]);
  console.log('The payee has received six USD Coin.');
} finally {
  for (const stop of stops.reverse()) await stop();
}
process.exit(0);
