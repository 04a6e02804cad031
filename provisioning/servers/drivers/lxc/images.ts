/**
 * The images that the driver brings to an engine. Each has a property with the project and the alias that it came for. The
 * driver deletes no image without it.
 */
import { DriverError } from '../driver.ts';
import type { ImageFile, ImageStore, ServedImage, WantedImage } from '../image-store.ts';
import { EngineError, type LxcClient } from './client.ts';
import type { EngineFacts } from './facts.ts';

/** The property of our images. */
const PROPERTY = 'freehold-image';

interface EngineImage {
  fingerprint: string;
  type: string;
  aliases: { name: string }[];
  properties: Record<string, string> | null;
}

export class LxcImages implements ImageStore {
  readonly #client: LxcClient;
  readonly #facts: EngineFacts;

  constructor(client: LxcClient, facts: EngineFacts) {
    this.#client = client;
    this.#facts = facts;
  }

  import(image: WantedImage, signal: AbortSignal): Promise<string> {
    return this.#explained(signal, () => this.#import(image, signal));
  }

  withdraw({ alias, fingerprint }: Pick<WantedImage, 'alias' | 'fingerprint'>, signal: AbortSignal): Promise<void> {
    return this.#explained(signal, async () => {
      const path = pathOf(alias);
      const known = await this.#client.get<{ target: string }>(path, signal).catch(ignoreMissing);
      const image = known && (await this.#find(known.target, signal));
      // An alias that the operator made by hand stays.
      const isOurs = image?.properties?.[PROPERTY] === this.#markOf(alias) || image?.fingerprint === fingerprint;
      if (image && isOurs) await this.#remove(path, signal);
      await this.#clean(alias, [fingerprint], signal);
    });
  }

  /** @throws DriverError rejected if the engine does not let us change images */
  async #explained<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const { product } = await this.#facts.read(signal);
    return work().catch((error) => {
      if (!(error instanceof EngineError && error.status === 403)) throw error;
      const { project } = this.#client;
      const command = `${product === 'INCUS' ? 'incus' : 'lxc'} image import`;
      const why = `The project ${project} has no images of its own, so its certificate may not change any.`;
      throw new DriverError('rejected', `${why} Bring this one by hand: ${command}. (${error.message})`);
    });
  }

  async #import({ alias, virtualMachine, origin, fingerprint: before }: WantedImage, signal: AbortSignal) {
    const fingerprint =
      'server' in origin
        ? await this.#copy(alias, virtualMachine, origin, signal)
        : await this.#upload(alias, origin, signal);
    const fault = faultOf(virtualMachine, origin, await this.#find(fingerprint, signal));
    if (fault) {
      await this.#clean(alias, [before], signal);
      throw fault;
    }
    await this.#point(alias, fingerprint, signal);
    await this.#clean(alias, [before], signal, fingerprint);
    return fingerprint;
  }

  /** @returns its fingerprint, which is the checksum of the uploaded file */
  async #upload(alias: string, { sha256, download }: ImageFile, signal: AbortSignal) {
    if (await this.#find(sha256, signal)) return sha256;
    const ours = new URLSearchParams({ [PROPERTY]: this.#markOf(alias) }).toString();
    const headers = Object.fromEntries(
      ['X-LXD', 'X-Incus'].flatMap((vendor) => [
        [`${vendor}-fingerprint`, sha256],
        [`${vendor}-properties`, ours],
      ]),
    );
    await this.#client.upload('/1.0/images', download(signal), headers, signal).catch(async (error) => {
      // Another process has uploaded it meanwhile.
      if (!(error instanceof EngineError) || !(await this.#find(sha256, signal))) throw error;
    });
    return sha256;
  }

  /** @returns the fingerprint of the image that the engine fetched from an image server */
  async #copy(alias: string, virtualMachine: boolean, origin: ServedImage, signal: AbortSignal): Promise<string> {
    const type = virtualMachine ? 'virtual-machine' : 'container';
    const { server, alias: remote } = origin;
    const source = { type: 'image', mode: 'pull', protocol: 'simplestreams', server, alias: remote, image_type: type };
    const body = { source, properties: { [PROPERTY]: this.#markOf(alias) }, auto_update: false };
    const made = await this.#client.call('POST', '/1.0/images', body, signal).catch((error) => {
      // The engine reports in the same words that it cannot reach a member, or the image server.
      const isOther = error instanceof EngineError && ![401, 403].includes(error.status);
      throw isOther ? new DriverError('failed', error.message) : error;
    });
    return (made as { fingerprint: string }).fingerprint;
  }

  async #find(fingerprint: string, signal: AbortSignal): Promise<EngineImage | undefined> {
    return this.#client.get<EngineImage>(`/1.0/images/${fingerprint}`, signal).catch(ignoreMissing);
  }

  /** Moves an alias at once, so that machines find the old image or the new one. */
  async #point(alias: string, target: string, signal: AbortSignal): Promise<void> {
    const path = pathOf(alias);
    const known = await this.#client.get<{ target: string }>(path, signal).catch(ignoreMissing);
    if (known?.target === target) return;
    if (known) await this.#client.call('PUT', path, { target, description: '' }, signal);
    else await this.#client.call('POST', '/1.0/images/aliases', { name: alias, target, description: '' }, signal);
  }

  /**
   * Deletes our images that came for an alias, and those given, if they have no alias any more.
   * @param kept the image that stays
   */
  async #clean(alias: string, given: (string | null)[], signal: AbortSignal, kept?: string): Promise<void> {
    const all = await this.#client.get<EngineImage[]>('/1.0/images?recursion=1', signal);
    for (const { fingerprint, aliases, properties } of all) {
      const mark = properties?.[PROPERTY];
      if (!mark || aliases.length || fingerprint === kept) continue;
      if (mark === this.#markOf(alias) || given.includes(fingerprint))
        await this.#remove(`/1.0/images/${fingerprint}`, signal);
    }
  }

  async #remove(path: string, signal: AbortSignal): Promise<void> {
    await this.#client.call('DELETE', path, undefined, signal).catch(ignoreMissing);
  }

  #markOf = (alias: string): string => `${this.#client.project}/${alias}`;
}

/** The error for an image that machines must not get. */
function faultOf(
  virtualMachine: boolean,
  { sha256 }: WantedImage['origin'],
  found: EngineImage | undefined,
): DriverError | undefined {
  if (!found) return new DriverError('failed', 'The engine has lost the image.');
  if (sha256 !== null && found.fingerprint !== sha256)
    return new DriverError('rejected', `The SHA-256 of the image is ${found.fingerprint}, and not ${sha256}.`);
  if ((found.type === 'virtual-machine') === virtualMachine) return undefined;
  return new DriverError('rejected', `The image is for machines of the type ${found.type}.`);
}

const pathOf = (alias: string): string => `/1.0/images/aliases/${encodeURIComponent(alias)}`;

function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof EngineError && error.status === 404)) throw error;
}
