/** The network of the machines. */
import type { LxcClient } from './client.ts';

/** The engine's network of machines. */
export interface Network {
  name: string;
  /** Whether the engine manages it, and runs DHCP there. Otherwise it is a bridge of the host. */
  managed: boolean;
  /** Whether machines can have IPv6 addresses in it. */
  ipv6: boolean;
}

/**
 * @param project the project of the network; default: ours
 * @throws EngineError if there is no such network
 */
export async function networkOf(
  client: LxcClient,
  name: string,
  signal: AbortSignal,
  project?: string,
): Promise<Network> {
  const path = `/1.0/networks/${encodeURIComponent(name)}`;
  const { managed } = await client.get<{ managed: boolean }>(path, signal, project);
  // On its own bridges the engine accepts only addresses of the bridge's network. Its DHCP server needs a /64 there, so
  // prefixes of machines do not fit.
  return { name, managed, ipv6: !managed };
}
