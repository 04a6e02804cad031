/** The field that a caller means by another host's word, or by a near spelling. */
import { nearest, suggestion } from '../../schema/index.ts';

/** The words of other hosts and libraries for our fields. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  hostname: ['name', 'server_name', 'display_name', 'label', 'fqdn'],
  service_code: ['server_type', 'type', 'size', 'plan', 'flavor', 'tier', 'product', 'package', 'instance_type'],
  region: ['location', 'datacenter', 'data_center', 'zone', 'bastion', 'city', 'site'],
  os: ['image', 'image_id', 'os_id', 'operating_system', 'template', 'distribution', 'distro'],
  ssh_key_ids: ['ssh_keys', 'ssh_key', 'ssh_key_id', 'sshkey_id', 'key_ids', 'keys', 'authorized_keys'],
  user_data: ['userdata', 'cloud_init', 'cloud_config', 'startup_script', 'script'],
  labels: ['tags', 'metadata'],
  root_password: ['password', 'root_pass', 'rootpass'],
  auto_renew: ['renew', 'autorenew', 'recurring'],
  max_price_usd: ['max_price', 'price_limit'],
  dry_run: ['preview', 'simulate'],
  delete_protection: ['protection', 'protected', 'termination_protection', 'lock'],
  reverse_dns: ['rdns', 'ptr', 'dns_ptr'],
  power_state: ['power', 'state', 'status', 'power_status'],
  action: ['operation', 'command'],
  amount_usd: ['amount', 'usd', 'value'],
  crypto: ['coin', 'currency', 'asset', 'payment_method'],
  public_key: ['key', 'ssh_key', 'sshkey', 'pubkey'],
  scope: ['scopes', 'permissions', 'permission', 'role', 'access'],
  expires_at: ['expires', 'expiry', 'expiration', 'valid_until'],
  ip_allowlist: ['allowed_ips', 'ips', 'cidrs', 'whitelist', 'allowlist'],
  spend_limit_usd: ['spend_limit', 'spending_limit', 'budget'],
  event_filter: ['event', 'event_types', 'topics'],
  url: ['endpoint', 'target', 'callback_url', 'webhook_url'],
  email: ['username', 'user', 'login', 'mail'],
  new_password: ['password'],
  totp_code: ['otp', 'code', 'mfa', 'two_factor_code'],
  body: ['text', 'message', 'content'],
  order_number: ['id', 'server_id', 'server', 'topup_id', 'order_id', 'order'],
  id: ['webhook_id', 'ssh_key_id', 'key_id', 'message_id'],
  key_id: ['id', 'api_key_id'],
  limit: ['per_page', 'page_size', 'size', 'count', 'first', 'max'],
  cursor: ['page', 'offset', 'after', 'next', 'next_cursor', 'starting_after', 'page_token'],
  label_selector: ['labels', 'label', 'tags', 'tag_name'],
  created_since: ['since', 'from', 'created_after', 'created_from', 'start', 'after'],
  created_until: ['until', 'to', 'created_before', 'created_to', 'end', 'before'],
  sort: ['sort_by', 'order', 'order_by', 'ordering', 'direction'],
  since: ['from', 'start', 'after'],
  until: ['to', 'end', 'before'],
  from: ['since', 'start', 'start_date', 'month', 'period'],
  to: ['until', 'end', 'end_date'],
};

/** ` Did you mean name?`, or an empty text if no field is meant. */
export function meant(name: string, fields: readonly string[]): string {
  const word = name.toLowerCase().replaceAll('-', '_');
  const candidates = fields.filter((field) => WORDS[field]?.includes(word));
  return suggestion(candidates.find((field) => field.startsWith(word)) ?? candidates[0] ?? nearest(name, fields));
}
