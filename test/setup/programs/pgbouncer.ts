/** A PgBouncer in transaction mode, from Debian. Local test runs may go without it; CI has it. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { eventually } from '../freehold.ts';
import { say } from '../say.ts';
import { freePort, newFolder, type OnEnd, removeFolder } from '../spawn.ts';

export const hasPgBouncer = spawnSync('pgbouncer', ['--version']).status === 0;
if (!hasPgBouncer) say('Skipped: a pooler in transaction mode, because there is no pgbouncer (Debian: pgbouncer).');

/** Starts it before a server, with few sessions. The given hook stops it. @returns the URL through it */
export async function startPgBouncer(databaseUrl: string, sessions: number, onEnd: OnEnd): Promise<string> {
  const folder = newFolder();
  const [port, { hostname, port: serverPort, username }] = [await freePort(), new URL(databaseUrl)];
  writeFileSync(join(folder, 'users'), `"${username}" ""\n`);
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=${hostname} port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${folder}/users
pool_mode = transaction
server_login_retry = 1
default_pool_size = ${sessions}
`,
  );
  chmodSync(join(folder, 'users'), 0o644);
  const user = process.getuid?.() === 0 ? ['--user=postgres'] : [];
  const pooler = spawn('pgbouncer', ['--quiet', ...user, join(folder, 'pgbouncer.ini')], { stdio: 'ignore' });
  onEnd(async () => {
    pooler.kill('SIGKILL');
    await once(pooler, 'exit');
    removeFolder(folder);
  });
  const url = Object.assign(new URL(databaseUrl), { host: `127.0.0.1:${port}` }).href;
  await eventually(async () => {
    const client = new pg.Client(url);
    client.on('error', () => {});
    return client.connect().then(
      () => client.end().then(() => true),
      () => false,
    );
  }, 10);
  return url;
}
