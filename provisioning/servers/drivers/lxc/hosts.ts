/** The hosts of an engine, with their sizes, and the room in its pool. */
import type { HostReport } from '../driver.ts';
import type { LxcClient } from './client.ts';
import type { Facts } from './facts.ts';

interface Member {
  server_name: string;
  status: string;
}

/** @throws DriverError unreachable */
export async function hostsOf(
  client: LxcClient,
  { clustered, serverName }: Facts,
  pool: string,
  signal: AbortSignal,
): Promise<HostReport[]> {
  if (!clustered) return [{ name: serverName, state: 'online', ...(await sizeOf(client, pool, undefined, signal)) }];
  const members = await client.get<Member[]>('/1.0/cluster/members?recursion=1', signal);
  return Promise.all(
    members.map(async ({ server_name: name, status }) => {
      const told = status === 'Online' ? await sizeOf(client, pool, name, signal).catch(() => null) : null;
      signal.throwIfAborted();
      const trouble = `The engine calls ${name} ${status}, and does not tell its size.`;
      if (!told) return { name, state: 'offline', trouble, size: { vcpus: 0, memoryMb: 0, diskGb: 0 } } as const;
      return { name, state: 'online', ...told } as const;
    }),
  );
}

async function sizeOf(
  client: LxcClient,
  pool: string,
  member: string | undefined,
  signal: AbortSignal,
): Promise<Pick<HostReport, 'size' | 'diskFreeGb'>> {
  const [{ cpu, memory }, { total, used }] = await Promise.all([
    client.get<{ cpu: { total: number }; memory: { total: number } }>(`/1.0/resources${at(member)}`, signal),
    spaceOf(client, pool, member, signal),
  ]);
  const gb = (bytes: number) => Math.floor(bytes / 2 ** 30);
  const size = { vcpus: cpu.total, memoryMb: Math.floor(memory.total / 2 ** 20), diskGb: gb(total) };
  return { size, diskFreeGb: gb(total - used) };
}

/** The bytes of a pool. @param member undefined outside of clusters @throws DriverError unreachable */
export async function spaceOf(
  client: LxcClient,
  pool: string,
  member: string | undefined,
  signal: AbortSignal,
): Promise<{ total: number; used: number }> {
  const path = `/1.0/storage-pools/${encodeURIComponent(pool)}/resources${at(member)}`;
  return (await client.get<{ space: { total: number; used: number } }>(path, signal)).space;
}

const at = (member: string | undefined): string => (member ? `?target=${encodeURIComponent(member)}` : '');
