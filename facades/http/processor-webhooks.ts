/**
 * Receives processor webhooks at POST /hooks/payments. The signature covers the bytes of the body, so the listener does not
 * parse it. The rate limits count only requests without a valid signature. Above the limit, none is read.
 */
import type { FastifyInstance } from 'fastify';
import { ApiError, acceptProcessorWebhook } from '../../schema/index.ts';
import type { ContextOf } from '../compile/run.ts';
import type { Admit, RefuseEarly } from '../rate-limit/admission.ts';
import { readingAtTurn } from '../rate-limit/turns.ts';
import { callerOf } from './rest.ts';

const PATH = '/hooks/payments';

export function processorWebhooks(
  app: FastifyInstance,
  { admit, refuseEarly, contextOf }: { admit: Admit; refuseEarly: RefuseEarly; contextOf: ContextOf },
): void {
  app.register(async (inner) => {
    inner.removeAllContentTypeParsers();
    inner.addContentTypeParser(
      '*',
      { parseAs: 'buffer' },
      readingAtTurn((body) => body),
    );
    inner.post<{ Body: Buffer | undefined }>(
      PATH,
      { onRequest: async (request, reply) => refuseEarly(request, reply) },
      async (request, reply) => {
        const { body = Buffer.alloc(0) } = request;
        const headers = request.headers as Record<string, string | undefined>;
        if (await acceptProcessorWebhook(contextOf(callerOf(request, reply)), { headers, body })) return '{}';
        await admit(request, reply, 'unread');
        throw new ApiError('invalid_credential', 'The signature matches no configured payment processor.');
      },
    );
  });
}
