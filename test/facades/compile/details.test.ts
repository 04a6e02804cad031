/** The errors of an input: they cost little, however many there are, and they keep secrets. */
import { expect, it } from 'vitest';
import { checker } from '../../../facades/compile/details.ts';
import { shortened } from '../../../schema/index.ts';

const members = (count: number, value: unknown = 1) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`member${i}`, value]));
const part = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
  additionalProperties: false,
};
const texts = { type: 'array', maxItems: 50, items: { type: 'string', maxLength: 3 } };
const check = checker({
  type: 'object',
  properties: {
    names: texts,
    parts: { type: 'array', maxItems: 100, items: part },
    filter: { anyOf: [{ type: 'string' }, texts] },
    labels: {
      type: 'object',
      maxProperties: 20,
      propertyNames: { pattern: '^env$' },
      additionalProperties: { type: 'string' },
    },
  },
  additionalProperties: false,
});

/** The least milliseconds of many runs, so that other work of the machine does not count. */
function least(work: () => unknown): number {
  const times = Array.from({ length: 40 }, () => {
    const began = performance.now();
    work();
    return performance.now() - began;
  });
  return Math.min(...times);
}

it.each<[string, object, number]>([
  ['unknown members', members(9_900), 50],
  ['unknown members of a member', { parts: [members(9_900)] }, 50],
  ['unknown members of many objects', { parts: Array(100).fill(members(99)) }, 50],
  ['wrong items', { names: Array(9_900).fill(1) }, 50],
  ['wrong objects', { parts: Array(9_900).fill({ title: 'x' }) }, 50],
  ['wrong items of a list that may be a text', { filter: Array(9_900).fill(1) }, 1],
  ['wrong names and values', { labels: members(9_900) }, 43],
])('thousands of %s make few errors, which take no longer than twice the parsing', (_, value, errors) => {
  expect(check(value)).toHaveLength(errors);
  const text = JSON.stringify(value);
  expect(least(() => check(value))).toBeLessThan(2 * least(() => JSON.parse(text)) + 0.1);
});

it('An error never repeats the value of a field that may have a secret', () => {
  const names = [
    'root_password',
    'totp_code',
    'refresh_token',
    'client_secret',
    'public_key',
    'user_data',
    'login_token',
    'Idempotency-Key',
    'PAYMENT-SIGNATURE',
  ];
  const short = { type: 'string', minLength: 50 };
  const checked = checker({ type: 'object', properties: Object.fromEntries(names.map((name) => [name, short])) });
  const errors = checked(Object.fromEntries(names.map((name) => [name, 'hunter2'])));
  const [url] = checker({ properties: { url: short } })({ url: 'https://me:hunter2@example.org' });
  expect(url!.message).toBe('url "https://example.org" must have at least 50 characters.');
  expect(errors.map(({ message }) => message)).toEqual(
    names.map((name) => `${name} must have at least 50 characters.`),
  );
});

it.each([
  ['svc_live_0123456789ABCDEFGHIJabcdefghij012345', 'svc_live_…'],
  ['is whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw it?', 'is whsec_… it?'],
  ['whsec_MfKQ+r8GKYq/TwjUPD8ILPZIo2LaLaSw=', 'whsec_…'],
  ['https://me:hunter2@example.org/', 'https://example.org/'],
  ['https:me:hunter2@example.org', 'https://example.org'],
  ['https://me:hunt/er2@example.org', 'https://example.org'],
  ['https://chat.example.org/hooks/T0/hunter2', 'https://chat.example.org/…'],
  ['https://example.org?token=hunter2', 'https://example.org/…'],
  ['https:\\\\me:hunter2@example.org\\', 'https://example.org\\'],
  ['debian-13', 'debian-13'],
])('An error shows %s as %s', (value, shown) => expect(shortened(value)).toBe(shown));
