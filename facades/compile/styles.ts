/** How an endpoint speaks, beside what it says: as the rest of the API, or as the RFCs of OAuth want it. */
import { ApiError, type ErrorCode, malformed } from '../../schema/index.ts';
import { readUtf8 } from '../http/json.ts';

export interface Style {
  success: 200 | 201;
  /** Bodies may be forms (application/x-www-form-urlencoded), too. */
  forms: boolean;
  /** Unknown members are ignored (RFC 6749, section 3.2). */
  lenient: boolean;
  /** A list may be sent as its one entry, as GraphQL takes it; a form cannot tell the two apart. */
  singles: boolean;
  /** The code of whatever is wrong with an input; without one it depends on the place. */
  refusal: ErrorCode | undefined;
  /** What OpenAPI says of the credential; without it the scope decides. */
  security: readonly Readonly<Record<string, readonly string[]>>[] | undefined;
}

/** The names are those of the enum of `@http(style:)`. */
export const STYLES = {
  PLAIN: { success: 200, forms: false, lenient: false, singles: true, refusal: undefined, security: undefined },
  OAUTH: {
    success: 200,
    forms: true,
    lenient: true,
    singles: true,
    refusal: 'invalid_request',
    security: [{}, { client: [] }, { bearer: [] }],
  },
  /** RFC 7591 has a code of its own, answers 201, has its lists as arrays, and knows no forms. */
  OAUTH_REGISTRATION: {
    success: 201,
    forms: false,
    lenient: true,
    singles: false,
    refusal: 'invalid_client_metadata',
    security: [{}, { bearer: ['full'] }],
  },
} as const satisfies Record<string, Style>;
export type StyleName = keyof typeof STYLES;

export const FORM_TYPE = 'application/x-www-form-urlencoded';

/**
 * Reads a form. A parameter without a value counts as absent, and none may be sent twice (RFC 6749, section 3.2), but
 * `resource` (RFC 8707).
 * @throws ApiError invalid_request
 */
export function readForm(bytes: Buffer): Record<string, string | string[]> {
  const form = new URLSearchParams(readUtf8(bytes));
  const members: [name: string, value: string | string[]][] = [];
  for (const name of new Set(form.keys())) {
    const values = form.getAll(name).filter((value) => value !== '');
    if (values.length > 1 && name !== 'resource')
      throw new ApiError('invalid_request', 'The form has a parameter that is sent twice.');
    if (values.some(malformed))
      throw new ApiError('invalid_request', 'The form has a character that cannot be stored.');
    if (values.length) members.push([name, values.length > 1 ? values : values[0]!]);
  }
  return Object.fromEntries(members);
}
