/** Rules for the text of environment variables. */
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { networkFrom } from './entities/networks.ts';

/** A rule for the text of a variable. */
export interface Kind<T> {
  /** Ends the sentence "expected …" of an error. */
  expected: string;
  unit?: string;
  /** Returns undefined if the text is not as expected. */
  parse(text: string): T | undefined;
}

export const kind = <T>(expected: string, parse: Kind<T>['parse'], unit?: string): Kind<T> => ({
  expected,
  parse,
  unit,
});
export const matching = (expected: string, isRight: (text: string) => boolean) =>
  kind(expected, (text) => (isRight(text) ? text : undefined));
export const choice = <const T extends string>(options: readonly T[], expected = options.join(', ')) =>
  kind(expected, (text) => options.find((option) => option === text));
export const number = (min: number, max: number, unit?: string) =>
  kind(`a number from ${min} to ${max}`, (text) => (+text >= min && +text <= max ? +text : undefined), unit);
export const whole = (min: number, max: number, unit?: string) => {
  const { parse } = number(min, max);
  const wholeOnly = (text: string) => (Number.isInteger(+text) ? parse(text) : undefined);
  return kind(`a whole number from ${min} to ${max}`, wholeOnly, unit);
};
export const count = (unit: string) => whole(1, 1_000_000, unit);
export const url = (...protocols: string[]) => {
  const isRight = (text: string) => protocols.includes(URL.parse(text)?.protocol ?? '');
  return kind(`a URL with ${protocols.join(' or ')}`, (text) => (isRight(text) ? text.replace(/\/+$/, '') : undefined));
};
export const partsOf = (text: string) => text.split(',').flatMap((part) => part.trim() || []);
export const list = (expected: string, isRight: (part: string) => boolean) =>
  kind(expected, (text) => (partsOf(text).every(isRight) ? partsOf(text) : undefined));

/** Pairs as W3C's baggage writes them, and OpenTelemetry its headers: `key=value,key=value`, with percent-encoding. */
export const pairs = kind('key=value, with commas', (text): Readonly<Record<string, string>> | undefined => {
  const read = partsOf(text).map((part) => /^([^=\s]+)=(.*)$/.exec(part));
  try {
    return Object.fromEntries(read.map((found) => [decodeURIComponent(found![1]!), decodeURIComponent(found![2]!)]));
  } catch {
    return undefined;
  }
});

/** Networks in their canonical form, so that every check reads them alike. */
const networksOf = (expected: string, isRight: (part: string) => boolean) =>
  kind(`${expected}, with commas, and IPv4 without ::ffff:`, (text) => {
    const read = partsOf(text).flatMap((part) => (isRight(part) && networkFrom(part)) || []);
    return read.length === partsOf(text).length ? read : undefined;
  });

const isEndpoint = (text: string) => /^unix:\/./.test(text) || URL.parse(text)?.protocol === 'https:';

export type Role = 'api' | 'worker';
export const roles = kind('api, worker, or both with a comma', (text): ReadonlySet<Role> | undefined => {
  const names = text.split(',').map((name) => name.trim());
  return names.every((name) => name === 'api' || name === 'worker') ? new Set(names) : undefined;
});

export type Feature = 'account-update' | 'recovery';
export const features = kind(
  'account-update, recovery, or both with a comma',
  (text): ReadonlySet<Feature> | undefined => {
    const names = partsOf(text);
    return names.every((name) => name === 'account-update' || name === 'recovery') ? new Set(names) : undefined;
  },
);

export const text = matching('text', () => true);
export const flag = kind('true or false', (text) => (/^(true|false)$/.test(text) ? text === 'true' : undefined));
export const path = kind('a path', (text) => resolve(text));
export const pemFile = matching('a PEM file, for an endpoint by https', () => true);
export const port = whole(1, 65_535);
export const calls = whole(1, 1_000_000_000, 'calls');
/** A name that fits a heading, without controls. */
export const title = matching('1 to 40 characters', (text) => /^[^\p{C}]{1,40}$/u.test(text));
export const colour = kind('a colour such as #1f6f54', (text) =>
  /^#[0-9a-f]{6}$/i.test(text) ? text.toLowerCase() : undefined,
);
export const contact = matching('a URL with mailto: or https:', (text) =>
  /^(mailto:[^@\s]+@[^@\s]+|https:\/\/\S+)$/.test(text),
);
export const webUrl = url('http:', 'https:');
export const onionUrl = kind('a URL such as http://….onion', (text) =>
  /^https?:\/\/([a-z0-9-]+\.)*[a-z2-7]{56}\.onion\/?$/.test(text) ? text.replace(/\/$/, '') : undefined,
);
export const proxies = networksOf('addresses or CIDR blocks', () => true);
export const networks = networksOf('networks such as 10.0.0.0/8', (part) => part.includes('/'));
export const addresses = list('addresses, with commas', (part) => isIP(part) > 0);

/** A place of this machine to listen at: for `listen` of a server. */
export type ListenerHere = { host: string; port: number } | { path: string };
export const listenerHere = kind('127.0.0.1:port, [::1]:port or unix:/path', (text): ListenerHere | undefined => {
  const socket = /^unix:(\/.+)$/.exec(text)?.[1];
  if (socket) return { path: socket };
  const [, host = '', digits = ''] = /^(127(?:\.\d{1,3}){3}|\[::1\]):(\d{1,5})$/.exec(text) ?? [];
  const [address, number] = [host.replace(/[[\]]/g, ''), port.parse(digits)];
  return isIP(address) && number ? { host: address, port: number } : undefined;
});
export const endpoints = list('unix:/path or https://host:8443, with commas', isEndpoint);
const isKey = (text: string) => Buffer.from(text, 'base64').length === 32;
export const sealingKey = matching('32 bytes in base64', isKey);
export const sealingKeys = list('keys as SECRET_KEY, with commas', isKey);
export const operatorToken = matching(
  'a token that a service made (svc_op_…, the file operator-token in its DATA_DIR)',
  (text) => /^svc_op_[0-9A-Za-z]{38}$/.test(text),
);
export const metricsToken = matching('24 to 128 letters, digits, - and _', (text) => /^[\w-]{24,128}$/.test(text));
export const signingSecret = matching('whsec_ and 24 to 64 bytes in base64', (text) =>
  /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/.test(text),
);
