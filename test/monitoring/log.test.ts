/** The log: its lines and levels, and the absence of everything personal. */
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { log, logFault, withoutPersons } from '../../entities/monitoring/log.ts';
import { wrongLines } from '../setup/log-lines.ts';
import { graphqlClient, newFolder, removeFolder, restClient, spawnService } from '../setup/spawn.ts';

const PERSON = { email: 'heron@example.org', password: 'a heron on the roof' };

/** Returns the lines that the work logs in this process. */
function linesOf(work: () => void) {
  const lines: string[] = [];
  const spies = (['log', 'error'] as const).map((name) =>
    vi.spyOn(console, name).mockImplementation((line) => void lines.push(line)),
  );
  onTestFinished(() => spies.forEach((spy) => void spy.mockRestore()));
  work();
  return lines.map((line) => JSON.parse(line));
}

describe('A line of the log', () => {
  it.each([
    ['connect ECONNREFUSED 203.0.113.9:8443', 'connect ECONNREFUSED …:8443'],
    ['no answer of 2001:db8::7, nor of [::1]:3001', 'no answer of …, nor of […]:3001'],
    ['::ffff:198.51.100.7 and fe80::1', '… and …'],
    ['heron+1@mail.example.org wrote', '… wrote'],
    ['postgres://service:secret@db.example.org/freehold', 'postgres://service:…/freehold'],
    ['key:fc00:dead:beef::1, host192.0.2.7x', 'key:…, host…x'],
    ['bearer abc.def', 'bearer …'],
    ['Bearer abc.def and svc_live_0123456789 and whsec_AAAA', 'Bearer … and svc_live_… and whsec_…'],
  ])('keeps nothing personal of "%s"', (text, kept) => {
    expect(withoutPersons(text)).toBe(kept);
  });

  it.each(['2026-11-29T21:00:00.000Z', 'SRV-01 at 21:00', 'node:internal/process/task_queues:95:5', 'version 18.4'])(
    'keeps "%s"',
    (text) => {
      expect(withoutPersons(text)).toBe(text);
    },
  );

  it('has the cause of a fault, and no value of a row', () => {
    const severe = Object.assign(new Error('invalid input syntax for type json: "a secret"'), { severity: 'ERROR' });
    const [line] = linesOf(() => logFault(new Error('The source coins reports no rates.', { cause: severe })));
    expect(line).toMatchObject({ level: 'error', msg: 'The source coins reports no rates.' });
    expect(line.causes).toEqual(['invalid input syntax for type json …']);
    expect(line.stack[0]).toMatch(/^at /);
  });

  it('comes only from its level on', () => {
    expect(linesOf(() => log.debug('an answer'))).toEqual([]);
    expect(linesOf(() => log.warn('a warning'))).toMatchObject([{ level: 'warn', msg: 'a warning' }]);
  });
});

describe('The log of a service', () => {
  it('has at the level debug a line for each answer, with request id and operation, and without input', async () => {
    const folder = newFolder();
    onTestFinished(() => removeFolder(folder));
    const service = await spawnService({ DATA_DIR: folder, LOG_LEVEL: 'debug' });
    onTestFinished(() => void service.process.kill('SIGKILL'));
    const { body } = await restClient(service.url)('POST', '/v1/auth/register', PERSON);
    const rest = restClient(service.url, body.tokens.access_token);
    const read = await rest('GET', '/v1/servers?label_selector=canary=word');
    await rest('POST', '/v1/servers', { service_code: 'vps-1', hostname: 'canary.example.org' });
    await rest('POST', '/v1/ssh-keys', { name: 'canary', public_key: 'ssh-ed25519 canary' });
    await rest('GET', '/v1/canary-path');
    await restClient(service.url, 'canary')('GET', '/v1/account');
    await graphqlClient(service.graphql, service.operatorToken)('{ accounts { data { email } } }');
    expect(await service.stop()).toBe(0);
    const lines = service
      .output()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toContainEqual({
      ...{ level: 'debug', time: expect.any(String), msg: 'answered' },
      ...{ request_id: read.headers.get('x-request-id'), facade: 'rest', operation: 'ListServers', status: 200 },
      ms: expect.any(Number),
    });
    expect(wrongLines(service.output())).toEqual([]);
    expect(service.output()).not.toMatch(/canary|heron|roof/);
  });

  it('has the warnings of Node and of the configuration as lines, too', async () => {
    const file = join(newFolder(), 'metrics-token');
    onTestFinished(() => removeFolder(dirname(file)));
    writeFileSync(file, 'a-token-for-the-metrics-alone', { mode: 0o644 });
    const service = await spawnService({ METRICS_TOKEN_FILE: file });
    await service.stop();
    const lines = service.output().trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ level: 'warn', msg: expect.stringContaining(`${file} can read this secret.`) }),
    );
  });

  it('has no line for an answer at the level info', async () => {
    const service = await spawnService();
    await restClient(service.url)('GET', '/v1/catalog');
    await service.stop();
    expect(service.output()).not.toContain('answered"');
    expect(wrongLines(service.output())).toEqual([]);
  });
});
