/**
 * `npm run bench:start`: measures the start on existing data, and the memory and the processor time at rest. A peer starts in
 * turns with the service. It only loads the largest libraries, and starts the same database. Both find the cache of compiled files.
 * The exit code is 1 only if the benchmark itself fails.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, MAIN, newFolder, removeFolder } from '../test/setup/spawn.ts';
import { median, print } from './figure.ts';
import { run, stops } from './run.ts';

const ROUNDS = 9;
const REST_SECONDS = 20;
/** Reads before the rest, so that it is the rest of a service in use. */
const REQUESTS = 20;
const BARS = { start: 1.5, freshSeconds: 1, restMiB: 160, restCore: 0.01 };
/** Linux counts processor time in hundredths of a second. */
const TICKS = 100;
const ROOT = join(import.meta.dirname, '..');
const PROGRAMS = { service: MAIN, peer: join(import.meta.dirname, 'start-peer.ts') };
type Program = keyof typeof PROGRAMS;

interface Started {
  seconds: number;
  /** Seconds of processor time until the program answers. */
  cpuSeconds: number;
  url: string;
  pid: number;
  stop(): Promise<void>;
}

/** Starts a program, and waits until it says that it runs. */
async function start(program: Program, folder: string): Promise<Started> {
  const [port, internalPort] = [await freePort(), await freePort()];
  const began = performance.now();
  const child = spawn(process.execPath, [PROGRAMS[program]], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/node'),
      DATA_DIR: folder,
      PORT: String(port),
      INTERNAL_PORT: String(internalPort),
    },
  });
  const exited = once(child, 'exit');
  const stop = async () => {
    child.kill('SIGTERM');
    await exited;
  };
  stops.push(stop);
  const running = (async () => {
    for await (const chunk of child.stdout) if (String(chunk).includes('is running')) return;
  })();
  await Promise.race([running, exited.then(() => assert.fail(`The ${program} ended.`))]);
  const seconds = (performance.now() - began) / 1000;
  child.stdout.resume();
  const pid = child.pid!;
  return { seconds, cpuSeconds: cpuSecondsOf(pid), url: `http://127.0.0.1:${port}`, pid, stop };
}

/** The processor time of a process until now. */
function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

const mebibytesOf = (pid: number): number =>
  Number(/VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;

/** Prints the least, the middle and the greatest of some values. */
function show(name: string, values: number[], unit: string): void {
  const shown = [Math.min(...values), median(values), Math.max(...values)].map((value) => value.toFixed(2)).join('/');
  console.log(`${name.padEnd(72)} ${shown} ${unit}`);
}

/** Measures a started program after some seconds without work. @returns MiB, and the used part of a core */
async function rest({ pid, url }: Started, program: Program): Promise<{ memory: number; core: number }> {
  if (program === 'service')
    for (let request = 0; request < REQUESTS; request++) await (await fetch(`${url}/v1/catalog`)).text();
  await sleep(REST_SECONDS * 1000);
  const before = cpuSecondsOf(pid);
  await sleep(REST_SECONDS * 1000);
  return { memory: mebibytesOf(pid), core: (cpuSecondsOf(pid) - before) / REST_SECONDS };
}

await run(async () => {
  const folders = { service: newFolder(), peer: newFolder() };
  const programs: Program[] = ['service', 'peer'];
  const fresh: Partial<Record<Program, number>> = {};
  for (const program of programs) {
    stops.push(() => removeFolder(folders[program]));
    // The first start may fill the cache of compiled files, so another one counts.
    const warm = newFolder();
    stops.push(() => removeFolder(warm));
    await (await start(program, warm)).stop();
    const first = await start(program, folders[program]);
    fresh[program] = first.seconds;
    await first.stop();
  }
  const starts: Record<Program, Started[]> = { service: [], peer: [] };
  for (let round = 0; round < ROUNDS; round++)
    for (const program of round % 2 ? programs.toReversed() : programs) {
      const started = await start(program, folders[program]);
      starts[program].push(started);
      await started.stop();
    }
  for (const program of programs) {
    show(
      `start of the ${program} on existing data`,
      starts[program].map(({ seconds }) => seconds),
      's',
    );
    show(
      `its processor time`,
      starts[program].map(({ cpuSeconds }) => cpuSeconds),
      's',
    );
  }
  const middle = (program: Program, of: 'seconds' | 'cpuSeconds') => median(starts[program].map((one) => one[of]));
  for (const of of ['seconds', 'cpuSeconds'] as const)
    print({ name: `start, in ${of}, to the peer`, ratio: middle('service', of) / middle('peer', of), bar: BARS.start });
  const added = fresh.service! - middle('service', 'seconds');
  print({ name: 'seconds that fresh data add', ratio: added, bar: BARS.freshSeconds });
  for (const program of programs) {
    const started = await start(program, folders[program]);
    const { memory, core } = await rest(started, program);
    print({ name: `MiB of the ${program} at rest`, ratio: memory, bar: BARS.restMiB });
    print({
      name: `part of a core of the ${program} at rest, in percent`,
      ratio: core * 100,
      bar: BARS.restCore * 100,
    });
    await started.stop();
  }
});
