/** Callers of an onion service: each circuit counts as a caller of its own, and all circuits together have limits. */
import { beforeEach, describe, expect, it } from 'vitest';
import { addressOf, overCircuit } from '../facades/http/circuit.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { freePort } from '../setup/spawn.ts';

const at = { host: '127.0.0.1', port: await freePort() };
const freehold = await startFreehold({
  ONION_LISTENER: `${at.host}:${at.port}`,
  TRUSTED_PROXY_CIDRS: 'fc00::/7,127.0.0.0/8',
  RATE_LIMIT_PUBLIC_PER_MINUTE: '12',
  RATE_LIMIT_ONION_PER_MINUTE: '30',
  REGISTRATION_PROOF_BITS: '8',
});
const { newAccount, anonymous, db } = freehold;

let circuits = 0x1_0000;
/** A circuit that no test has used, and that has a /64 with all others. */
const newCircuit = () => ++circuits;
const look = (circuit: number, headers?: Record<string, string>) =>
  overCircuit(at, circuit, ['GET', '/v1/catalog/vps'], headers);
const login = (circuit: number, email: string, password: string, headers?: Record<string, string>) =>
  overCircuit(at, circuit, ['POST', '/v1/auth/login', { email, password }], headers);

/** Forgets the calls of the test before, and begins no test at the end of a minute. */
beforeEach(async () => {
  await db.query('delete from rate');
  await eventually(async () => Date.now() % 60_000 < 45_000, 20);
});

describe('A stranger on a circuit', () => {
  it('has a limit of calls, and gets no other by addresses in headers', async () => {
    const [first, second] = [newCircuit(), newCircuit()];
    const forged = (i: number) => ({ 'x-forwarded-for': `198.51.100.${i}`, forwarded: `for=198.51.100.${i}` });
    const statuses = [];
    for (let i = 0; i < 14; i++) statuses.push((await look(first, forged(i))).status);
    expect(statuses).toEqual([...Array(12).fill(200), 429, 429]);
    expect((await look(second)).status).toBe(200);
    expect((await anonymous('GET', '/v1/catalog/vps')).status).toBe(200);
  });

  it('always needs a proof of work to register, also under a name outside of Tor', async () => {
    const person = { email: 'onion@example.org', password: 'a heron on the roof' };
    for (const [path, body] of [
      ['/v1/auth/register', person],
      ['/v1/oauth/register', {}],
    ] as const) {
      const answer = await overCircuit(at, newCircuit(), ['POST', path, body], { host: 'freehold.example' });
      expect([answer.status, answer.body.code]).toEqual([422, 'proof_of_work_required']);
      expect(answer.body.detail).toMatch(/^An onion service asks .* SHA-256 of "challenge:number"/);
    }
    expect((await anonymous('POST', '/v1/auth/register', person)).status).toBe(200);
  });
});

describe('Failed logins on a circuit', () => {
  it('throttle that circuit, and neither another one nor callers from elsewhere', async () => {
    const { email, password } = await newAccount();
    const [stranger, owner] = [newCircuit(), newCircuit()];
    const codes = [];
    for (let i = 0; i < 11; i++) codes.push((await login(stranger, `guess-${i}@example.org`, 'wrong')).body.code);
    expect(codes).toEqual([...Array(10).fill('invalid_login'), 'login_throttled']);
    expect((await login(owner, email, password)).status).toBe(200);
    expect((await anonymous('POST', '/v1/auth/login', { email, password })).status).toBe(200);
  });

  it('lock no owner out of a circuit on which the owner has logged in', async () => {
    const { email, password } = await newAccount();
    const owner = newCircuit();
    expect((await login(owner, email, password)).status).toBe(200);
    for (let i = 0; i < 10; i++) await login(newCircuit(), email, 'wrong');
    expect((await login(newCircuit(), email, password)).body.code).toBe('login_throttled');
    expect((await login(owner, email, password)).status).toBe(200);
  });
});

describe('An API key', () => {
  it('can be limited to one circuit, or to the onion service', async () => {
    const { rest } = await newAccount();
    const circuit = newCircuit();
    const keyFor = async (network: string) => {
      const key = { name: network, scope: 'read', ip_allowlist: [network] };
      return { authorization: `Bearer ${(await rest('POST', '/v1/auth/api-keys', key)).body.plaintext}` };
    };
    const status = async (of: number, headers: Record<string, string>) =>
      (await overCircuit(at, of, ['GET', '/v1/account'], headers)).status;
    const [own, onion, local] = [
      await keyFor(addressOf(circuit)),
      await keyFor('fc00:dead:beef:4dad::/64'),
      await keyFor('127.0.0.1'),
    ];
    expect([await status(circuit, own), await status(newCircuit(), own)]).toEqual([200, 403]);
    expect(await status(newCircuit(), { ...own, 'x-forwarded-for': addressOf(circuit) })).toBe(403);
    expect([await status(newCircuit(), onion), await status(circuit, local)]).toEqual([200, 403]);
    expect((await rest('GET', '/v1/account')).status).toBe(200);
  });
});

describe('The listener of an onion service', () => {
  it('causes no warning of a proxy', async () => {
    for (let i = 0; i < 3; i++) await look(newCircuit(), { 'x-forwarded-for': '198.51.100.7' });
    const { gateways } = (await freehold.operator('{ gateways { name warning } }')).data;
    expect(gateways.filter(({ warning }: { warning: string | null }) => warning)).toEqual([]);
  });
});

// The service refuses all circuits for a minute afterwards, so this comes last.
describe('All strangers on circuits', () => {
  it('share a limit, which affects no customer and no caller from elsewhere', async () => {
    const { accessToken } = await newAccount();
    for (let i = 0; i < 30; i++) expect((await look(newCircuit())).status).toBe(200);
    const refused = await look(newCircuit());
    expect([refused.status, refused.body.code]).toEqual([429, 'rate_limited']);
    expect(refused.body.detail).toBe('The limit "onion" allows 30 requests in 60 seconds.');
    expect((await anonymous('GET', '/v1/catalog/vps')).status).toBe(200);
    expect((await look(newCircuit(), { authorization: `Bearer ${accessToken}` })).status).toBe(200);
    // Logins have a limit of their own.
    expect((await login(newCircuit(), 'ada@example.org', 'no')).status).toBe(401);
  });
});
