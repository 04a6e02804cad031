/** Login attempts for the tests of the throttle. */
import { request } from 'node:http';
import { ApiError } from '../../../entities/errors.ts';

export const wrong = async () => {
  throw new ApiError('invalid_login');
};
export const codeOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => 'ok',
    (error: ApiError) => error.code,
  );

interface Reply {
  status: number;
  retryAfter: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of a body by looking at it
  body: any;
}

/** Posts from one of the loopback addresses of the machine. */
export const posterAt =
  (publicUrl: string) =>
  (address: string, path: string, body: object, credential?: string): Promise<Reply> =>
    new Promise((done, fail) => {
      const headers = {
        'content-type': 'application/json',
        ...(credential && { authorization: `Bearer ${credential}` }),
      };
      const sent = request(
        publicUrl + path,
        { method: 'POST', localAddress: address, headers, agent: false },
        (reply) => {
          let text = '';
          reply.on('data', (chunk) => (text += chunk));
          reply.on('end', () =>
            done({ status: reply.statusCode!, retryAfter: reply.headers['retry-after'], body: JSON.parse(text) }),
          );
        },
      );
      sent.on('error', fail).end(JSON.stringify(body));
    });
