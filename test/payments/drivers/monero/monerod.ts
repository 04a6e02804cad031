/** A private Monero network of one node: a daemon, a wallet that pays, and a view-only wallet (Debian's monero). */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { JsonRpc } from '../../../../provisioning/payments/drivers/json-rpc.ts';
import { moneroRpc } from '../../../../provisioning/payments/drivers/monero/rpc.ts';
import { atEnd } from '../../../setup/end.ts';
import { eventually } from '../../../setup/freehold.ts';
import { freePort, MACHINE, newFolder, removeFolder } from '../../../setup/spawn.ts';

const { signal } = new AbortController();
export const WALLET_LOGIN = 'merchant:a password of the wallet';
/** Coins of new blocks stay locked for 60 blocks, and a payment hides among the outputs of 16. */
const BLOCKS_BEFORE_SPENDING = 90;

/** The version of Debian's package; undefined if it is not installed. */
export const moneroVersion = (): string | undefined =>
  ['monerod', 'monero-wallet-rpc']
    .map((program) => spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout?.trim())
    .reduce((all, version) => all && version);

export interface Regtest {
  daemonUrl: string;
  walletUrl: string;
  /** The primary address of the view-only wallet. */
  address: string;
  /** Calls the wallet of the service with the login of the configuration. */
  merchant(method: string, params?: object): Promise<unknown>;
  mine(blocks: number): Promise<void>;
  /**
   * Mines until a transaction has this many confirmations, and refreshes the merchant's wallet. The node may leave the
   * transaction out of the next block.
   */
  confirm(hash: string, confirmations: number): Promise<void>;
  height(): Promise<number>;
  /** Pays piconero to each address in one transaction. @returns its hash and its bytes */
  pay(to: [address: string, amount: bigint][], more?: object): Promise<{ tx_hash: string; tx_blob: string }>;
  /** Announces a transaction again. */
  resend(blob: string): Promise<void>;
  /** Reverts this many blocks, and drops announced transactions. */
  forget(blocks: number): Promise<void>;
  /** Opens the wallet with the spend key, or the view-only wallet, or none. */
  open(which: 'full' | 'view' | 'none'): Promise<void>;
  /** Kills the merchant's wallet and starts a new one. */
  killWallet(): Promise<void>;
}

/** Starts the network while a test file is collected. Its processes end with this process, also after a crash. */
export async function startRegtest(): Promise<Regtest> {
  const folder = newFolder();
  const children: ChildProcess[] = [];
  const run = (program: string, args: string[]) => {
    // With SSL each program would first make an RSA key, which takes up to half a minute.
    const plain = ['--non-interactive', '--rpc-ssl', 'disabled', '--log-file', `${folder}/${program}.log`];
    const child = spawn(program, [...plain, ...args], {
      stdio: 'ignore',
      env: { ...MACHINE, HOME: folder },
    });
    children.push(child);
    return child;
  };
  const end = async (child: ChildProcess) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  atEnd(async () => {
    await Promise.all(children.map(end));
    removeFolder(folder);
  });
  const [daemonPort, p2pPort, payerPort, merchantPort] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  const urlOf = (port: number) => `http://127.0.0.1:${port}`;
  const daemonUrl = urlOf(daemonPort);
  run('monerod', [
    ...['--regtest', '--offline', '--fixed-difficulty', '1', '--no-zmq', '--data-dir', `${folder}/chain`],
    ...['--rpc-bind-port', String(daemonPort), '--p2p-bind-port', String(p2pPort)],
  ]);
  const wallet = (port: number, login: string[]) =>
    run('monero-wallet-rpc', [
      ...['--daemon-address', `127.0.0.1:${daemonPort}`, '--rpc-bind-port', String(port), ...login],
      ...['--wallet-dir', folder, '--trusted-daemon', '--daemon-ssl', 'disabled'],
    ]);
  const [user = '', password = ''] = WALLET_LOGIN.split(':');
  wallet(payerPort, ['--disable-rpc-login']);
  const startMerchant = () => wallet(merchantPort, ['--rpc-login', WALLET_LOGIN]);
  let merchantProcess = startMerchant();
  const daemon = moneroRpc(daemonUrl);
  const payer = moneroRpc(urlOf(payerPort));
  let merchant = moneroRpc(urlOf(merchantPort), { user, password });
  const ready = (rpc: JsonRpc, method: string) =>
    eventually(() =>
      rpc.call(signal, method).then(
        () => true,
        () => false,
      ),
    );
  await Promise.all([ready(daemon, 'get_info'), ready(payer, 'get_version'), ready(merchant, 'get_version')]);

  const call = <T>(rpc: JsonRpc, method: string, params: object = {}) => rpc.call<T>(signal, method, params);
  const raw = async (path: string, body: object) => {
    const answer = await fetch(daemonUrl + path, { method: 'POST', body: JSON.stringify(body) });
    const { status } = (await answer.json()) as { status: string };
    if (status !== 'OK') throw new Error(`${path}: ${status}`);
  };
  const newWallet = async (filename: string) => {
    await call(payer, 'create_wallet', { filename, language: 'English', password: '' });
    const { address } = await call<{ address: string }>(payer, 'get_address', { account_index: 0 });
    const { key } = await call<{ key: string }>(payer, 'query_key', { key_type: 'view_key' });
    return { address, viewkey: key };
  };
  const keys = await newWallet('full');
  await call(payer, 'close_wallet');
  const own = await newWallet('payer');
  const mine = async (blocks: number) => {
    await call(daemon, 'generateblocks', { amount_of_blocks: blocks, wallet_address: own.address });
  };
  const isMined = async (hash: string): Promise<boolean> => {
    const answer = await fetch(`${daemonUrl}/get_transactions`, {
      method: 'POST',
      body: JSON.stringify({ txs_hashes: [hash] }),
    });
    const { txs = [] } = (await answer.json()) as { txs?: { in_pool: boolean }[] };
    return txs[0]?.in_pool === false;
  };
  const confirm = async (hash: string, confirmations: number) => {
    await eventually(async () => {
      await mine(1);
      return isMined(hash);
    });
    if (confirmations > 1) await mine(confirmations - 1);
    // The wallet refreshes each second, but sometimes later after a reorganisation.
    await call(merchant, 'refresh');
  };
  await mine(BLOCKS_BEFORE_SPENDING);
  await call(merchant, 'generate_from_keys', { filename: 'view', ...keys, password: '', restore_height: 0 });
  const open = async (which: 'full' | 'view' | 'none') => {
    await call(merchant, 'close_wallet').catch(() => {});
    if (which === 'none') return;
    await call(merchant, 'open_wallet', { filename: which, password: '' });
    await call(merchant, 'auto_refresh', { enable: true, period: 1 });
  };
  return {
    daemonUrl,
    walletUrl: urlOf(merchantPort),
    address: keys.address,
    merchant: (method, params) => call(merchant, method, params),
    mine,
    confirm,
    height: async () => (await call<{ height: number }>(daemon, 'get_info')).height,
    pay: async (to, more = {}) => {
      await call(payer, 'refresh');
      const destinations = to.map(([address, amount]) => ({ address, amount: Number(amount) }));
      return call(payer, 'transfer', { destinations, account_index: 0, get_tx_hex: true, ...more });
    },
    resend: (blob) => raw('/send_raw_transaction', { tx_as_hex: blob, do_not_relay: false }),
    forget: async (blocks) => {
      await raw('/pop_blocks', { nblocks: blocks });
      await call(daemon, 'flush_txpool');
    },
    open,
    killWallet: async () => {
      await end(merchantProcess);
      merchantProcess = startMerchant();
      merchant = moneroRpc(urlOf(merchantPort), { user, password });
      await ready(merchant, 'get_version');
      await open('view');
    },
  };
}
