/** Calls of any version. Unlike the clients of test/setup, they do not check the answers against this version's document. */

/** An answer of the service. */
export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the caller knows its shape
  body: any;
}

/** Creates a REST client. */
export const plainClient =
  (url: string, credential?: string) =>
  async (method: string, path: string, body?: object, key?: string): Promise<Answer> => {
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(credential && { authorization: `Bearer ${credential}` }),
        ...(body && { 'content-type': 'application/json' }),
        ...(key && { 'idempotency-key': key }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = /[/+]json/.test(response.headers.get('content-type') ?? '');
    return { status: response.status, body: isJson ? JSON.parse(text) : text };
  };
export type PlainClient = ReturnType<typeof plainClient>;

/** Logs in. @returns a client with the new access token */
export async function logIn(url: string, { email, password }: { email: string; password: string }) {
  const { body } = await plainClient(url)('POST', '/v1/auth/login', { email, password });
  return plainClient(url, body.tokens.access_token);
}

/** Waits for an answer 200 whose body fits. @returns the body */
export async function awaited(
  rest: PlainClient,
  path: string,
  fits: (body: Answer['body']) => boolean,
): Promise<Answer['body']> {
  for (const since = Date.now(); Date.now() - since < 240_000; await new Promise((done) => setTimeout(done, 100))) {
    const { status, body } = await rest('GET', path);
    if (status === 200 && fits(body)) return body;
  }
  throw new Error(`${path} never became as expected: ${fits}`);
}
