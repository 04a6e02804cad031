/** Measures how 64 concurrent logins slow a reader of GET /v1/catalog: its p99 with them, relative to its p99 alone. */
import { restClient } from '../test/setup/spawn.ts';
import { type Figure, median, quantile } from './figure.ts';
import { load, prepare } from './load.ts';

const LOGINS = 64;
const ROUNDS = 7;
const ALONE_SECONDS = 1;
const TOGETHER_SECONDS = 2;
const BAR = 4;
const PASSWORD = 'a heron on the roof';

export async function logins(port: number): Promise<Figure> {
  const anonymous = restClient(`http://127.0.0.1:${port}`);
  const requests: Buffer[] = [];
  for (let index = 0; index < LOGINS; index++) {
    const email = `login-${index}@example.org`;
    await anonymous('POST', '/v1/auth/register', { email, password: PASSWORD });
    requests.push(prepare('POST', '/v1/auth/login', undefined, { email, password: PASSWORD }));
  }
  await latencies(port, ALONE_SECONDS); // warm-up
  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const alone = quantile(await latencies(port, ALONE_SECONDS), 0.99);
    const others = requests.map((request) =>
      load({
        port,
        request,
        expects: (body) => body.includes('access_token'),
        connections: 1,
        seconds: TOGETHER_SECONDS,
      }),
    );
    const together = quantile(await latencies(port, TOGETHER_SECONDS), 0.99);
    await Promise.all(others);
    ratios.push(together / alone);
  }
  return { name: `p99 of GET /v1/catalog under ${LOGINS} logins, to idle`, ratio: median(ratios), bar: BAR };
}

/** Measures one reader that repeats its request. @returns milliseconds of each request */
async function latencies(port: number, seconds: number): Promise<number[]> {
  const found: number[] = [];
  let before = performance.now();
  await load({
    port,
    request: prepare('GET', '/v1/catalog'),
    expects: () => {
      const now = performance.now();
      found.push(now - before);
      before = now;
      return true;
    },
    connections: 1,
    seconds,
  });
  return found.slice(1);
}
