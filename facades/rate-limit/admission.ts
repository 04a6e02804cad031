/** Admits requests: checks their credentials, and counts them for the rate limits. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError, type Viewer } from '../../schema/index.ts';
import type { CredentialUse } from '../compile/operation.ts';
import type { Authenticate } from '../compile/run.ts';
import { rateHeaders, refuseCaller } from './rate-headers.ts';
import type { Call, RateLimits } from './rate-limit.ts';

/** Admits a request: checks its credential, counts it, and adds the viewer. */
export type Admit = (
  request: FastifyRequest,
  reply: FastifyReply,
  /** Default: `checked`. */
  use?: CredentialUse,
  call?: Call,
) => Promise<void>;

/** Checks the credential again after the body has come. A slow body takes seconds, and the credential may have ended. */
export const readmission =
  (authenticate: Authenticate) =>
  async (request: FastifyRequest, use: CredentialUse = 'checked'): Promise<void> => {
    if (request.viewer) request.viewer = await viewerOf(authenticate, request, use);
  };

/** The statuses of refused credentials. */
const REFUSED: readonly unknown[] = [401, 403];

/** @throws ApiError if the credential is refused and not optional */
function viewerOf(
  authenticate: Authenticate,
  { headers: { authorization }, ip }: FastifyRequest,
  use: CredentialUse,
): Promise<Viewer | null> {
  if (use === 'checked') return authenticate(authorization, ip);
  return authenticate(authorization, ip).catch((error) => {
    if (error instanceof ApiError && REFUSED.includes(error.extensions.status)) return null;
    throw error;
  });
}

/** A request with a refused credential counts as one without, so that the limit slows guessing. The limit refuses first. */
export function admission(authenticate: Authenticate, rateLimits: RateLimits | undefined): Admit {
  return async (request, reply, use = 'checked', call) => {
    try {
      if (use !== 'unread') request.viewer = await viewerOf(authenticate, request, use);
    } catch (error) {
      // Without a database there is no check, and so no guess to count.
      if (rateLimits && error instanceof ApiError) await count(rateLimits, request, reply);
      throw error;
    }
    if (rateLimits) await count(rateLimits, request, reply, call);
  };
}

/** Refuses a stranger above a limit. Counts nothing, so it may come before any work. @throws ApiError rate_limited */
export type RefuseEarly = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

export const earlyRefusal =
  (rateLimits: RateLimits | undefined): RefuseEarly =>
  async ({ ip }, reply) => {
    const denied = rateLimits?.deniedStranger(ip);
    if (!denied) return;
    reply.headers(rateHeaders(denied));
    await refuseCaller(denied, reply);
  };

export type AdmitPublic = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/** Admits a request to a public page or an unknown path. There a refused credential counts as none, and is no error. */
export const publicAdmission =
  (admit: Admit): AdmitPublic =>
  async (request, reply) => {
    try {
      await admit(request, reply);
    } catch (error) {
      if (error instanceof ApiError && error.code === 'rate_limited') throw error;
    }
  };

/** Admits a request to the site. It looks at no credential, and counts without a query. */
export const pageAdmission =
  (rateLimits: RateLimits | undefined): AdmitPublic =>
  async (request, reply) => {
    if (!rateLimits) return;
    const standing = await rateLimits.takePage(request.ip);
    reply.headers(rateHeaders(standing));
    await refuseCaller(standing, reply);
  };

async function count(rateLimits: RateLimits, request: FastifyRequest, reply: FastifyReply, call?: Call): Promise<void> {
  const standing = await rateLimits.take(request.viewer, request.ip, call);
  reply.headers(rateHeaders(standing));
  await refuseCaller(standing, reply);
}
