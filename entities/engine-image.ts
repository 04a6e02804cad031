/**
 * The images that the service brings to engines. The operator writes a row, and the task of its name carries it out. Images that
 * the operator brings by hand have no row.
 */
import * as column from './database/column.ts';
import { statement } from './database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from './database/table.ts';
import type { Lifecycle } from './history/lifecycle.ts';
import { VM_SUFFIX } from './servers/engine.ts';

export const IMAGE_STATES = ['IMPORTING', 'READY', 'FAILED', 'WITHDRAWING'] as const;
export type ImageState = (typeof IMAGE_STATES)[number];

export const EngineImage = entity('engine_image', {
  /** The engine and the alias; also the subject of the task. */
  name: column.key(),
  engine: column.text(),
  /** Of the catalog. */
  code: column.text(),
  /** Whether virtual machines boot from it. Containers need another image. */
  virtualMachine: column.boolean(),
  /** The name that the engine knows it by. */
  alias: column.text(),
  /** The worker downloads it from there. Null: the engine asks an image server. */
  url: nullable(column.text()),
  /** In hex. Null: the image server is trusted. */
  sha256: nullable(column.text()),
  server: nullable(column.text()),
  serverAlias: nullable(column.text()),
  state: defaulting(column.oneOf(...IMAGE_STATES), "'IMPORTING'"),
  /** SHA-256 of the image that the service last gave that alias. */
  fingerprint: nullable(column.text()),
  /** The error of the last attempt; null after one that succeeded. */
  trouble: nullable(column.text()),
  troubleAt: nullable(column.timestamp()),
  createdAt: column.now(),
  updatedAt: column.now(),
});
export type EngineImage = RowOf<typeof EngineImage>;

export const aliasOfImage = ({ code, virtualMachine }: Pick<EngineImage, 'code' | 'virtualMachine'>): string =>
  virtualMachine ? `${code}${VM_SUFFIX}` : code;

/** After the withdrawal the row is gone. */
export const ENGINE_IMAGE_LIFECYCLE: Lifecycle<EngineImage, ImageState> = {
  table: EngineImage,
  key: 'name',
  state: 'state',
  transitions: {
    IMPORTING: ['READY', 'FAILED', 'WITHDRAWING'],
    READY: ['IMPORTING', 'WITHDRAWING'],
    FAILED: ['IMPORTING', 'WITHDRAWING'],
    WITHDRAWING: ['IMPORTING'],
  },
};

export const LIST_ENGINE_IMAGES = statement(EngineImage.columns)`
  select ${columnsOf(EngineImage)} from engine_image order by name collate "C"`;
/** Notes the error of an attempt, unless the image is done meanwhile. $1 name, $2 the error. */
export const NOTE_IMAGE_TROUBLE = statement({})`
  update engine_image set trouble = $2, trouble_at = now() where name = $1 and state in ('IMPORTING', 'WITHDRAWING')`;
/** Removes the rows of engines that do not exist. */
export const REMOVE_IMAGES_OF_NO_ENGINE = statement({})`
  delete from engine_image where not exists (select from engine where engine.name = engine_image.engine)`;
/** Adds an image to those that the engine told, so that orders need not wait for a look. $1 engine, $2 alias. */
export const SHOW_IMAGE = statement({})`
  update engine set images = array_append(images, $2) where name = $1 and not $2 = any(images)`;
/** Takes an image from those that the engine told, so that orders stop at once. $1 engine, $2 alias. */
export const HIDE_IMAGE = statement({})`
  update engine set images = array_remove(images, $2) where name = $1 and $2 = any(images)`;
