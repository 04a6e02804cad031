/**
 * Brings images to engines, and withdraws them. One task for each image of an engine carries out its row. A repetition finds what
 * an earlier attempt has done, so a killed worker loses nothing.
 */

import type { Database } from '../../../entities/database/database.ts';
import { find, lock, remove } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import {
  ENGINE_IMAGE_LIFECYCLE,
  EngineImage,
  HIDE_IMAGE,
  type ImageState,
  NOTE_IMAGE_TROUBLE,
  SHOW_IMAGE,
} from '../../../entities/engine-image.ts';
import { OPERATOR_ACCOUNT, SYSTEM } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import { transition } from '../../../entities/history/transition.ts';
import { Engine } from '../../../entities/servers/engine.ts';
import type { NewTask } from '../../../entities/tasks/start.ts';
import { backoffSeconds, done, type LeasedTask, type Outcome, type Process } from '../../tasks/tasks.ts';
import { DriverError } from '../drivers/driver.ts';
import type { ImageStore, WantedImage } from '../drivers/image-store.ts';
import type { Engines } from '../engines.ts';
import { isOutage, wordsOf } from '../steps/trouble.ts';
import { download } from './download.ts';

export const [IMAGE_LANE, IMAGE_PROCESS] = ['images', 'image'];
const STEP = 'carry-out';
/** The attempts at an import, within about ten minutes. A withdrawal repeats without end. */
const ATTEMPTS_MAX = 6;
/** Seconds of the first pause and of the longest one. */
const PAUSES = { first: 10, most: 600 };

/** The task that brings an image to its engine, or withdraws it. */
export const imageTask = ({ name, engine }: Pick<EngineImage, 'name' | 'engine'>): NewTask => ({
  lane: IMAGE_LANE,
  process: IMAGE_PROCESS,
  subject: name,
  accountId: OPERATOR_ACCOUNT,
  party: engine,
  step: STEP,
});

export function imageProcess(db: Database, engines: Pick<Engines, 'all'>): Process {
  const run = async ({ subject: name, aborted }: LeasedTask): Promise<Outcome> => {
    const image = await find(db, EngineImage, { name });
    if (image?.state !== 'IMPORTING' && image?.state !== 'WITHDRAWING') return done();
    try {
      return await carryOut(image, await storeOf(engines, image), aborted);
    } catch (error) {
      if (error instanceof DriverError && error.code === 'rejected' && image.state === 'IMPORTING')
        return done({ commit: (tx) => fail(tx, image, wordsOf(error)) });
      if (!aborted.aborted) await NOTE_IMAGE_TROUBLE.all(db, [name, wordsOf(error)]);
      throw error;
    }
  };
  return {
    lane: IMAGE_LANE,
    attemptsMax: ATTEMPTS_MAX,
    isOutage,
    backoffSeconds: (attempt) => backoffSeconds(attempt, PAUSES),
    steps: { [STEP]: run },
    onExhausted: async ({ subject: name, step }, tx, error) => {
      const image = await find(tx, EngineImage, { name });
      if (image?.state === 'IMPORTING') await fail(tx, image, error);
      return step;
    },
  };
}

/** @throws DriverError unreachable without the engine; rejected if it has no images */
async function storeOf(engines: Pick<Engines, 'all'>, { engine }: EngineImage): Promise<ImageStore> {
  const connected = (await engines.all()).find(({ name }) => name === engine);
  if (!connected) throw new DriverError('unreachable', `The engine ${engine} does not exist.`);
  const { imageStore } = await connected.driver();
  if (!imageStore) throw new DriverError('rejected', `The engine ${engine} has no images.`);
  return imageStore;
}

async function carryOut(image: EngineImage, store: ImageStore, signal: AbortSignal): Promise<Outcome> {
  if (image.state === 'WITHDRAWING') {
    await store.withdraw({ ...image, fingerprint: image.fingerprint ?? image.sha256 }, signal);
    return done({ commit: (tx) => end(tx, image) });
  }
  const fingerprint = await store.import({ ...image, origin: originOf(image) }, signal);
  return done({ commit: (tx) => finish(tx, image, fingerprint) });
}

function originOf({ url, sha256, server, serverAlias }: EngineImage): WantedImage['origin'] {
  if (url === null) return { server: server!, alias: serverAlias!, sha256 };
  const file = { url, sha256: sha256! };
  return { sha256: sha256!, download: (signal) => download(file, signal) };
}

async function finish(tx: Transaction, { name, engine, alias }: EngineImage, fingerprint: string): Promise<void> {
  await lock(tx, Engine, { name: engine });
  const set = { fingerprint, trouble: null, troubleAt: null };
  if (!(await transition(tx, ENGINE_IMAGE_LIFECYCLE, name, 'READY', { set }))) return;
  await SHOW_IMAGE.all(tx, [engine, alias]);
  await tell(tx, { engine, alias }, 'READY');
}

async function fail(tx: Transaction, { name, engine, alias }: EngineImage, trouble: string): Promise<void> {
  await NOTE_IMAGE_TROUBLE.all(tx, [name, trouble]);
  if (await transition(tx, ENGINE_IMAGE_LIFECYCLE, name, 'FAILED')) await tell(tx, { engine, alias }, 'FAILED');
}

/** Ends a withdrawal. A look may have read the image before. */
async function end(tx: Transaction, { name, engine, alias }: EngineImage): Promise<void> {
  await lock(tx, Engine, { name: engine });
  await HIDE_IMAGE.all(tx, [engine, alias]);
  await remove(tx, EngineImage, { name });
  await tell(tx, { engine, alias }, 'WITHDRAWN');
}

const tell = (
  tx: Transaction,
  { engine, alias }: Pick<EngineImage, 'engine' | 'alias'>,
  state: ImageState | 'WITHDRAWN',
): Promise<unknown> =>
  record(tx, OPERATOR_ACCOUNT, engine, { type: 'engine.updated', actor: SYSTEM, data: { image: alias, state } });
