import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { configurationMarkdown, readConfig } from '../config.ts';
import { atEnd } from './setup/end.ts';
import { newFolder, removeFolder } from './setup/spawn.ts';

describe('The configuration', () => {
  it('is printed in docs/operate/configuration.md', async () => {
    await expect(configurationMarkdown()).toMatchFileSnapshot('../docs/operate/configuration.md');
  });

  it('is complete with nothing set, and empty means unset', () => {
    const config = readConfig({});
    expect(config).toMatchObject({
      host: '127.0.0.1',
      port: 3000,
      internalPort: 3001,
      publicUrl: 'http://localhost:3000',
      databaseUrl: undefined,
    });
    expect([...config.roles]).toEqual(['api', 'worker']);
    expect(readConfig({ PORT: '', DATABASE_URL: ' ', ROLES: '' })).toEqual(config);
  });

  it('accepts the URL and secret of reverse DNS, and refuses malformed ones', () => {
    expect(readConfig({}).reverseDnsUrl).toBeUndefined();
    expect(readConfig({ REVERSE_DNS_URL: 'http://10.0.0.1/ptr' }).reverseDnsUrl).toBe('http://10.0.0.1/ptr');
    expect(() => readConfig({ REVERSE_DNS_URL: 'ns1' })).toThrow('REVERSE_DNS_URL');
    expect(() => readConfig({ REVERSE_DNS_SECRET: 'hush' })).toThrow('REVERSE_DNS_SECRET');
  });

  it('uses the set values', () => {
    const config = readConfig({
      PORT: '8080',
      ROLES: 'worker',
      LIMIT_API_KEYS: '3',
      PUBLIC_URL: 'https://api.example.org/',
      SIMULATED_PAYMENT_SECONDS: '0.5',
    });
    expect(config).toMatchObject({
      port: 8080,
      publicUrl: 'https://api.example.org',
      simulatedPaymentSeconds: 0.5,
      limits: { apiKeys: 3, servers: 25 },
    });
    expect([...config.roles]).toEqual(['worker']);
  });

  it('counts calls in a shared store if other processes may exist', () => {
    const store = (environment: Record<string, string>) => readConfig(environment).rateLimitStore;
    expect(store({})).toBe('memory');
    expect(store({ DATABASE_URL: 'postgres://x' })).toBe('postgres');
    expect(store({ DATABASE_URL: 'postgres://x', REDIS_URL: 'redis://x' })).toBe('redis');
    expect(store({ DATABASE_URL: 'postgres://x', REDIS_URL: 'redis://x', RATE_LIMIT_STORE: 'memory' })).toBe('memory');
    const { rateLimits, trustedProxyCidrs } = readConfig({
      RATE_LIMIT_KEY_PER_MINUTE: '7',
      TRUSTED_PROXY_CIDRS: '10.0.0.0/8, ::1',
    });
    expect(rateLimits).toEqual({
      ...{ keyPerMinute: 7, keyPerHour: 3000, publicPerMinute: 30, onionPerMinute: 600, pagesPerMinute: 300 },
      ...{ unpaidPerHour: 60, accountPerMinute: 600, accountPerHour: 12_000 },
    });
    expect(trustedProxyCidrs).toEqual(['10.0.0.0/8', '::1/128']);
  });

  it('reads the endpoints of LXD or Incus, and requires certificates for https', () => {
    expect(readConfig({}).lxc).toBeUndefined();
    expect(readConfig({ LXC_ENDPOINTS: 'unix:/run/lxd.socket', LXC_NAMESERVERS: '9.9.9.9' }).lxc).toEqual({
      endpoints: ['unix:/run/lxd.socket'],
      tls: undefined,
      project: 'freehold',
      pool: 'default',
      network: 'lxdbr0',
      nameservers: ['9.9.9.9'],
      openMail: false,
      probeCommand: undefined,
    });
    const cluster = { LXC_ENDPOINTS: 'https://a:8443, https://b:8443' };
    expect(() => readConfig(cluster)).toThrow('LXC_ENDPOINTS by https need LXC_CLIENT_CERT_FILE. Set it to a PEM file');
    const files = { LXC_CLIENT_CERT_FILE: 'c', LXC_CLIENT_KEY_FILE: 'k', LXC_SERVER_CERT_FILE: 's' };
    expect(readConfig({ ...cluster, ...files }).lxc).toMatchObject({
      endpoints: ['https://a:8443', 'https://b:8443'],
      tls: { certificateFile: 'c', keyFile: 'k', serverCertificateFile: 's' },
    });
    expect(() => readConfig({ LXC_ENDPOINTS: 'unix:/s', LXC_NAMESERVERS: 'nine' })).toThrow(
      /^LXC_NAMESERVERS is wrong/,
    );
  });

  it('has a listener for hosts only with a port', () => {
    expect(readConfig({})).toMatchObject({ dedicatedDriver: 'simulated', provisioningPort: undefined });
    expect(readConfig({ PROVISIONING_PORT: '8080' })).toMatchObject({ provisioningPort: 8080 });
    expect(readConfig({ DEDICATED_DRIVER: 'bmc' })).toMatchObject({ dedicatedDriver: 'bmc' });
  });

  it('has a listener for an onion service only on this machine', () => {
    const listener = (text: string) => readConfig({ ONION_LISTENER: text }).onionListener;
    expect(listener('')).toBeUndefined();
    expect(listener('127.0.0.1:3003')).toEqual({ host: '127.0.0.1', port: 3003 });
    expect(listener('[::1]:3003')).toEqual({ host: '::1', port: 3003 });
    expect(listener('unix:/run/freehold/onion.sock')).toEqual({ path: '/run/freehold/onion.sock' });
    expect(() => listener('0.0.0.0:3003')).toThrow(
      'ONION_LISTENER is wrong: expected 127.0.0.1:port, [::1]:port or unix:/path.',
    );
  });

  it.each([
    [{ DATABASE_READ_URL: 'postgres://x' }, 'DATABASE_READ_URL needs DATABASE_URL'],
    [{ DATABASE_POOLER_URL: 'postgres://x' }, 'DATABASE_POOLER_URL needs DATABASE_URL'],
    [{ ONION_URL: `http://${'a'.repeat(56)}.onion` }, 'ONION_URL needs ONION_LISTENER, where Tor connects'],
    [{ RATE_LIMIT_STORE: 'redis' }, 'RATE_LIMIT_STORE=redis needs REDIS_URL. Set it, or use postgres or memory'],
    [{ MIGRATION_DATABASE_URL: 'postgres://x' }, 'MIGRATION_DATABASE_URL needs DATABASE_URL'],
  ])('stops at %j, which needs another variable', (environment, sentence) => {
    expect(() => readConfig(environment)).toThrow(sentence);
  });

  it.each([
    ['ONION_LISTENER', '192.0.2.7:3003'],
    ['ONION_LISTENER', '[::]:3003'],
    ['ONION_LISTENER', 'freehold.example:3003'],
    ['ONION_LISTENER', '127.0.0.1.example:3003'],
    ['ONION_LISTENER', '127.0.0.256:3003'],
    ['ONION_LISTENER', '127.0.0.1'],
    ['ONION_LISTENER', '127.0.0.1:70000'],
    ['ONION_LISTENER', 'unix:'],
    ['LXC_ENDPOINTS', 'http://a:8443'],
    ['LXC_ENDPOINTS', 'here'],
    ['ALLOW_SIMULATED', 'perhaps'],
    ['RATE_LIMIT_STORE', 'paper'],
    ['RATE_LIMIT_PUBLIC_PER_MINUTE', '0'],
    ['ONION_URL', 'https://example.org'],
    ['REDIS_URL', 'http://x'],
    ['TRUSTED_PROXY_CIDRS', '10.0.0.0/33'],
    ['TRUSTED_PROXY_CIDRS', 'everybody'],
    ['TRUSTED_PROXY_CIDRS', 'fe80::1%eth0'],
    ['TRUSTED_PROXY_CIDRS', '::ffff:10.0.0.1/32'],
    ['PORT', 'eighty'],
    ['PORT', '70000'],
    ['PORT', '80.5'],
    ['ROLES', 'api,cook'],
    ['DATABASE_URL', 'mysql://x'],
    ['MIGRATION_DATABASE_URL', 'mysql://x'],
    ['PUBLIC_URL', 'nonsense'],
    ['SECRET_KEY', 'short'],
    ['OPERATOR_TOKEN', 'password'],
    ['LIMIT_SERVERS', '-1'],
    ['WEBHOOK_ALLOW_CIDRS', '127.0.0.1'],
    ['WEBHOOK_ALLOW_CIDRS', '127.0.0.0/33'],
    ['WEBHOOK_ALLOW_CIDRS', '127.0.0.0/8/8'],
    ['WEBHOOK_ALLOW_CIDRS', '::ffff:127.0.0.1/32'],
    ['SIMULATED_PROVISION_SECONDS', 'NaN'],
    ['DEDICATED_DRIVER', 'paper'],
    ['PROVISIONING_PORT', '0'],
  ])('stops at a wrong %s and names the expected value', (name, value) => {
    expect(() => readConfig({ [name]: value })).toThrow(new RegExp(`^${name} is wrong: expected .+\\.$`));
  });
});

describe('A secret', () => {
  const folder = newFolder();
  atEnd(() => removeFolder(folder));
  const kept = (name: string, text: string, mode = 0o600) => {
    const file = join(folder, name);
    writeFileSync(file, text);
    chmodSync(file, mode);
    return file;
  };
  const key = Buffer.alloc(32, 1).toString('base64');
  const token = `svc_op_${'a'.repeat(38)}`;

  it.each([
    ['SECRET_KEY', 'secretKey', key, key],
    ['SECRET_KEY_PREVIOUS', 'secretKeyPrevious', `${key},${key}`, [key, key]],
    ['OPERATOR_TOKEN', 'operatorToken', token, token],
    ['DATABASE_URL', 'databaseUrl', 'postgres://x', 'postgres://x'],
    ['REDIS_URL', 'redisUrl', 'redis://x', 'redis://x'],
    ['REVERSE_DNS_SECRET', 'reverseDnsSecret', `whsec_${key}`, `whsec_${key}`],
  ] as const)('comes from the file of %s_FILE', (name, member, text, value) => {
    expect(readConfig({ [`${name}_FILE`]: kept(name, `${text}\n`) })[member]).toEqual(value);
  });

  it('has one source', () => {
    const SECRET_KEY_FILE = kept('twice', key);
    expect(() => readConfig({ SECRET_KEY: key, SECRET_KEY_FILE })).toThrow(
      'SECRET_KEY and SECRET_KEY_FILE are both set. Unset one of them.',
    );
    expect(readConfig({ SECRET_KEY: ' ', SECRET_KEY_FILE }).secretKey).toBe(key);
  });

  it.each([
    [
      'a missing file',
      () => join(folder, 'missing'),
      /^SECRET_KEY_FILE is wrong: the service cannot read .+ \(ENOENT\)\.$/,
    ],
    ['a folder', () => folder, /^SECRET_KEY_FILE is wrong: the service cannot read .+ \(EISDIR\)\.$/],
    [
      'a file that everybody can write',
      () => kept('open', key, 0o606),
      /^SECRET_KEY_FILE is wrong: other users can write .+chmod 600/,
    ],
    ['an empty file', () => kept('empty', '\n'), /^SECRET_KEY_FILE is wrong: .+ is empty\.$/],
    [
      'a file with something else',
      () => kept('other', 'short'),
      /^SECRET_KEY_FILE is wrong: expected 32 bytes in base64\.$/,
    ],
  ])('is refused from %s', (_, file, sentence) => {
    expect(() => readConfig({ SECRET_KEY_FILE: file() })).toThrow(sentence);
  });

  it('comes with a warning from a file that everybody can read, as Docker makes them', () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
    onTestFinished(() => warned.mockRestore());
    const file = kept('readable', key, 0o444);
    expect(readConfig({ SECRET_KEY_FILE: file }).secretKey).toBe(key);
    expect(warned.mock.calls).toEqual([[expect.stringContaining(`${file} can read this secret.`)]]);
  });

  it('alone comes from a file', () => {
    expect(readConfig({ HOST_FILE: kept('host', '0.0.0.0') }).host).toBe('127.0.0.1');
  });
});
