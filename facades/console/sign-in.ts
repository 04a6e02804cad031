/**
 * Lets operators sign in on the internal listener. GraphQL there needs a credential before it reads a body, and an operator
 * without a session has none. So this path takes small bodies from strangers, and runs three fixed documents.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { execute, parse } from 'graphql';
import { atTurnOf, type Context, schema } from '../../schema/index.ts';
import type { Mask } from '../graphql/errors.ts';
import { disconnectOf } from '../http/connections.ts';

export const SIGN_IN_PATH = '/sign-in';
const DOCUMENT = parse(`
  mutation signIn($name: OperatorName!, $password: CurrentPassword!, $totpCode: TotpCode!) {
    signIn(name: $name, password: $password, totpCode: $totpCode) { token expiresAt }
  }
  mutation openInvitation($code: Line!) {
    openInvitation(code: $code) { name secret provisioningUri expiresIn }
  }
  mutation acceptInvitation($code: Line!, $password: Password!, $totpCode: TotpCode!) {
    acceptInvitation(code: $code, password: $password, totpCode: $totpCode) { token expiresAt recoveryCodes }
  }`);
/** Bytes of a request body. */
const BODY_MAX = 4096;
/** The time in which a body arrives. */
const BODY_MS = 10_000;

/**
 * Answers a sign-in in the form of GraphQL. Pages of other origins cannot send JSON, because the listener allows no CORS. A page
 * that rebinds its DNS name to the listener can, and so use up the attempts of a name. It learns nothing.
 */
export async function answerSignIn(
  request: IncomingMessage,
  response: ServerResponse,
  contextOf: (signal: AbortSignal) => Context,
  mask: Mask,
): Promise<void> {
  const answer = (status: number, body: object) =>
    response
      .writeHead(status, {
        'content-type': 'application/json',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      })
      .end(JSON.stringify(body));
  const isJson = /^application\/json\b/i.test(request.headers['content-type'] ?? '');
  const given = request.method === 'POST' && isJson ? await bodyOf(request) : undefined;
  if (!given) {
    const message = `Send POST ${SIGN_IN_PATH} as JSON of at most ${BODY_MAX} bytes: {"operationName": "signIn", "variables": {"name", "password", "totpCode"}}. openInvitation and acceptInvitation are the others.`;
    response.setHeader('connection', 'close');
    return void answer(400, { errors: [{ message, extensions: { code: 'invalid_request' } }] });
  }
  const { operationName, variables: variableValues } = given;
  const contextValue = contextOf(disconnectOf(response));
  const run = async () => execute({ schema, document: DOCUMENT, operationName, variableValues, contextValue });
  const { data = null, errors } = await atTurnOf(contextValue, run);
  answer(200, errors ? { data, errors: errors.map(mask) } : { data });
}

interface Given {
  operationName: string;
  variables: Record<string, unknown>;
}

/** Reads a body. Undefined: it is too large, too slow, or no operation. */
async function bodyOf(request: IncomingMessage): Promise<Given | undefined> {
  const parts: Buffer[] = [];
  let bytes = 0;
  const late = setTimeout(() => request.destroy(), BODY_MS).unref();
  try {
    for await (const part of request as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > BODY_MAX) return undefined;
      parts.push(part);
    }
    const { operationName, variables = {} } = JSON.parse(Buffer.concat(parts).toString());
    const isSound = typeof operationName === 'string' && typeof variables === 'object' && variables !== null;
    return isSound ? { operationName, variables } : undefined;
  } catch {
    return undefined;
  } finally {
    clearTimeout(late);
  }
}
