/** Renders an answer as a QR code (ISO/IEC 18004): an image, or characters for a terminal. */
import { ApiError } from '../../schema/index.ts';
import type { JsonSchema } from '../compile/json-schema.ts';
import { preferredType } from './accept.ts';

interface QrFormat {
  contentType: string;
  render: (text: string) => Promise<string>;
  schema: JsonSchema;
}

/** The standard requires a border of four modules. Level M corrects errors in 15 percent of the code. */
const OPTIONS = { ecc: 'M', border: 4 } as const;
/** The first code loads it. */
const library = () => import('uqr');
const LENGTH_MAX = 262_144;

/** The formats by their media types in `Accept`. */
export const QR_FORMATS: Readonly<Record<string, QrFormat>> = {
  'image/svg+xml': {
    contentType: 'image/svg+xml',
    render: async (text) => (await library()).renderSVG(text, OPTIONS),
    schema: {
      description: 'A QR code of payment_uri, for wallets.',
      type: 'string',
      maxLength: LENGTH_MAX,
      pattern: '^<svg .*</svg>$',
    },
  },
  'text/plain': {
    contentType: 'text/plain; charset=utf-8',
    render: async (text) => `${(await library()).renderUnicodeCompact(text, OPTIONS)}\n`,
    schema: {
      description: 'A QR code of payment_uri in block characters, for terminals.',
      type: 'string',
      maxLength: LENGTH_MAX,
      pattern: '^[ ▀▄█\\n]+$',
    },
  },
};

/** The format that the header Accept prefers to JSON; undefined if it prefers JSON. */
export function qrFormatFor(accept: string | undefined): QrFormat | undefined {
  const preferred = preferredType(accept, ...Object.keys(QR_FORMATS));
  return preferred === undefined ? undefined : QR_FORMATS[preferred];
}

/**
 * @param json the answer
 * @param member the member of the answer that the code shows
 * @throws ApiError not_found if the member is null
 */
export async function qrCode({ render }: QrFormat, json: string, member: string): Promise<string> {
  const text = (JSON.parse(json) as Record<string, unknown>)[member];
  if (typeof text !== 'string') throw new ApiError('not_found', `There is no QR code, because ${member} is null.`);
  return render(text);
}
