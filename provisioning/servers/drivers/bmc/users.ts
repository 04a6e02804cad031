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
 * @throws DriverError if the controller does not list them any more
 */
export async function disableNewUsers(controller: Controller, known: string[] | null, signal: AbortSignal) {
  if (!known) return;
  const users = await controller.users(signal);
  if (!users) throw new DriverError('failed', 'The controller listed its users at the order, and refuses it now.');
  for (const user of users) if (!isKnown(user, known)) await controller.disable(user, signal);
}

/** The privilege of the service's own user does not matter: without that user, the service loses the host. */
const isKnown = (user: BmcUser, known: string[]): boolean =>
  user.own ? known.some((note) => note.startsWith(`${user.id}:${user.name}:`)) : known.includes(noteOf(user));
