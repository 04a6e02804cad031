/**
 * The lines of heads under the signed texts. There is a line for each account that had entries, and strangers make accounts. So
 * the process never has all lines of a text, and PostgreSQL compares those of all texts with the chains.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import type { Queryable } from '../database/transaction.ts';
import { IS_PUBLIC_SQL } from './audit-signature.ts';
import { HEADER_LINES, readHead, type SignedHead, type SignedPart, sha256 } from './audit-text.ts';

/** A signature whose signed part is proven. */
export interface SignedLines {
  number: bigint;
  /** The signed part. In a text of a first version, this is all of it. */
  signedText: string;
  part: SignedPart;
}

/** The lines after the signed part of a public text. A text of a first version stays whole. */
const LINES_SQL = `substr(signed_text, case when ${IS_PUBLIC_SQL} then position(E'\\n\\n' in left(signed_text, 4096)) + 2 else 1 end)`;
const DIGEST_SQL = `sha256(convert_to(${LINES_SQL}, 'UTF8'))`;
/**
 * Returns a part of a statement, in SQL: `covered` has the highest number of each chain that a text covers. The texts are those with
 * the given digests, so their lines are signed. PostgreSQL reads no other lines, which may be junk.
 */
export const coveredSql = (digests: string) => `
  proven as materialized (
      select signed_text, ${IS_PUBLIC_SQL} as is_public from audit_signature
        where encode(${DIGEST_SQL}, 'hex') = any(${digests}::text[])),
    covered as (
      select split_part(line, ' ', 1) as account_id, max(split_part(line, ' ', 2)::bigint) as highest
        from proven cross join lateral string_to_table(${LINES_SQL}, E'\\n') with ordinality as lines(line, place)
        where line <> '' and place > case when is_public then 0 else ${HEADER_LINES} end group by 1)`;

const FIND_DIGEST = statement({ digest: column.text() })`
  select encode(${DIGEST_SQL}, 'hex') as digest from audit_signature where number = $1`;
const FIND_LENGTH = statement({ length: column.int() })`
  select length(signed_text) as length from audit_signature where number = $1`;
/** So many characters of the text $1 from the place $2 on, which is 1 for the first one. */
const READ_CHARACTERS = statement({ characters: column.text() })`
  select substr(signed_text, $2::int, $3::int) as characters from audit_signature where number = $1`;

/** Returns the digest of the lines that a signature covers. `coveredSql` finds them by it. */
export const linesDigest = ({ part, signedText }: SignedLines): string => part.headsDigest ?? sha256(signedText);

/** Whether the lines of a signature are those that it covers. */
export async function hasItsLines(db: Queryable, signed: SignedLines): Promise<boolean> {
  if (signed.part.headsDigest === undefined) return true;
  return (await FIND_DIGEST.first(db, [signed.number]))?.digest === signed.part.headsDigest;
}

/** PostgreSQL unpacks a text anew for each step, so a step is not small. */
const STEP = 2_000_000;
const PAGE = 2_000;

/** Reads the heads of a signature in pages. The last line comes first. */
export async function* headsBackwards(db: Queryable, signed: SignedLines): AsyncGenerator<SignedHead[]> {
  for await (const lines of linesBackwards(db, signed))
    for (let end = lines.length; end > 0; end -= PAGE)
      yield lines
        .slice(Math.max(0, end - PAGE), end)
        .map(readHead)
        .reverse();
}

/** Reads lines of heads in steps. The last step comes first. */
async function* linesBackwards(db: Queryable, { number, part, signedText }: SignedLines): AsyncGenerator<string[]> {
  if (part.headsDigest === undefined) return yield signedText.split('\n').slice(HEADER_LINES, -1);
  const first = signedText.length + 2;
  /** The place after the characters of the next step. It leaves out the last line break. */
  let end = (await FIND_LENGTH.first(db, [number]))?.length ?? 0;
  /** The end of the line that the next step begins with. */
  let rest = '';
  while (end > first) {
    const start = Math.max(first, end - STEP);
    const read = await READ_CHARACTERS.first(db, [number, start, end - start]);
    const lines = ((read?.characters ?? '') + rest).split('\n');
    if (start > first) rest = lines.shift() ?? '';
    yield lines;
    end = start;
  }
}
