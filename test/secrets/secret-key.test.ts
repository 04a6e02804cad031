/** The start checks SECRET_KEY against the database. */
import { execFile } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Secret, TOTP } from 'otpauth';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { newId } from '../../entities/ids.ts';
import { Vault } from '../../entities/secrets.ts';
import { USER_DATA } from '../../entities/servers/server.ts';
import { hashPassword } from '../../resolvers/accounts/auth/password.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { startFreehold } from '../setup/freehold.ts';
import { freePort, MACHINE, MAIN, newFolder, removeFolder, spawnService } from '../setup/spawn.ts';
import { firstDigest, firstVersion, sealFirst } from './first-version.ts';

const [A, B] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const text = (key: Buffer) => key.toString('base64');
const REFUSAL =
  'SECRET_KEY is wrong: the database has secrets under another key. ' +
  'Start with the key that the database was made with, or name that one in SECRET_KEY_PREVIOUS.';
const FAILED = { code: 1, output: expect.stringContaining(JSON.stringify(`Freehold cannot start. ${REFUSAL}`)) };

/** Runs a start that fails. */
async function failedStart(environment: Record<string, string>) {
  const [port, internalPort] = [await freePort(), await freePort()];
  const env = { ...MACHINE, PORT: String(port), INTERNAL_PORT: String(internalPort), ...environment };
  return new Promise<{ code: number; output: string }>((done) => {
    execFile(process.execPath, [MAIN], { env, timeout: 300_000 }, (error, stdout, stderr) =>
      done({ code: Number(error?.code ?? 0), output: stdout + stderr }),
    );
  });
}

/** Starts and stops the service in this process, which is faster than one of its own. */
async function started(environment: Record<string, string>): Promise<void> {
  await (await startFreehold({ ROLES: 'api', ...environment })).stop();
}

function newDataDir(): string {
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  return folder;
}

/** All rows of all tables but those of measurements and periodic work, which also change by themselves. */
async function rowsOf(url: string): Promise<string> {
  const db = await Database.open(url, { poolSize: 1 });
  const tables = await db.query<{ name: string }>(
    `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by 1`,
  );
  const rows: unknown[] = [];
  for (const { name } of tables) rows.push(name, await db.query(`select t::text as row from ${name} as t order by 1`));
  await db.close();
  return JSON.stringify(rows);
}

describe('A service with a wrong SECRET_KEY', () => {
  it('stops with one sentence, and changes nothing', async () => {
    const DATABASE_URL = await newDatabaseUrl();
    await started({ DATABASE_URL, SECRET_KEY: text(A) });
    const before = await rowsOf(DATABASE_URL);
    const DATA_DIR = newDataDir();
    expect(await failedStart({ DATABASE_URL, SECRET_KEY: text(B), DATA_DIR })).toEqual(FAILED);
    // Without SECRET_KEY it would make one.
    await expect(startFreehold({ DATABASE_URL, SECRET_KEY: '', DATA_DIR })).rejects.toThrow(REFUSAL);
    expect(existsSync(join(DATA_DIR, 'secret-key'))).toBe(false);
    expect(await rowsOf(DATABASE_URL)).toBe(before);
  });

  it('over the embedded database says the same after its key was lost', async () => {
    const DATA_DIR = newDataDir();
    await (await spawnService({ DATA_DIR, ROLES: 'api' })).stop();
    rmSync(join(DATA_DIR, 'secret-key'));
    expect(await failedStart({ DATA_DIR })).toEqual(FAILED);
  });

  it('stops if it lacks a key that another process uses', async () => {
    const DATABASE_URL = await newDatabaseUrl();
    await started({ DATABASE_URL, SECRET_KEY: text(A) });
    await started({ DATABASE_URL, SECRET_KEY: text(B), SECRET_KEY_PREVIOUS: text(A) });
    for (const SECRET_KEY of [text(A), text(B)])
      await expect(startFreehold({ DATABASE_URL, SECRET_KEY })).rejects.toThrow(REFUSAL);
    await started({ DATABASE_URL, SECRET_KEY: text(A), SECRET_KEY_PREVIOUS: text(B) });
  });
});

describe('A database of the first versions', () => {
  const CODE = 'abcd-2345';
  const SEED = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';
  const person = { email: 'first@example.org', password: 'a heron on the roof' };

  async function withSecrets() {
    const { url, db } = await firstVersion(onTestFinished);
    const id = newId('acct');
    const account = [id, person.email, await hashPassword(person.password)];
    await db.query(
      `insert into account (id, kind, email, password_hash, totp_enabled) values ($1, 'PERSON', $2, $3, true)`,
      account,
    );
    await db.query('insert into balance (account_id) values ($1)', [id]);
    await db.query('insert into totp (account_id, seed, enabled_at, setup_expires_at) values ($1, $2, now(), now())', [
      ...[id, sealFirst(A, SEED, `totp.seed:${id}`)],
    ]);
    for (const code of [CODE, 'wxyz-6789'])
      await db.query('insert into recovery_code values ($1, $2)', [id, firstDigest(A, id, code)]);
    for (const [number, status] of Object.entries({
      'SRV-OLD1': 'PENDING',
      'SRV-OLD2': 'RUNNING',
      'SRV-OLD3': 'REBUILDING',
    }))
      await db.query(
        `insert into server (id, account_id, order_number, kind, status, hostname, service_code, region, os, user_data,
          price_month_micros, setup_fee_micros, change) values ($1, $2, $3, 'VPS', $4, 'web', 'vps-1', 'ams', 'debian-13', $5, 1, 0, $6)`,
        [
          ...[newId('srv'), id, number, status, `of ${number}`],
          status === 'REBUILDING' ? { operation: 'rebuild', userData: 'of the rebuild' } : null,
        ],
      );
    return { url, id };
  }

  it('starts with its key, and keeps second factors and user data', async () => {
    const { url, id } = await withSecrets();
    const { anonymous } = await startFreehold({ DATABASE_URL: url, SECRET_KEY: text(A), ROLES: 'api' });
    for (const totp_code of [new TOTP({ secret: Secret.fromBase32(SEED) }).generate(), CODE]) {
      const { body } = await anonymous('POST', '/v1/auth/login', { ...person, totp_code });
      expect(body.tokens.access_token).toMatch(/^svc_at_/);
    }
    const again = await anonymous('POST', '/v1/auth/login', { ...person, totp_code: CODE });
    expect(again.body.code).toBe('invalid_totp');
    const db = await Database.open(url, { poolSize: 1 });
    onTestFinished(() => db.close());
    const servers = await db.query<{ orderNumber: string; userData: Buffer | null; change: object | null }>(
      'select order_number, user_data, change from server where account_id = $1 order by order_number',
      [id],
    );
    const vault = new Vault(A);
    expect(servers.map((one) => one.userData && USER_DATA.open(vault, one.userData, one.orderNumber))).toEqual([
      'of SRV-OLD1',
      null,
      'of the rebuild',
    ]);
    expect(servers[2]!.change).toEqual({ operation: 'rebuild' });
  });

  it('does not start with another key', async () => {
    const { url } = await withSecrets();
    await expect(startFreehold({ DATABASE_URL: url, SECRET_KEY: text(B) })).rejects.toThrow(REFUSAL);
    await started({ DATABASE_URL: url, SECRET_KEY: text(A) });
  });
});
