/** Limits how many tool calls a caller has under way, because each holds its message until it ends. */
import { Ceiling, networkOf, type Viewer } from '../../schema/index.ts';

const CALLS_MAX = 32;
const RETRY_SECONDS = 1;

/** The account of a call, or the network of a caller without a credential. */
export const groupOf = (viewer: Viewer | null, address: string | null): string =>
  viewer?.accountId ?? networkOf(address ?? '');

export const callsUnderWay = (): Ceiling =>
  new Ceiling(CALLS_MAX, `You have ${CALLS_MAX} tool calls under way. Wait until one ends.`, RETRY_SECONDS);
