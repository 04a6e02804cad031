/** The list of all instances. It has the user data of each, so a long list comes in parts. */
import type { LxcClient } from './client.ts';
import { TooLong } from './endpoint.ts';
import type { Instance } from './instance.ts';

/** Instances of one part. An answer shows the user data twice, and may write each byte of it as six. */
const PART = 20;

/**
 * Lists all instances by one request, or in parts if one answer would be too long.
 * @param recursion 1: instances; 2: with their states, but without those that alone are too long
 */
export async function listInstances<T extends Instance>(
  client: LxcClient,
  recursion: 1 | 2,
  signal: AbortSignal,
): Promise<T[]> {
  try {
    return await client.get<T[]>(`/1.0/instances?recursion=${recursion}`, signal);
  } catch (error) {
    if (!(error instanceof TooLong)) throw error;
  }
  const paths = await client.get<string[]>('/1.0/instances', signal);
  const names = paths.map((one) => one.split('?')[0]!.split('/').at(-1)!);
  const found: T[] = [];
  for (let from = 0; from < names.length; from += PART)
    found.push(...(await listPart<T>(client, recursion, names.slice(from, from + PART), signal)));
  return found;
}

/** Halves a part that is too long. Root in a machine can make its state as long as it likes. */
async function listPart<T extends Instance>(
  client: LxcClient,
  recursion: 1 | 2,
  names: readonly string[],
  signal: AbortSignal,
): Promise<T[]> {
  const filter = encodeURIComponent(`name eq ${names.join(' or name eq ')}`);
  try {
    return await client.get<T[]>(`/1.0/instances?recursion=${recursion}&filter=${filter}`, signal);
  } catch (error) {
    if (!(error instanceof TooLong) || (names.length === 1 && recursion === 1)) throw error;
  }
  if (names.length === 1) return listPart(client, 1, names, signal);
  const half = names.length >> 1;
  const first = await listPart<T>(client, recursion, names.slice(0, half), signal);
  return [...first, ...(await listPart<T>(client, recursion, names.slice(half), signal))];
}
