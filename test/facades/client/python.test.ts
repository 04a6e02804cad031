/** The Python SDK against the service, with Debian's python3. */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { x402Client } from '@x402/core/client';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { pythonOf } from '../../../facades/client/python.ts';
import { readDocument } from '../../../facades/client/typescript.ts';
import { wheelOf } from '../../../facades/downloads/wheel.ts';
import { newPayer } from '../../payments/x402/clients.ts';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';
import { between } from './proxy.ts';

const HOME = join(import.meta.dirname, '../../../facades/client/python');
const OLD = 'import sys; sys.exit(sys.version_info < (3, 10))';
const PYTHON = ['/usr/bin/python3', 'python3'].find((command) => spawnSync(command, ['-c', OLD]).status === 0);
if (!PYTHON) console.log('Skipped: the Python SDK needs python3, 3.10 or newer.');

const { publicUrl, newAccount } = await startFreehold();
const folder = newFolder();
atEnd(() => removeFolder(folder));
const { name, wheel } = wheelOf(HOME);
writeFileSync(join(folder, name), wheel);

/** Runs a program with the SDK from its wheel. Returns the lines that it shows, but those with an answer. */
async function python(
  program: string,
  url = publicUrl,
  token = '',
  answer?: (line: string) => Promise<string | undefined>,
): Promise<unknown[]> {
  const start = `import json, os\nfrom freehold import *\nfreehold = Freehold(os.environ["URL"], os.environ["TOKEN"] or None)\n
def show(value): print(json.dumps(value), flush=True)\n${program}`;
  const env = { PATH: process.env.PATH, PYTHONPATH: join(folder, name), URL: url, TOKEN: token };
  const child = spawn(PYTHON!, ['-W', 'error', '-c', start], { env });
  const faults = text(child.stderr);
  const lines: unknown[] = [];
  let rest = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    const parts = `${rest}${chunk}`.split('\n');
    rest = parts.pop()!;
    for (const line of parts.map((part) => JSON.parse(part))) {
      const reply = await answer?.(line);
      if (reply) child.stdin.write(`${reply}\n`);
      else lines.push(line);
    }
  }
  expect(await faults).toBe('');
  return lines;
}

async function token(usd = 0): Promise<string> {
  const account = await newAccount();
  if (usd) await account.fund(usd);
  return account.accessToken;
}

it('The types of Python follow the OpenAPI document. `node facades/client/python.ts` writes them', () => {
  expect(readFileSync(join(HOME, 'freehold/_api.py'), 'utf8')).toBe(pythonOf(readDocument()));
});

describe.skipIf(!PYTHON)('A customer with Python', () => {
  it('registers, orders a server, waits until it runs, and deletes it', async () => {
    const program = `
tokens = freehold.account.register(email="python@example.org", password="correct horse battery")["tokens"]
freehold = Freehold(os.environ["URL"] + "/", tokens["access_token"])
top_up = freehold.top_ups.create(amount_usd=50, crypto="USDC-BASE")
show(freehold.top_ups.settled(top_up["order_number"])["status"])
key = freehold.ssh_keys.add(public_key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKkm4o3AUy9jM9UwkKx6CTVn0hlpPpAZYSbY9mNu7SYv")
order = freehold.servers.order(service_code="vps-1", ssh_key_ids=[key["id"]])
show(order.ready()["status"])
freehold.servers.stop(order.order_number)
show(freehold.servers.settled(order.order_number, "stopped")["status"])
show([one["order_number"] == order.order_number for one in freehold.servers.list(status=["stopped"])])
show(freehold.servers.delete(order.order_number)["status"])`;
    expect(await python(program)).toEqual(['confirmed', 'running', 'stopped', [true], 'deleting']);
  });

  it('iterates over all pages of a list, and stops where it likes', async () => {
    const program = `
for name in "abcde": freehold.api_keys.create(name=name, scope="read")
show([key["name"] for key in freehold.api_keys.list(limit=2)])
show([key["name"] for key in freehold.api_keys.list(limit=2).all(3)])
page = freehold.api_keys.list(limit=2).page()
show([page.has_more, len(page.data)])`;
    expect(await python(program, publicUrl, await token())).toEqual([
      ['e', 'd', 'c', 'b', 'a'],
      ['e', 'd', 'c'],
      [true, 2],
    ]);
  });

  it('learns prices and bookings, and calls operations and paths without a method', async () => {
    const program = `
show(freehold.servers.quote(service_code="vps-1")["total_usd"])
show(len(freehold.account.usage(from_="2020-01-01", to="2020-01-31").all()))
show(freehold.call("ListSessions", limit=1)["data"][0]["current"])
show(freehold.api("GET", "/v1/account/balance")["balance_usd"])`;
    expect(await python(program, publicUrl, await token(100))).toEqual([6, 0, true, 100]);
  });

  it('gets an error with the code, the refused fields and the id of the call', async () => {
    const program = `
try: freehold.servers.order(service_code="vps1")
except FreeholdError as error:
    show([error.status, error.code, error.errors[0]["field"], bool(error.request_id and error.idempotency_key), str(error)])
try: Freehold("http://127.0.0.1:1", tries=1).catalog.get()
except FreeholdError as error: show([error.status, error.code, error.detail])`;
    expect(await python(program, publicUrl, await token())).toEqual([
      [422, 'unknown_service_code', 'service_code', true, expect.stringContaining('Did you mean vps-1?')],
      [0, 'no_answer', expect.stringMatching(/^http:\/\/127\.0\.0\.1:1 does not answer: /)],
    ]);
  });

  it('repeats a call with its key when its answer is lost or refused for now, and acts once', async () => {
    const busy = async () => Response.json({ code: 'x', retryable: true }, { status: 503 });
    const { url, keys } = await between(publicUrl, [
      async (forward) => {
        await forward();
        throw new Error('The answer is lost.');
      },
      busy,
    ]);
    const program = `
order = freehold.servers.order(service_code="vps-1")
show([one["order_number"] == order.order_number for one in freehold.servers.list()])`;
    expect(await python(program, url, await token(100))).toEqual([[true]]);
    expect(new Set(keys.slice(0, 3)).size).toBe(1);
  });

  it('never repeats a call without a key, and waits for no pause of more than a minute', async () => {
    const away = async () => {
      throw new Error('away');
    };
    const later = async () => Response.json({ code: 'x' }, { status: 429, headers: { 'retry-after': '3600' } });
    const { url, keys } = await between(publicUrl, [away, later]);
    const program = `
for call in (lambda: freehold.account.login(email="a@example.org", password="x"), freehold.account.balance):
    try: call()
    except FreeholdError as error: show([error.code, error.retry_after])`;
    expect(await python(program, url, await token())).toEqual([
      ['no_answer', null],
      ['x', 3600],
    ]);
    expect(keys).toHaveLength(2);
  });

  it('keeps its API key when an answer points to another address', async () => {
    const { url, keys } = await between(publicUrl, []);
    const moved = await between(publicUrl, [
      async () => new Response('{}', { status: 307, headers: { location: `${url}/v1/account` } }),
    ]);
    const program = `
try: freehold.account.get()
except FreeholdError as error: show(error.status)`;
    expect(await python(program, moved.url, await token())).toEqual([307]);
    expect(keys).toEqual([]);
  });

  it('pays by x402 with its own signer', async () => {
    const signer = new x402Client().setSpendControls({ maxAmountPerPayment: '$10000' });
    registerExactEvmScheme(signer, { signer: newPayer() });
    const program = `
def pay(demand):
    show(demand.header)
    return input()
freehold = Freehold(os.environ["URL"], os.environ["TOKEN"], pay=pay)
show(freehold.servers.order(service_code="vps-1").server["paid_by"])
show(freehold.with_options(payment="x402").top_ups.create(amount_usd=30)["mode"])`;
    const lines = await python(program, publicUrl, await token(), async (line) => {
      if (line === 'x402') return undefined;
      const demand = JSON.parse(Buffer.from(line, 'base64').toString());
      return encodePaymentSignatureHeader(await signer.createPaymentPayload(demand));
    });
    expect(lines).toEqual(['x402', 'x402']);
  });

  it('verifies webhook messages', async () => {
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const now = new Date();
    const headers = (key: string, time = now) => ({
      'Webhook-Id': 'evt_1',
      'Webhook-Timestamp': String(Math.floor(time.getTime() / 1000)),
      'Webhook-Signature': `v1,AAAA ${new Webhook(key).sign('evt_1', time, '{"id":"evt_1"}')}`,
    });
    const cases = [
      headers(secret),
      headers('whsec_AAAA'),
      headers(secret, new Date(now.getTime() - 400_000)),
      { ...headers(secret), 'Webhook-Timestamp': 'now' },
      {},
    ];
    const program = `
for headers in json.loads('''${JSON.stringify(cases)}'''):
    try: show(verify_webhook('{"id":"evt_1"}', headers, "${secret}")["id"])
    except ValueError as error: show(str(error))`;
    expect(await python(program)).toEqual([
      'evt_1',
      'No signature of the message is right.',
      'The time of the message is too far from now.',
      'The time of the message is no number.',
      'The header webhook-id is missing.',
    ]);
  });
});
