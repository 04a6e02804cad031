import pg from 'pg';
import { expect, it, onTestFinished, vi } from 'vitest';
import { Bus, type Change } from '../../entities/database/bus.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';

const url = await newDatabaseUrl();
const observer = new pg.Client({ connectionString: url });
await observer.connect();
atEnd(() => observer.end());

const server = (id: string): Change => ({ kind: 'server', accountId: 'acct_1', id });
const eventually = (check: () => void) => vi.waitFor(check, { timeout: 240_000, interval: 20 });
const SESSIONS = `select pid from pg_stat_activity where datname = current_database() and query ~ '^listen|^select pg_notify'`;

it('A bus notices that the database says nothing, as it listens and as it sends, and connects again', async () => {
  const [one, two] = [new Bus(url), new Bus(url)];
  onTestFinished(() => Promise.all([one.close(), two.close()]).then(() => {}));
  await Promise.all([one.start(), two.start()]);
  const heard: Change[] = [];
  two.listen((change) => heard.push(change));
  one.publish([server('SRV-1')]);
  await eventually(() => expect(heard).toEqual([server('SRV-1')]));
  const { rows } = await observer.query<{ pid: number }>(SESSIONS);
  expect(rows).toHaveLength(3);
  for (const { pid } of rows) {
    process.kill(pid, 'SIGSTOP');
    onTestFinished(() => void process.kill(pid, 'SIGCONT'));
  }
  one.publish([server('SRV-2')]);
  await eventually(() => expect(heard).toContainEqual({ kind: 'credential', accountId: '', id: null }));
  one.publish([server('SRV-3')]);
  await eventually(() => expect(heard).toContainEqual(server('SRV-3')));
});
