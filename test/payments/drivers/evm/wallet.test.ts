/** The wallet of the operator on a real EVM chain: payouts, sweeps and npm run reconcile. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Hex } from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { beforeAll, describe, expect, it } from 'vitest';
import { payoutSentence } from '../../../../entities/payments/payout.ts';
import { atEnd } from '../../../setup/end.ts';
import type { TestAccount } from '../../../setup/freehold.ts';
import { freePort, MACHINE } from '../../../setup/spawn.ts';
import { type GatewayWorld, openGatewayWorld } from '../gateway-world.ts';
import { type Anvil, NO_ANVIL, startAnvil, USDC } from './anvil.ts';

const MNEMONIC = 'legal winner thank year wave sausage worth useful legal winner thank yellow';
const XPUB = mnemonicToAccount(MNEMONIC, { path: "m/44'/60'/0'" }).getHdKey().publicExtendedKey;

describe.skipIf(NO_ANVIL)('The wallet of the operator', () => {
  let anvil: Anvil;
  let world: GatewayWorld;
  let account: TestAccount;
  let deposit: Hex;

  beforeAll(async () => {
    anvil = await startAnvil();
    atEnd(() => anvil.stop());
    await anvil.mint(anvil.account(0).address, 1_000_000_000n);
    const token = { code: 'USDC-BASE', name: 'USD Coin', contract: USDC, decimals: 6, pegged: true };
    const gateway = { driver: 'evm', network: 'base', chainId: 8453, urls: [anvil.url], xpub: XPUB, tokens: [token] };
    world = await openGatewayWorld([{ ...gateway, confirmations: 2, pollSeconds: 0.05 }], { 'USDC-BASE': 1 });
    account = await world.newAccount();
    const topUp = await world.open(account, 50, 'USDC-BASE');
    deposit = topUp.wallet_address as Hex;
    await anvil.mined(await anvil.transfer(0, deposit, 50_000_000n));
    await anvil.control.mine({ blocks: 150 });
    await world.becomes(account, topUp, { status: 'confirmed' });
    await anvil.control.setBalance({ address: deposit, value: 10n ** 18n });
  });

  const command = (name: string, ...given: string[]) => commandWith({}, name, ...given);
  const commandWith = (environment: Record<string, string>, name: string, ...given: string[]) =>
    new Promise<{ code: number; output: string }>((done) => {
      const file = join(import.meta.dirname, '..', '..', '..', '..', 'commands', `${name}.ts`);
      const { databaseUrl, paymentsFile, dataDir } = world;
      const env = {
        ...MACHINE,
        DATABASE_URL: databaseUrl,
        PAYMENTS_FILE: paymentsFile,
        DATA_DIR: dataDir,
        ...environment,
      };
      execFile(process.execPath, [file, ...given], { env }, (error, stdout, stderr) =>
        done({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
      );
    });
  const mutate = async (text: string, given: Record<string, unknown>) => {
    const { data, errors } = await world.operator(`mutation ${text}`, given);
    if (errors) throw new Error(errors[0].message);
    return Object.values(data)[0] as Record<string, unknown>;
  };
  /** Sends from the deposit address, as the operator does. */
  const send = async (to: Hex, units: bigint): Promise<Hex> => {
    await anvil.control.impersonateAccount({ address: deposit });
    const data =
      `0xa9059cbb${to.slice(2).toLowerCase().padStart(64, '0')}${units.toString(16).padStart(64, '0')}` as Hex;
    const hash = (await anvil.client.request({
      method: 'eth_sendTransaction' as never,
      params: [{ from: deposit, to: USDC, data }] as never,
    })) as Hex;
    await anvil.mined(hash);
    return hash;
  };

  it('agrees with the chain after a payment, and npm run reconcile says so', async () => {
    expect(await command('reconcile')).toEqual({
      code: 0,
      output: 'RIGHT   gateway:base USDC-BASE: the books have 50000000 units, and so has the chain.\n',
    });
  });

  it('pays out to the address that signed, and the chain finishes the payout', async () => {
    const signer = anvil.account(5);
    const { address } = signer;
    const signature = await signer.signMessage({
      message: payoutSentence({ accountId: account.id, address, network: 'base' }),
    });
    const REQUEST = `($accountId: ID!, $address: Line!, $signature: Line) {
      requestPayout(accountId: $accountId, coin: "USDC-BASE", amountUsd: 20, key: "leaves", address: $address, signature: $signature, reason: "She leaves") { id isSigned } }`;
    await expect(
      mutate(REQUEST, { accountId: account.id, address: anvil.account(6).address, signature }),
    ).rejects.toThrow('The address has not signed this sentence');
    const { id, isSigned } = await mutate(REQUEST, { accountId: account.id, address, signature });
    expect(isSigned).toBe(true);
    const exported = JSON.parse((await command('payouts', 'export')).output);
    expect(exported.payouts).toEqual([
      { id, network: 'base', coin: 'USDC-BASE', address, units: '20000000', amount: '20', source: 'gateway:base' },
    ]);
    const txId = await send(address, 20_000_000n);
    expect(await command('reconcile')).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^PENDING .* -20000000\./),
    });
    const file = join(world.dataDir, 'sent.txt');
    writeFileSync(file, `${id} ${txId}\n`);
    await command('payouts', 'import', file);
    expect((await command('payouts', 'settle')).output).toMatch(/^WAITING/);
    await anvil.control.mine({ blocks: 150 });
    expect(await command('payouts', 'settle')).toMatchObject({ code: 0, output: expect.stringMatching(/^FINAL/) });
    expect((await command('payouts')).output).toBe('No payout is open.\n');
    expect(await command('reconcile')).toMatchObject({ code: 0, output: expect.stringMatching(/^RIGHT .* 30000000 /) });
  });

  it('names a payout whose transaction pays something else', async () => {
    const { id } = await mutate(
      `($accountId: ID!, $address: Line!) {
        requestPayout(accountId: $accountId, coin: "USDC-BASE", amountUsd: 5, key: "wrong", address: $address, reason: "x") { id } }`,
      { accountId: account.id, address: anvil.account(5).address },
    );
    await command('payouts', 'export');
    const file = join(world.dataDir, 'wrong.txt');
    writeFileSync(file, `${id} ${await send(anvil.account(5).address, 4_000_000n)}\n`);
    await command('payouts', 'import', file);
    await anvil.control.mine({ blocks: 150 });
    expect(await command('payouts', 'settle')).toMatchObject({ code: 1, output: expect.stringMatching(/^WRONG/) });
    writeFileSync(file, `${id} ${await send(anvil.account(5).address, 5_000_000n)}\n`);
    expect(await command('payouts', 'import', file)).toMatchObject({
      code: 1,
      output: expect.stringContaining('If that never pays it, import with --replace.'),
    });
    await command('payouts', 'import', '--replace', file);
    await anvil.control.mine({ blocks: 150 });
    const settled = await command('payouts', 'settle');
    expect(settled).toMatchObject({ code: 0, output: expect.stringMatching(/^FINAL/) });
    expect(settled.output).toMatch(/^GONE {4}out_\w+: 0x\w+ replaced 0x\w+\. The first one does not pay it\.$/m);
  });

  it('records a sweep once, and names coins that left the gateway without one', async () => {
    // Four dollars of the wrong payout are missing, and so are those of a sweep.
    const txId = await send(anvil.account(7).address, 10_000_000n);
    expect(await command('reconcile')).toMatchObject({
      code: 1,
      output: expect.stringMatching(
        /^WRONG .* 25000000 units, and the chain has 11000000: a difference of -14000000\./,
      ),
    });
    const MOVE = `($source: Line!, $target: Line!, $units: Line!, $txId: Line!) {
      recordMovement(source: $source, target: $target, coin: "USDC-BASE", units: $units, txId: $txId) { amountUsd } }`;
    const sweep = { source: 'gateway:base', target: 'wallet:base', units: '10000000', txId };
    for (let i = 0; i < 2; i++) expect(await mutate(MOVE, sweep)).toEqual({ amountUsd: 10 });
    await expect(mutate(MOVE, { ...sweep, units: '1' })).rejects.toThrow();
    await expect(mutate(MOVE, { ...sweep, target: 'revenue' })).rejects.toThrow('target is fees');
    expect(await mutate(MOVE, { ...sweep, target: 'fees', units: '4000000' })).toEqual({ amountUsd: 4 });
    expect(await command('reconcile')).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^RIGHT .* 11000000 .*\nGONE /),
    });
    const { data } = await world.operator('{ books { balanced totals { name totalUsd } } }');
    expect(data.books).toMatchObject({
      balanced: true,
      totals: expect.arrayContaining([
        { name: 'wallet:base', totalUsd: -10 },
        { name: 'fees', totalUsd: -4 },
        { name: 'gateway:base', totalUsd: -11 },
      ]),
    });
    // As if a contract had sent a coin that the driver does not see.
    await mutate(MOVE, { ...sweep, target: 'fees', units: '1', txId: 'none' });
    expect(await command('reconcile')).toMatchObject({
      code: 3,
      output: expect.stringMatching(/^SURPLUS .*: a difference of 1\./),
    });
  });

  it('tells why no node answered about a payout', async () => {
    const { id } = await mutate(
      `($accountId: ID!, $address: Line!) {
        requestPayout(accountId: $accountId, coin: "USDC-BASE", amountUsd: 1, key: "silent", address: $address, reason: "x") { id } }`,
      { accountId: account.id, address: anvil.account(5).address },
    );
    await command('payouts', 'export');
    const file = join(world.dataDir, 'silent.txt');
    writeFileSync(file, `${id} ${await send(anvil.account(5).address, 1_000_000n)}\n`);
    await command('payouts', 'import', file);
    await anvil.control.mine({ blocks: 150 });
    const paymentsFile = join(world.dataDir, 'unreachable.json');
    writeFileSync(
      paymentsFile,
      readFileSync(world.paymentsFile, 'utf8').replace(anvil.url, `http://127.0.0.1:${await freePort()}`),
      {
        mode: 0o600,
      },
    );
    const settled = await commandWith({ PAYMENTS_FILE: paymentsFile }, 'payouts', 'settle');
    expect(settled.code).toBe(2);
    expect(settled.output).toMatch(new RegExp(`^SILENT  ${id} .*\\. The node is unreachable: .*ECONNREFUSED`, 'm'));
    expect(await command('payouts', 'settle')).toMatchObject({ code: 0, output: expect.stringMatching(/^FINAL/) });
  });
});
