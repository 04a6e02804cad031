/** The users of a controller. Root on a host can add users to its controller, so they go before the next customer comes. */
import type { BmcUser, Controller } from './controller.ts';

const nameOf = ({ id, name }: BmcUser) => `${id}:${name}`;

/** The present users, as `id:name`; null where the controller cannot list them. */
export const usersOf = async (controller: Controller, signal: AbortSignal): Promise<string[] | null> =>
  (await controller.users(signal))?.map(nameOf) ?? null;

/** Takes their access from users that are not among the known ones. @param known null: all are */
export async function disableNewUsers(controller: Controller, known: string[] | null, signal: AbortSignal) {
  if (!known) return;
  for (const user of (await controller.users(signal)) ?? [])
    if (!known.includes(nameOf(user))) await controller.disable(user, signal);
}
