/** Parameters of the path, the query and the headers arrive as text. */
import { type GraphQLInputType, getNullableType, isListType, isNonNullType } from 'graphql';
import type { Parameter } from './parameters.ts';
import { inputSchema } from './schemas.ts';

/** Text as a value of its type. What does not fit stays as it is, so that GraphQL refuses it. */
export type Decode = (text: string | readonly string[]) => unknown;

export function decoder({ type }: Pick<Parameter, 'type'>): Decode {
  const bare = getNullableType(type);
  if (!isListType(bare)) return single(type);
  // A list may be written `?status=a&status=b` or `?status=a,b`.
  const one = single(bare.ofType);
  return (text) => [text].flat().flatMap((part) => part.split(',').map(one));
}

function single(type: GraphQLInputType): (text: string | readonly string[]) => unknown {
  switch (inputSchema(isNonNullType(type) ? type.ofType : type).type) {
    case 'integer':
    case 'number':
      return (text) => (typeof text === 'string' && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text);
    case 'boolean':
      return (text) => (text === 'true' ? true : text === 'false' ? false : text);
    default:
      return (text) => text;
  }
}
