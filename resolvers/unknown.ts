/** Refusals of a value that names nothing. They name the value, the nearest one that exists, and where all of them stand. */
import { NAME_SSH_KEYS } from '../entities/accounts/ssh-key.ts';
import { LIST_ITEMS } from '../entities/catalog.ts';
import type { Queryable } from '../entities/database/transaction.ts';
import { ApiError, ERRORS, type ErrorCode } from '../entities/errors.ts';
import { nearest, shortened, suggestion } from './errors.ts';

/** So few values can stand in an error. */
const LISTED_MAX = 10;

/** A value that exists, and its name for people. */
interface Known {
  code: string;
  name?: string;
}
type UnknownCode = Extract<ErrorCode, `unknown_${string}`>;

/** @param field the field of the input, in the words of the API */
export function unknownValue(code: UnknownCode, field: string, value: string, known: readonly Known[]): ApiError {
  const codes = known.map((one) => one.code);
  const sought = value.toLowerCase();
  const byName = known.find(({ name }) => name && sought.startsWith(name.toLowerCase()))?.code;
  const near = byName ?? nearest(value, codes);
  const all = codes.length > 0 && codes.length <= LISTED_MAX ? ` There are ${codes.join(', ')}.` : '';
  const message = `There is no ${field} "${shortened(value)}".${near ? suggestion(near) : all}`;
  const [, where] = /(See .*)$/.exec(ERRORS[code][1]) ?? [];
  return new ApiError(code, where ? `${message} ${where}` : message, { errors: [{ field, code, message }] });
}

const KINDS = {
  unknown_service_code: { field: 'service_code', kinds: ['vps', 'dedicated'] },
  unknown_region: { field: 'region', kinds: ['bastion'] },
  unknown_os: { field: 'os', kinds: ['image'] },
} as const;

/** The refusal of a code that the catalog lacks, or does not offer. */
export async function unknownItem(db: Queryable, code: keyof typeof KINDS, value: string): Promise<ApiError> {
  const { field, kinds } = KINDS[code];
  const items = await LIST_ITEMS.all(db, [kinds]);
  return unknownValue(
    code,
    field,
    value,
    items.filter((item) => item.offered && item.code !== value),
  );
}

/** The refusal of ids of SSH keys of which the account lacks at least one. */
export async function unknownSshKey(db: Queryable, accountId: string, ids: readonly string[]): Promise<ApiError> {
  const keys = await NAME_SSH_KEYS.all(db, [accountId]);
  const unknown = ids.find((id) => !keys.some(({ code }) => code === id)) ?? '';
  // The thief of a credential could name a key as an id, or so that it begins each id.
  const isName = (name: string) => !/^sshkey_/i.test(unknown) && name.toLowerCase() === unknown.toLowerCase();
  const named = keys.map(({ code, name }) => (isName(name) ? { code, name } : { code }));
  return unknownValue('unknown_ssh_key', 'ssh_key_ids', unknown, named);
}
