/** The context of an operation, and who asks. */
export type { RequiredScope } from '../entities/accounts/credential.ts';
export type { Context, Viewer } from '../resolvers/context.ts';
