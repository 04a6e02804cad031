/** A real node of the Bitcoin family (litecoind) on a private chain. Its wallet pays; the service uses no wallet. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { say } from '../../../setup/say.ts';
import { freePort, newFolder, removeFolder } from '../../../setup/spawn.ts';

/** For `describe.skipIf`. */
export const NO_LITECOIND = (() => {
  try {
    execFileSync('litecoind', ['-version'], { stdio: 'ignore' });
    return false;
  } catch {
    say('Skipped: tests over litecoind, because it is not installed (apt-get install litecoind).');
    return true;
  }
})();

/** The RPC login with the password `secret`: a salt, and the HMAC of both. litecoind also makes a cookie. */
const RPC_AUTH = 'c0ffee$0c4c1a87fa16ce0cb0be6571825c8de06d966c5b59347cbec7843347908a67f8';

export type Litecoind = Awaited<ReturnType<typeof startLitecoind>>;

const OF_WALLET = new Set(['getnewaddress', 'sendtoaddress', 'sendmany', 'bumpfee']);

/** Starts litecoind, by default with an index of transactions. Mines 101 blocks, so that the wallet has coins to spend. */
export async function startLitecoind({ hasIndex = true } = {}) {
  const folder = newFolder();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(
    'litecoind',
    [
      ...['-regtest', `-datadir=${folder}`, `-rpcport=${port}`, '-listen=0', '-server', '-printtoconsole=0'],
      ...[`-txindex=${Number(hasIndex)}`, '-fallbackfee=0.0002', '-mempoolreplacement=1', `-rpcauth=till:${RPC_AUTH}`],
    ],
    { stdio: 'ignore' },
  );
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const rpc = async <T>(method: string, ...params: unknown[]): Promise<T> => {
    const response = await fetch(`${url}/${OF_WALLET.has(method) ? 'wallet/payer' : ''}`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from('till:secret').toString('base64')}` },
      body: JSON.stringify({ jsonrpc: '1.0', id: 1, method, params }),
    });
    const { result, error } = (await response.json()) as { result: T; error: { message: string } | null };
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  };
  for (const end = Date.now() + 240_000; ; await new Promise((resume) => setTimeout(resume, 50))) {
    const ready = await rpc('getblockcount').catch(() => undefined);
    if (ready !== undefined) break;
    if (Date.now() > end || child.exitCode !== null) throw new Error('litecoind did not start.');
  }
  await rpc('createwallet', 'payer');
  const miner = await rpc<string>('getnewaddress');
  const mine = (blocks: number) => rpc<string[]>('generatetoaddress', blocks, miner);
  await mine(101);
  return {
    url,
    cookieFile: join(folder, 'regtest', '.cookie'),
    rpc,
    /** @returns the block hashes */
    mine,
    /** Announces a payment. @returns the transaction */
    pay: (address: string, amount: string) => rpc<string>('sendtoaddress', address, amount),
    stop: async () => {
      process.off('exit', kill);
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
      removeFolder(folder);
    },
  };
}
