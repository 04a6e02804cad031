/** A separate Redis for a test, from Debian. Local test runs may go without it; CI has it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { say } from '../say.ts';
import { freePort } from '../spawn.ts';

export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;
if (!hasRedis) say('Skipped: the rate limits in Redis, because there is no redis-server here.');

export interface RunningRedis {
  url: string;
  kill(): Promise<void>;
  start(): void;
}

/** Starts Redis. The given hook stops it. */
export async function startRedis(onEnd: (end: () => Promise<void>) => void): Promise<RunningRedis> {
  const port = String(await freePort());
  const start = () =>
    spawn('redis-server', ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'], {
      stdio: 'ignore',
    });
  let running: ChildProcess = start();
  const kill = async () => {
    if (running.exitCode !== null || running.signalCode) return;
    running.kill('SIGKILL');
    await once(running, 'exit');
  };
  onEnd(kill);
  return {
    url: `redis://127.0.0.1:${port}`,
    kill,
    start: () => {
      running = start();
    },
  };
}
