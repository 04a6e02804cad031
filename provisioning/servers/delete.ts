/** From a server that is to go to one that is gone. However long it takes, it is tried until absence is confirmed. */
import { SYSTEM } from '../../entities/audit.ts';
import { SERVER_LIFECYCLE } from '../../entities/server.ts';
import { transition } from '../../entities/transition.ts';
import { done, nap } from '../tasks.ts';
import { vacate } from './capacity.ts';
import type { ServerStep } from './process.ts';

export const destroy: ServerStep = async (task, { server, driver, pollSeconds }) => {
  const seen = await driver.destroy({ order: server.orderNumber, generation: server.generation }, task.aborted);
  if (seen.phase !== 'absent') return nap(pollSeconds);
  return done({
    commit: async (tx) => {
      await vacate(tx, server.orderNumber);
      await transition(tx, SERVER_LIFECYCLE, server.orderNumber, 'DELETED', {
        actor: SYSTEM,
        set: { rootPassword: null, userData: null },
      });
    },
  });
};
