/** The images of the catalog, for the operator. */
import type { CatalogItem, ImageDetails } from '../../entities/catalog.ts';
import { addImage, listImages, offerImage } from '../../resolvers/catalog/images.ts';
import { builder, inputType, objectType } from '../builder.ts';

const detailsOf = ({ details }: CatalogItem) => details as ImageDetails;
const ImageType = objectType<CatalogItem>('Image', 'An image for machines. Engines know it by its code.', (t) => ({
  code: t.exposeString('code'),
  name: t.exposeString('name'),
  offered: t.exposeBoolean('offered', { description: 'Whether customers can order it.' }),
  family: t.string({ resolve: (item) => detailsOf(item).family }),
  version: t.string({ resolve: (item) => detailsOf(item).version }),
  deprecatedAt: t.field({
    type: 'DateTime',
    nullable: true,
    description: 'The time of its retirement.',
    resolve: (item) => {
      const { deprecatedAt } = detailsOf(item);
      return deprecatedAt === null ? null : new Date(deprecatedAt);
    },
  }),
}));
const AddImageInput = inputType('AddImageInput', (t) => ({
  code: t.field({ type: 'Code', required: true, description: 'The code that engines use.' }),
  name: t.field({ type: 'Line', required: true }),
  family: t.field({ type: 'Code', required: true, description: 'Such as debian.' }),
  version: t.field({ type: 'Code', required: true }),
  architecture: t.field({ type: 'Code', required: true, defaultValue: 'x86_64' }),
  minDiskGb: t.field({ type: 'Amount', required: true }),
  minMemoryMb: t.field({ type: 'Amount', required: true }),
  cloudInit: t.boolean({ required: true, defaultValue: true, description: 'Whether it reads user data.' }),
  defaultUser: t.field({ type: 'Code', required: true, defaultValue: 'root' }),
}));

builder.queryFields((t) => ({
  images: t.field({
    type: [ImageType],
    scope: 'operator',
    description: 'All images, including retired ones.',
    resolve: (_, __, context) => listImages(context),
  }),
}));

const code = { type: 'Code', required: true, description: 'The code of an image.' } as const;
builder.mutationFields((t) => ({
  addImage: t.field({
    type: ImageType,
    scope: 'operator',
    right: 'owner',
    description: 'Offers a new image.',
    args: { input: t.arg({ type: AddImageInput, required: true }) },
    resolve: (_, { input }, context) => addImage(context, input),
  }),
  offerImage: t.field({
    type: ImageType,
    scope: 'operator',
    right: 'owner',
    description: 'Offers an image again.',
    args: { code: t.arg(code) },
    resolve: (_, args, context) => offerImage(context, args.code, true),
  }),
  retireImage: t.field({
    type: ImageType,
    scope: 'operator',
    right: 'owner',
    description: 'Retires an image. Machines keep it.',
    args: { code: t.arg(code) },
    resolve: (_, args, context) => offerImage(context, args.code, false),
  }),
}));
