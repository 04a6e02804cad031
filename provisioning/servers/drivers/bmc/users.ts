/** The users of a controller. Root on a host can add users to its controller, so they go before the next customer comes. */
import { DriverError } from '../driver.ts';
import type { BmcUser, Controller } from './controller.ts';

const noteOf = ({ id, name, privilege }: BmcUser) => `${id}:${name}:${privilege}`;

/** The present users, as `id:name:privilege`; null where the controller cannot list them. */
export const usersOf = async (controller: Controller, signal: AbortSignal): Promise<string[] | null> =>
  (await controller.users(signal))?.map(noteOf) ?? null;

/**
 * Takes their access from users that are not among the known ones, or that have another privilege now.
 * @param known null: all are
 * @throws DriverError if the controller does not list them any more, or if several could be the service's own
 */
export async function disableNewUsers(controller: Controller, known: string[] | null, signal: AbortSignal) {
  if (!known) return;
  const users = await controller.users(signal);
  if (!users) throw new DriverError('failed', 'The controller listed its users at the order, and refuses it now.');
  const ours = ownOf(users, known);
  for (const user of users) if (user !== ours && !known.includes(noteOf(user))) await controller.disable(user, signal);
}

/**
 * The service's own user, whose privilege does not matter: without that user, the service loses the host. The operator may have
 * given the service another user since the order. The only one of that name is ours, because we have logged in as it.
 */
function ownOf(users: BmcUser[], known: string[]): BmcUser | undefined {
  const named = users.filter(({ own }) => own);
  const noted = named.find(({ id, name }) => known.some((note) => note.startsWith(`${id}:${name}:`)));
  if (named.length > 1 && !noted)
    throw new DriverError(
      'failed',
      `The controller has ${named.length} users named ${named[0]!.name}. Remove the others.`,
    );
  return noted ?? named[0];
}
