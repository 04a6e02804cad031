/** The images that the service brings to engines, for the operator. */
import type { EngineImage } from '../../entities/engine-image.ts';
import {
  IMAGE_STATES,
  importImage,
  listEngineImages,
  refreshImage,
  withdrawImage,
} from '../../resolvers/catalog/engine-images.ts';
import { builder, enumType, inputType, objectType } from '../builder.ts';

const ImageState = enumType(
  'ImageState',
  'A worker imports or withdraws an image. While it imports, the engine keeps the earlier image.',
  IMAGE_STATES,
);
const EngineImageType = objectType<EngineImage>(
  'EngineImage',
  'An image that the service brings to an engine.',
  (t) => ({
    engine: t.exposeString('engine'),
    code: t.exposeString('code', { description: 'Its code in the catalog.' }),
    virtualMachine: t.exposeBoolean('virtualMachine', { description: 'Whether virtual machines boot from it.' }),
    state: t.expose('state', { type: ImageState }),
    url: t.exposeString('url', { nullable: true, description: 'Null: it comes from an image server.' }),
    sha256: t.exposeString('sha256', { nullable: true }),
    server: t.exposeString('server', { nullable: true }),
    serverAlias: t.exposeString('serverAlias', { nullable: true }),
    fingerprint: t.exposeString('fingerprint', {
      nullable: true,
      description: 'The image that the engine has. Null: none yet.',
    }),
    trouble: t.exposeString('trouble', { nullable: true, description: 'The error of the last attempt, if it failed.' }),
    troubleAt: t.expose('troubleAt', { type: 'DateTime', nullable: true }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
  }),
);

type Fields = Parameters<Parameters<typeof builder.inputType>[1]['fields']>[0];
const key = (t: Fields) => ({
  engine: t.field({ type: 'HostName', required: true }),
  code: t.field({ type: 'Code', required: true, description: 'The code of an image of the catalog.' }),
  virtualMachine: t.boolean({
    required: true,
    defaultValue: false,
    description: 'Whether virtual machines boot from it.',
  }),
});
const ImportImageInput = inputType('ImportImageInput', (t) => ({
  ...key(t),
  url: t.field({ type: 'Prose', description: 'A unified tarball, by https or http.' }),
  sha256: t.field({ type: 'Line', description: 'The SHA-256 of that file, in hex. Optional for an image server.' }),
  server: t.field({ type: 'Prose', description: 'An image server (simplestreams), in place of the URL.' }),
  serverAlias: t.field({ type: 'Line', description: 'The alias of the image on that server.' }),
}));
const ImageKeyInput = inputType('ImageKeyInput', key);

builder.queryFields((t) => ({
  engineImages: t.field({
    type: [EngineImageType],
    scope: 'operator',
    description: 'The images that the service brings to engines. Those imported by hand are absent.',
    resolve: (_, __, context) => listEngineImages(context),
  }),
}));
builder.mutationFields((t) => ({
  importImage: t.field({
    type: EngineImageType,
    scope: 'operator',
    right: 'owner',
    description: 'Brings an image to an engine, also in the place of an earlier one.',
    args: { input: t.arg({ type: ImportImageInput, required: true }) },
    resolve: (_, { input }, context) => importImage(context, input),
  }),
  refreshImage: t.field({
    type: EngineImageType,
    scope: 'operator',
    right: 'owner',
    description: 'Imports an image again from where it came.',
    args: { input: t.arg({ type: ImageKeyInput, required: true }) },
    resolve: (_, { input }, context) => refreshImage(context, input),
  }),
  withdrawImage: t.field({
    type: EngineImageType,
    scope: 'operator',
    right: 'owner',
    description: 'Stops orders of an image on an engine, and removes it there. Machines keep it.',
    args: { input: t.arg({ type: ImageKeyInput, required: true }) },
    resolve: (_, { input }, context) => withdrawImage(context, input),
  }),
}));
