/** Answers as QR codes (ISO/IEC 18004): an image, or characters for a terminal, for who prefers that to JSON. */
import Negotiator from 'negotiator';
import { renderSVG, renderUnicodeCompact } from 'uqr';
import { ApiError } from '../../schema/index.ts';
import type { JsonSchema } from '../compile/json-schema.ts';

interface Drawing {
  contentType: string;
  draw: (text: string) => string;
  schema: JsonSchema;
}

/** A quiet zone of four modules, as the standard wants it; what is lost of a screen or a print is made up for. */
const OPTIONS = { ecc: 'M', border: 4 } as const;
const LENGTH_MAX = 262_144;

/** By what `Accept` calls them. */
export const DRAWINGS: Readonly<Record<string, Drawing>> = {
  'image/svg+xml': {
    contentType: 'image/svg+xml',
    draw: (text) => renderSVG(text, OPTIONS),
    schema: {
      description: 'A QR code of payment_uri, for wallets.',
      type: 'string',
      maxLength: LENGTH_MAX,
      pattern: '^<svg .*</svg>$',
    },
  },
  'text/plain': {
    contentType: 'text/plain; charset=utf-8',
    draw: (text) => `${renderUnicodeCompact(text, OPTIONS)}\n`,
    schema: {
      description: 'The same in block characters, for terminals.',
      type: 'string',
      maxLength: LENGTH_MAX,
      pattern: '^[ ▀▄█\\n]+$',
    },
  },
};

/** What a header Accept (RFC 9110, section 12.5.1) prefers to JSON; undefined: nothing, and so does whatever we do not have. */
export function drawingFor(accept: string | undefined): Drawing | undefined {
  const preferred = new Negotiator({ headers: { accept } }).mediaType(['application/json', ...Object.keys(DRAWINGS)]);
  return preferred === undefined ? undefined : DRAWINGS[preferred];
}

/** @param json the answer; @param member of which the code is @throws ApiError not_found if that is null */
export function drawn({ draw }: Drawing, json: string, member: string): string {
  const text = (JSON.parse(json) as Record<string, unknown>)[member];
  if (typeof text !== 'string') throw new ApiError('not_found', `There is no ${member} of which a code could be made.`);
  return draw(text);
}
