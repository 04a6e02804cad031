/** The list of all instances. It has the user data of each, so a long list comes in parts. */
import type { LxcClient } from './client.ts';
import { TooLong } from './endpoint.ts';
import type { Instance } from './instance.ts';

/** Instances of one part. An answer shows the user data twice, and may write each byte of it as six. */
const PART = 40;

/**
 * Lists all instances by one request, or in parts if one answer would be too long.
 * @param recursion 1: instances; 2: with their states
 */
export async function listInstances<T extends Instance>(
  client: LxcClient,
  recursion: 1 | 2,
  signal: AbortSignal,
): Promise<T[]> {
  const path = `/1.0/instances?recursion=${recursion}`;
  try {
    return await client.get<T[]>(path, signal);
  } catch (error) {
    if (!(error instanceof TooLong)) throw error;
  }
  const paths = await client.get<string[]>('/1.0/instances', signal);
  const names = paths.map((one) => one.split('?')[0]!.split('/').at(-1)!);
  const found: T[] = [];
  for (let from = 0; from < names.length; from += PART) {
    const filter = encodeURIComponent(`name eq ${names.slice(from, from + PART).join(' or name eq ')}`);
    found.push(...(await client.get<T[]>(`${path}&filter=${filter}`, signal)));
  }
  return found;
}
