/**
 * A private, real EVM chain (anvil), with USD Coin at its address on Base. The client and its default asset are those
 * of production.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import {
  type Chain,
  createPublicClient,
  createTestClient,
  createWalletClient,
  type Hex,
  http,
  parseAbi,
  publicActions,
} from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { base } from 'viem/chains';
import { say } from '../../../setup/say.ts';
import { freePort } from '../../../setup/spawn.ts';

/** USD Coin on Base. */
export const USDC: Hex = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
/** Compiled from usd-coin.sol: ERC-20 and EIP-3009; every account may mint. */
const { runtime } = JSON.parse(readFileSync(join(import.meta.dirname, 'usd-coin.json'), 'utf8')) as { runtime: Hex };
export const TOKEN_ABI = parseAbi([
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'function balanceOf(address) view returns (uint256)',
  'function authorizationState(address, bytes32) view returns (bool)',
  'function mint(address to, uint256 value)',
  'function transfer(address to, uint256 value) returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
]);

/** The anvil program of the npm package for this platform; undefined if it is not installed. */
const PROGRAM = (() => {
  const platform = process.platform === 'win32' ? 'win32' : process.platform;
  const name = `@foundry-rs/anvil-${platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`;
  try {
    const folder = dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
    return join(folder, 'bin', platform === 'win32' ? 'anvil.exe' : 'anvil');
  } catch {
    say(`Skipped: tests over anvil, because ${name} is not installed.`);
    return undefined;
  }
})();
/** For `describe.skipIf`. */
export const NO_ANVIL = PROGRAM === undefined;

interface Options {
  /** Default: the chain id of Base. */
  chainId?: number;
  /** Seconds between blocks. Default: each transaction gets its own block at once. */
  blockSeconds?: number;
  /** The time of the first block. Default: now. */
  begin?: Date;
  /** Further addresses for USD Coin besides `USDC`. */
  tokens?: readonly Hex[];
}

export type Anvil = Awaited<ReturnType<typeof startAnvil>>;

/** Runs a program until its own standard input ends, as it does when the process of the test dies. */
const WHILE_READ = '"$0" "$@" & cat >/dev/null; kill -9 $!';

/** Starts anvil, which takes a third of a second. It runs until the caller stops it, or until the process ends or is killed. */
export async function startAnvil({ chainId = base.id, blockSeconds, begin, tokens = [] }: Options = {}) {
  const port = await freePort();
  const pace = [
    ...(blockSeconds ? ['--block-time', String(blockSeconds)] : []),
    ...(begin ? ['--timestamp', String(Math.floor(begin.getTime() / 1000))] : []),
  ];
  const own = ['--host', '127.0.0.1', '--port', String(port), '--chain-id', String(chainId), '--silent', ...pace];
  // It has a group of its own. A signal for the group of the test would end the shell first.
  const child = spawn('sh', ['-c', WHILE_READ, PROGRAM!, ...own], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const kill = () => child.stdin.destroy();
  const url = `http://127.0.0.1:${port}`;
  const chain: Chain = { ...base, id: chainId, rpcUrls: { default: { http: [url] } } };
  const transport = http(url, { retryCount: 0 });
  const client = createPublicClient({ chain, transport, pollingInterval: 20 });
  const control = createTestClient({ chain, mode: 'anvil', transport });
  for (const end = Date.now() + 120_000; ; await new Promise((resume) => setTimeout(resume, 20))) {
    const answered = await client.getChainId().catch(() => undefined);
    if (answered !== undefined) break;
    if (Date.now() > end || child.exitCode !== null) throw new Error('anvil did not start.');
  }
  for (const address of [USDC, ...tokens]) await control.setCode({ address, bytecode: runtime });
  /** The first ten accounts have 10,000 ether each. */
  const account = (index: number) =>
    mnemonicToAccount('test test test test test test test test test test test junk', { addressIndex: index });
  const wallet = (index: number) =>
    createWalletClient({ account: account(index), chain, transport }).extend(publicActions);
  const mined = async (hash: Hex) => client.waitForTransactionReceipt({ hash });
  const call = (index: number, functionName: 'mint' | 'transfer', to: Hex, units: bigint, token: Hex) =>
    wallet(index).writeContract({ address: token, abi: TOKEN_ABI, functionName, args: [to, units], chain });
  return {
    url,
    chain,
    /** Reads the chain. */
    client,
    /** Controls the chain: mines blocks, reverts them, and sets state. */
    control,
    account,
    wallet,
    mined,
    balance: (address: Hex, token: Hex = USDC) =>
      client.readContract({ address: token, abi: TOKEN_ABI, functionName: 'balanceOf', args: [address] }),
    /** Mints tokens, and waits for the block. */
    mint: async (to: Hex, units: bigint, token: Hex = USDC) => mined(await call(9, 'mint', to, units, token)),
    /** Sends a token without waiting for the block. @returns the transaction */
    transfer: (from: number, to: Hex, units: bigint, token: Hex = USDC) => call(from, 'transfer', to, units, token),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      kill();
      await exited;
    },
  };
}
