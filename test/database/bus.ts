/** Starts buses for tests, and notes the changes that their listeners hear. */
import { onTestFinished } from 'vitest';
import { Bus, type Change } from '../../entities/database/bus.ts';

export async function newBus(url: string): Promise<Bus> {
  const bus = new Bus(url);
  onTestFinished(() => bus.close());
  await bus.start();
  return bus;
}
export function heardBy(bus: Bus): Change[] {
  const heard: Change[] = [];
  bus.listen((change) => heard.push(change));
  return heard;
}
export const server = (id: string, accountId = 'acct_1'): Change => ({ kind: 'server', accountId, id });
