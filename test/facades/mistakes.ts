/**
 * Natural mistakes: words of other hosts, near misses, other formats. A row has an operation and its input. The
 * answer must name the field, the value, and the rest of the row. `{Operation}` is its endpoint, or its tool.
 */
export type Mistake = readonly [operation: string, sent: Record<string, unknown>, field: string, ...says: string[]];

const vps = { service_code: 'vps-1' };
const key = { name: 'key', scope: 'read' };
const hook = { url: 'https://example.org/hook', event_filter: '*' };
const account = { email: 'mistaken@example.org', password: 'a heron on the roof' };
const topUp = { amount_usd: 30, crypto: 'BTC' };

const order = (field: string, value: unknown, ...says: string[]): Mistake => [
  'OrderServer',
  { ...vps, [field]: value },
  field,
  ...says,
];
/** A field of another host, which replaces ours. */
const instead = (operation: string, sent: object, theirs: string, ours: string, value: unknown = 'x'): Mistake => {
  const { [ours]: _, ...others } = sent as Record<string, unknown>;
  return [operation, { ...others, [theirs]: value }, theirs, `Did you mean ${ours}?`];
};

export const MISTAKES: readonly Mistake[] = [
  // Codes of the catalog.
  ...['vps1', 'VPS-1', 'vps_1', 'vps 1'].map((code) =>
    order('service_code', code, 'Did you mean vps-1?', '{GetCatalog}'),
  ),
  ...['vps-9', 'vps-10', 'vsp-2'].map((code) => order('service_code', code, 'Did you mean vps-', '{GetCatalog}')),
  ...['cx11', 's-1vcpu-1gb', 'vc2-1c-1gb', 't3.micro', 'small', 'g6-nanode-1'].map((code) =>
    order('service_code', code, 'vps-1', 'ded-1', '{GetCatalog}'),
  ),
  ...['dedicated-1', 'ded1', 'DED-1'].map((code) => order('service_code', code, '{GetCatalog}')),
  ...['AMS', 'amsterdam', 'Amsterdam', 'ams1', 'ams3'].map((code) =>
    order('region', code, 'Did you mean ams?', '{ListBastions}'),
  ),
  ...['fsn1', 'nyc3', 'eu-central', 'us-east-1', 'fra'].map((code) =>
    order('region', code, 'ams, zrh', '{ListBastions}'),
  ),
  ...['zurich', 'Zürich'].map((code) => order('region', code, '{ListBastions}')),
  ...['ubuntu', 'ubuntu-22.04', 'ubuntu-24', 'Ubuntu 24.04', 'ubuntu-24-04-x64'].map((code) =>
    order('os', code, 'Did you mean ubuntu-24.04?', '{ListOsImages}'),
  ),
  ...['debian13', 'Debian-13', 'debian 13', 'debian_13'].map((code) => order('os', code, 'Did you mean debian-13?')),
  ...['debian', 'debian-11', 'debian-12-x64'].map((code) => order('os', code, 'Did you mean debian-1')),
  ...['windows', 'windows-2022', 'arch'].map((code) => order('os', code, '{ListOsImages}')),
  ...['almalinux-9', 'alma9', 'alma', 'rocky9', 'rockylinux-9', 'alpine'].map((code) =>
    order('os', code, 'Did you mean'),
  ),
  // Fields of other hosts.
  ...['server_type', 'type', 'size', 'flavor', 'tier', 'product', 'serviceCode'].map((name) =>
    instead('OrderServer', vps, name, 'service_code', 'vps-1'),
  ),
  ...['name', 'server_name', 'label', 'host_name', 'fqdn'].map((name) =>
    instead('OrderServer', vps, name, 'hostname', 'web'),
  ),
  ...['datacenter', 'zone', 'city'].map((name) => instead('OrderServer', vps, name, 'region', 'ams')),
  ...['image_id', 'os_id', 'operating_system', 'distro'].map((name) => instead('OrderServer', vps, name, 'os')),
  ...['ssh_keys', 'sshkey_id', 'ssh_key_id', 'authorized_keys'].map((name) =>
    instead('OrderServer', vps, name, 'ssh_key_ids', []),
  ),
  ...['userdata', 'cloud_init', 'startup_script'].map((name) => instead('OrderServer', vps, name, 'user_data')),
  ...['tags', 'metadata'].map((name) => instead('OrderServer', vps, name, 'labels', {})),
  instead('OrderServer', vps, 'password', 'root_password'),
  instead('OrderServer', vps, 'max_price', 'max_price_usd', 6),
  ...['amount', 'usd', 'amountUsd'].map((name) => instead('CreateTopup', topUp, name, 'amount_usd', 30)),
  ...['coin', 'currency', 'asset'].map((name) => instead('CreateTopup', topUp, name, 'crypto', 'BTC')),
  ...['scopes', 'permissions', 'role'].map((name) => instead('CreateApiKey', key, name, 'scope', 'read')),
  ...['expires', 'expiry', 'expiresAt'].map((name) =>
    instead('CreateApiKey', { ...key, expires_at: 1 }, name, 'expires_at'),
  ),
  ...['allowed_ips', 'whitelist', 'cidrs'].map((name) => instead('CreateApiKey', key, name, 'ip_allowlist', [])),
  ...['endpoint', 'callback_url', 'target'].map((name) => instead('CreateWebhook', hook, name, 'url')),
  ...['key', 'ssh_key', 'pubkey', 'publicKey'].map((name) =>
    instead('AddSshKey', { public_key: '' }, name, 'public_key'),
  ),
  ...['username', 'user', 'mail'].map((name) => instead('Register', account, name, 'email', 'a@example.org')),
  ...['text', 'message', 'content'].map((name) => instead('WriteMessage', { subject: 'x', body: 'y' }, name, 'body')),
  // Formats.
  ...['-web', 'web_1', 'web..example', 'web server', 'https://web.example', 'a'.repeat(70)].map((name) =>
    order('hostname', name, 'RFC 1123', 'web-1.example.com'),
  ),
  order('ssh_key_ids', ['laptop'], 'laptop', '{ListSshKeys}'),
  order('labels', { 'Not OK': 'x' }, 'Not OK', 'lower-case'),
  order('labels', ['env'], 'object'),
  order('auto_renew', 'yes', 'boolean'),
  order('max_price_usd', '6 USD', 'number'),
  order('max_price_usd', -1, 'at least 0'),
  order('service_code', 5, 'string'),
  ['OrderServer', {}, 'service_code', 'required'],
  ['OrderServer', { ...vps, root_password: 'short' }, 'root_password', 'at least 12 characters'],
  ...['DOGE', 'dogecoin', 'EUR', 'visa'].map(
    (coin): Mistake => ['CreateTopup', { ...topUp, crypto: coin }, 'crypto', '{ListCoins}'],
  ),
  ...['bitcoin', 'Litecoin', 'monero', 'ethereum'].map(
    (coin): Mistake => ['CreateTopup', { ...topUp, crypto: coin }, 'crypto', 'Did you mean', '{ListCoins}'],
  ),
  ['CreateTopup', { ...topUp, amount_usd: 5 }, 'amount_usd', 'at least 30'],
  ['CreateTopup', { ...topUp, amount_usd: '30 USD' }, 'amount_usd', 'number'],
  ['CreateTopup', { ...topUp, amount_usd: -30 }, 'amount_usd', 'at least 30'],
  ...['bob', 'bob@', '@example.org', 'bob example.org'].map(
    (email): Mistake => ['Register', { ...account, email }, 'email', 'An email address', 'you@example.com'],
  ),
  ['Register', { ...account, password: '123' }, 'password', 'at least 8 characters'],
  ['Register', { email: account.email }, 'password', 'required'],
  ...['admin', 'write', 'READ', 'read,servers'].map(
    (scope): Mistake => ['CreateApiKey', { ...key, scope }, 'scope', 'read, servers, billing and full'],
  ),
  ...['tomorrow', '24.12.2026', '2026-12-24', '1 year'].map(
    (time): Mistake => ['CreateApiKey', { ...key, expires_at: time }, 'expires_at', 'RFC 3339', '2026-'],
  ),
  ['CreateApiKey', { ...key, ip_allowlist: ['10.0.0.0/33'] }, 'ip_allowlist', 'Entry 1', '203.0.113.0/24'],
  ['CreateApiKey', { ...key, ip_allowlist: ['example.org'] }, 'ip_allowlist', 'Entry 1'],
  ['CreateApiKey', { ...key, spend_limit_usd: 'ten' }, 'spend_limit_usd', 'number'],
  ...['server.ready', 'server_running', 'order.created'].map(
    (event): Mistake => ['CreateWebhook', { ...hook, event_filter: event }, 'event_filter', 'server.running'],
  ),
  ...['yesterday', '24.12.2026', '2026-13-01', '12/24/2026'].map(
    (day): Mistake => ['GetUsage', { from: day }, 'from', 'RFC 3339', '2026-'],
  ),
  ...['yesterday', '2026-01', '1735689600'].map(
    (time): Mistake => ['GetAuditLog', { since: time }, 'since', 'RFC 3339', '2026-'],
  ),
  ...['up', 'active', 'on', 'Running'].map(
    (status): Mistake => ['ListServers', { status: [status] }, 'status', 'running'],
  ),
  ['ListTopups', { status: 'paid' }, 'status', 'confirmed'],
  ['ListServers', { limit: 500 }, 'limit', 'at most 200'],
  ['ListServers', { limit: 0 }, 'limit', 'at least 1'],
  ...['per_page', 'page_size'].map((name) => instead('ListServers', {}, name, 'limit', 10)),
  ...['page', 'offset', 'starting_after'].map((name) => instead('ListServers', {}, name, 'cursor', 2)),
  ...['tags', 'tag_name'].map((name) => instead('ListServers', {}, name, 'label_selector')),
  // Things that do not exist.
  ...['web-1', '42', 'SRV-0000000000'].map(
    (id): Mistake => ['GetServer', { order_number: id }, 'order_number', '{ListServers}'],
  ),
  ['UpdateServer', { order_number: 'web-1', power_state: 'off' }, 'order_number', '{ListServers}'],
  ['GetTopup', { order_number: 'TOP-0000000000' }, 'order_number', '{ListTopups}'],
  ['GetSshKey', { id: 'laptop' }, 'id', '{ListSshKeys}'],
  ['DeleteSshKey', { id: 'laptop' }, 'id', '{ListSshKeys}'],
  ['DeleteWebhook', { id: 'mine' }, 'id', '{ListWebhooks}'],
  ['RevokeApiKey', { key_id: 'backup' }, 'key_id', '{ListApiKeys}'],
  ['GetCatalogItem', { code: 'vps1' }, 'code', '{GetCatalog}'],
  ...['restart', 'stopped', 'shutdown'].map(
    (state): Mistake => ['UpdateServer', { order_number: '{server}', power_state: state }, 'power_state', 'on, off'],
  ),
  ...['start', 'stop', 'reinstall'].map(
    (action): Mistake => ['UpdateServer', { order_number: '{server}', action }, 'action', 'reboot, reset, rebuild'],
  ),
  ['UpdateServer', { order_number: '{server}', status: 'off' }, 'status', 'Did you mean power_state?'],
  ['UpdateServer', { order_number: '{server}', service_code: 'vps2' }, 'service_code', 'Did you mean vps-2?'],
];

/** Requests of REST to paths that do not exist, and the words of the answer. */
export const PATHS: readonly (readonly [method: string, path: string, ...says: string[]])[] = [
  ...['/v1/droplets', '/v1/instances', '/v1/linodes', '/v1/server', '/servers', '/v2/servers', '/api/v1/servers'].map(
    (path) => ['GET', path, 'Did you mean /v1/servers?'] as const,
  ),
  ...['reboot', 'reset', 'rebuild'].map(
    (act) => ['POST', `/v1/servers/SRV-1/${act}`, 'PATCH /v1/servers/{order_number}', `action "${act}"`] as const,
  ),
  ['POST', '/v1/servers/1/actions/poweroff', 'PATCH /v1/servers/{order_number}', 'power_state "off"'],
  ['POST', '/v1/servers/1/start', 'power_state "on"'],
  ['POST', '/v1/servers/1/constructor', 'There is no such path. Did you mean /v1/servers?'],
  ['GET', '/v1/regions', '/v1/catalog/bastions'],
  ['GET', '/v1/locations', '/v1/catalog/bastions'],
  ['GET', '/v1/images', '/v1/catalog/images'],
  ['GET', '/v1/server_types', '/v1/catalog'],
  ['GET', '/v1/plans', '/v1/catalog'],
  ['GET', '/v1/ssh_keys', '/v1/ssh-keys'],
  ['GET', '/v1/balance', '/v1/account/balance'],
  ['POST', '/v1/login', '/v1/auth/login'],
  ['POST', '/v1/signup', '/v1/auth/register'],
  ['POST', '/v1/topups', '/v1/billing/topups'],
  ['GET', '/v1/acount', '/v1/account'],
  ['PUT', '/v1/servers', 'GET', 'POST'],
  ['DELETE', '/v1/account/balance', 'GET'],
];
