/** The facts about an engine, and the check of its set-up. The driver reads them again each minute. */
import { DriverError, type EngineReport } from '../driver.ts';
import type { Engine, LxcClient } from './client.ts';
import { isolate, type Network } from './network.ts';
import { openProject } from './project.ts';

/** Milliseconds between two reads: a server may become a cluster, and the operator may upgrade or change the engine. */
const FACTS_MS = 60_000;

export interface Facts {
  product: 'LXD' | 'INCUS';
  version: string;
  clustered: boolean;
  serverName: string;
  network: Network;
  /** Sentences for the operator about weaknesses of the set-up. */
  warnings: readonly string[];
}

/** `GET /1.0`. */
interface ServerInfo {
  auth: string;
  environment: { server: string; server_version: string; server_clustered: boolean; server_name: string };
}

export interface FactsSettings {
  /** The name of the network of the machines. */
  network: string;
  /** Whether machines may send mail to port 25. */
  openMail: boolean;
}

export class EngineFacts {
  readonly #client: LxcClient;
  readonly #settings: FactsSettings;
  #facts: { value: Facts; until: number } | undefined;

  constructor(client: LxcClient, settings: FactsSettings) {
    this.#client = client;
    this.#settings = settings;
  }

  /**
   * @throws UnsafeEngine if the set-up endangers the host; DriverError unreachable, also if the engine does not trust
   * our certificate
   */
  async read(signal: AbortSignal): Promise<Facts> {
    if (this.#facts && this.#facts.until > Date.now()) return this.#facts.value;
    const { environment } = await this.trusted(signal);
    const { server, server_version: version, server_clustered: clustered, server_name: serverName } = environment;
    const product = server === 'incus' ? 'INCUS' : 'LXD';
    const engine: Engine = { client: this.#client, command: product === 'INCUS' ? 'incus' : 'lxc', clustered };
    const { network: name, openMail } = this.#settings;
    const { network, vouched, warnings: loose } = await openProject(engine, name, signal);
    const warnings = [...loose, ...(await isolate(engine, network, { openMail, vouched }, signal))];
    const value: Facts = { product, version, clustered, serverName, network, warnings };
    this.#facts = { value, until: Date.now() + FACTS_MS };
    return value;
  }

  /** Its product, its version and the aliases of its images. @throws UnsafeEngine, DriverError unreachable */
  async about(signal: AbortSignal): Promise<EngineReport> {
    const { product, version } = await this.read(signal);
    const aliases = await this.#client.get<{ name: string }[]>('/1.0/images/aliases?recursion=1', signal);
    return { product, version, images: aliases.map(({ name }) => name) };
  }

  /** Asks the engine whether it knows us. @throws DriverError unreachable */
  async trusted(signal: AbortSignal): Promise<ServerInfo> {
    const info = await this.#client.get<ServerInfo>('/1.0', signal);
    if (info.auth !== 'trusted') throw new DriverError('unreachable', 'The engine does not trust our certificate.');
    return info;
  }
}
