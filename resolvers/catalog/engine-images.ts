/** The images that the service brings to engines. A resolver writes what the operator wants, and a worker carries it out. */
import { CatalogItem } from '../../entities/catalog.ts';
import { exists, find, insert, lock, update } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import {
  aliasOfImage,
  ENGINE_IMAGE_LIFECYCLE,
  EngineImage,
  HIDE_IMAGE,
  LIST_ENGINE_IMAGES,
} from '../../entities/engine-image.ts';
import { transition } from '../../entities/history/transition.ts';
import { Engine } from '../../entities/servers/engine.ts';
import { startTask } from '../../entities/tasks/start.ts';
import { imageTask } from '../../provisioning/index.ts';
import type { Context } from '../context.ts';
import { found, invalid } from '../errors.ts';
import { recordByOperator } from '../record.ts';

export { IMAGE_STATES } from '../../entities/engine-image.ts';

const URL_CHARACTERS_MAX = 2048;

/** An image of an engine. */
export type ImageKey = Pick<EngineImage, 'engine' | 'code' | 'virtualMachine'>;
/** An image with its origin: a URL with its checksum, or an image server. */
export type ImportedImage = ImageKey & {
  [K in 'url' | 'sha256' | 'server' | 'serverAlias']?: string | null | undefined;
};

export const listEngineImages = ({ db }: Context): Promise<EngineImage[]> => LIST_ENGINE_IMAGES.all(db);

/** Imports an image, also in the place of an earlier one. @throws ApiError not_found, validation_failed */
export async function importImage(context: Context, given: ImportedImage): Promise<EngineImage> {
  const { engine, code, virtualMachine } = given;
  const alias = aliasOfImage(given);
  const row = { name: `${engine}/${alias}`, engine, code, virtualMachine, alias, ...originOf(given) };
  return context.db.transaction(async (tx) => {
    await lockEngine(tx, engine);
    if (!(await exists(tx, CatalogItem, { code, kind: 'image' })))
      throw invalid('code', 'The catalog has no such image. Add it by addImage.');
    const before = await lock(tx, EngineImage, { name: row.name });
    if (!before) await insert(tx, EngineImage, row);
    else await update(tx, EngineImage, { name: row.name }, row);
    return begin(tx, context, row.name);
  });
}

/** Imports an image again from where it came. @throws ApiError not_found */
export const refreshImage = (context: Context, key: ImageKey): Promise<EngineImage> =>
  context.db.transaction(async (tx) => {
    await lockEngine(tx, key.engine);
    const { name } = await lockImage(tx, key);
    return begin(tx, context, name);
  });

/** Stops orders of an image at once, and lets a worker remove it from its engine. @throws ApiError not_found */
export async function withdrawImage(context: Context, key: ImageKey): Promise<EngineImage> {
  return context.db.transaction(async (tx) => {
    await lockEngine(tx, key.engine);
    const image = await lockImage(tx, key);
    const withdrawn = (await transition(tx, ENGINE_IMAGE_LIFECYCLE, image.name, 'WITHDRAWING')) ?? image;
    await HIDE_IMAGE.all(tx, [image.engine, image.alias]);
    await startTask(tx, imageTask(image));
    await recordImage(tx, context, withdrawn);
    return withdrawn;
  });
}

async function begin(tx: Transaction, context: Context, name: string): Promise<EngineImage> {
  const set = { trouble: null, troubleAt: null };
  await transition(tx, ENGINE_IMAGE_LIFECYCLE, name, 'IMPORTING', { set });
  const image = (await find(tx, EngineImage, { name }))!;
  await startTask(tx, imageTask(image));
  await recordImage(tx, context, image);
  return image;
}

/** Locks the engine before its images. @throws ApiError not_found; validation_failed if it has no images */
async function lockEngine(tx: Transaction, name: string): Promise<void> {
  const { product, connection, seenAt, trouble } = found(await lock(tx, Engine, { name }), 'There is no such engine.');
  if (product || connection) return;
  if (trouble)
    throw invalid('engine', `No worker has read the images of ${name} yet, because the last look failed: ${trouble}`);
  const none = `The engine ${name} has no images of its own.`;
  throw invalid('engine', seenAt ? none : `No worker has looked at ${name} yet. Try again in a minute.`);
}

const lockImage = async (tx: Transaction, key: ImageKey): Promise<EngineImage> =>
  found(
    await lock(tx, EngineImage, { name: `${key.engine}/${aliasOfImage(key)}` }),
    'The service has not imported that image.',
  );

const recordImage = (tx: Transaction, context: Context, { engine, alias, state, url, server }: EngineImage) =>
  recordByOperator(tx, context, engine, { type: 'engine.updated', data: { image: alias, state, from: url ?? server } });

/** @throws ApiError validation_failed */
function originOf(given: ImportedImage): Pick<EngineImage, 'url' | 'sha256' | 'server' | 'serverAlias'> {
  const { url = null, server = null, serverAlias = null } = given;
  const sha256 = given.sha256?.toLowerCase() ?? null;
  if (sha256 !== null && !/^[0-9a-f]{64}$/.test(sha256)) throw invalid('sha256', 'State 64 hexadecimal digits.');
  if ((url === null) === (server === null)) throw invalid('url', 'State either a URL or an image server.');
  if (url !== null) requireUrl('url', url, ['http:', 'https:']);
  else requireUrl('server', server!, ['https:']);
  if (url !== null && sha256 === null) throw invalid('sha256', 'An image by URL needs its SHA-256.');
  if ((server === null) !== (serverAlias === null))
    throw invalid('server_alias', 'An image server comes with the alias of an image.');
  return { url, sha256, server, serverAlias };
}

function requireUrl(field: string, text: string, protocols: readonly string[]): void {
  const url = text.length <= URL_CHARACTERS_MAX ? URL.parse(text) : null;
  if (!url || !protocols.includes(url.protocol) || url.username || url.password)
    throw invalid(
      field,
      `State a URL by ${protocols.map((one) => one.slice(0, -1)).join(' or ')}, without credentials.`,
    );
}
