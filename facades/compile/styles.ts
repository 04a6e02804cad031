/** The conventions of endpoints: those of the API, and those of the OAuth RFCs. */
import { ApiError, type ErrorCode, malformed } from '../../schema/index.ts';
import { readUtf8 } from '../http/json.ts';

export interface Style {
  success: 200 | 201;
  /** Whether a body may be a form (application/x-www-form-urlencoded). */
  forms: boolean;
  /** Whether the endpoint ignores unknown members (RFC 6749, section 3.2). */
  lenient: boolean;
  /** Whether a single value counts as a list of one, as in GraphQL. A form cannot distinguish the two. */
  singles: boolean;
  /** The code for any error of the input. Absent: the code depends on the path, query, header or body. */
  refusal: ErrorCode | undefined;
  /** The security requirement in OpenAPI. Absent: it follows from the scope. */
  security: readonly Readonly<Record<string, readonly string[]>>[] | undefined;
}

/** The styles by their names in the enum `HttpStyle` of `@http(style:)`. */
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
  /** RFC 7591 requires an error code of its own, status 201 and lists as arrays. It has no forms. */
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

/** The most parameters of a form, which the service counts before it parses them. The time to read them grows with their square. */
const PARAMETERS_MAX = 100;
export const FORM_TYPE = 'application/x-www-form-urlencoded';

/**
 * Reads a form. A parameter without a value counts as absent (RFC 6749, section 3.2). Only `resource` may occur twice
 * (RFC 8707).
 * @throws ApiError invalid_request
 */
export function readForm(bytes: Buffer): Record<string, string | string[]> {
  const text = readUtf8(bytes);
  if (text.split('&', PARAMETERS_MAX + 1).length > PARAMETERS_MAX)
    throw new ApiError('invalid_request', `The form has more than ${PARAMETERS_MAX} parameters.`);
  const form = new URLSearchParams(text);
  const members: [name: string, value: string | string[]][] = [];
  for (const name of new Set(form.keys())) {
    const values = form.getAll(name).filter((value) => value !== '');
    if (values.length > 1 && name !== 'resource')
      throw new ApiError('invalid_request', 'The form has the same parameter twice.');
    if (values.some(malformed))
      throw new ApiError('invalid_request', 'The form has a character that the service cannot store.');
    if (values.length) members.push([name, values.length > 1 ? values : values[0]!]);
  }
  return Object.fromEntries(members);
}
