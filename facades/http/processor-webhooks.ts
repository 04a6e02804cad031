/**
 * Processor webhooks: POST /hooks/payments. Their signature is over the bytes of the body, so these are not read
 * as JSON. What is signed is not counted; who has no signature is, as any stranger.
 */
import type { FastifyInstance } from 'fastify';
import { ApiError, acceptProcessorWebhook } from '../../schema/index.ts';
import type { ContextOf } from '../compile/run.ts';
import type { Admit } from '../rate-limit/rate-limit.ts';
import { callerOf } from './rest.ts';

export const HOOK_PATH = '/hooks/payments';

export function hooks(app: FastifyInstance, { admit, contextOf }: { admit: Admit; contextOf: ContextOf }): void {
  app.register(async (inner) => {
    inner.removeAllContentTypeParsers();
    inner.addContentTypeParser('*', { parseAs: 'buffer' }, async (_request: unknown, body: Buffer) => body);
    inner.post<{ Body: Buffer | undefined }>(HOOK_PATH, async (request, reply) => {
      const { body = Buffer.alloc(0) } = request;
      const headers = request.headers as Record<string, string | undefined>;
      if (await acceptProcessorWebhook(contextOf(callerOf(request, reply)), { headers, body })) return '{}';
      await admit(request, reply, true);
      throw new ApiError('invalid_credential', 'Nobody of ours has signed this.');
    });
  });
}
