/** Maps the names and enum values of inputs from the API to GraphQL. Each mapper is built once. */
import {
  type GraphQLInputObjectType,
  type GraphQLInputType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
} from 'graphql';
import { apiEnumValue, snake } from './names.ts';
import { defaultOf } from './parameters.ts';
import { noteWord } from './words.ts';

/** Maps a value. Callers do not pass null. */
export type Mapper = (value: unknown) => unknown;
type Members = Record<string, unknown>;

export const isRecord = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The most entries of a list in an input. */
export const ENTRIES_MAX = 100;

/** A single value is a list of one, as in GraphQL. A list that is too long becomes an object, which GraphQL refuses. */
function listMapper(map: Mapper = (value) => value): Mapper {
  return (value) => {
    if (!Array.isArray(value)) return [map(value)];
    return value.length > ENTRIES_MAX ? {} : value.map((item) => (item === null ? item : map(item)));
  };
}

/**
 * Maps names and enum values at all depths; undefined if there is nothing to map. An invalid value stays invalid, so that
 * GraphQL refuses it.
 * @param mappers those of input objects, by type: the types may refer to one another
 */
export function inputMapper(type: GraphQLInputType, mappers = new Map<unknown, Mapper>()): Mapper | undefined {
  const bare = getNullableType(type);
  if (isListType(bare)) return listMapper(inputMapper(bare.ofType, mappers));
  if (isEnumType(bare)) {
    const names = new Map(bare.getValues().map(({ name }) => [apiEnumValue(name), name]));
    return (value) => names.get(value as string) ?? (typeof value === 'string' ? '' : value);
  }
  return isInputObjectType(bare) ? objectMapper(bare, mappers) : undefined;
}

/** Also fills in the defaults of fields, because a compiled document applies only the defaults of variables. */
function objectMapper(type: GraphQLInputObjectType, mappers: Map<unknown, Mapper>): Mapper {
  const existing = mappers.get(type);
  if (existing) return existing;
  const fields = new Map<string, [name: string, map: Mapper | undefined]>();
  const defaults: [name: string, value: unknown][] = [];
  const map: Mapper = (value) => {
    if (!isRecord(value)) return value;
    const mapped: Members = {};
    for (const [name, fallback] of defaults) mapped[name] = fallback;
    for (const key in value) {
      const field = fields.get(key);
      const inner = value[key];
      // No GraphQL name has a space, so GraphQL refuses an unknown key such as `serviceCode` or `__proto__`. One is enough:
      // GraphQL would write all of them into its error.
      if (!field) return { ' ': null };
      mapped[field[0]] = field[1] && inner !== null ? field[1](inner) : inner;
    }
    return mapped;
  };
  mappers.set(type, map);
  for (const field of Object.values(type.getFields())) {
    const mapInner = inputMapper(field.type, mappers);
    fields.set(snake(field.name), [field.name, mapInner]);
    const fallback = defaultOf(field);
    if (fallback !== undefined) defaults.push([field.name, mapInner ? mapInner(fallback) : fallback]);
  }
  return map;
}

/** Other names of fields. An alias applies to types that have the field, and no field of the alias' own name. */
const ALIASES: readonly (readonly [alias: string, field: string])[] = [
  ['code', 'totp_code'],
  ['code', 'service_code'],
  ['plan', 'service_code'],
  ['bastion', 'region'],
  ['location', 'region'],
  ['image', 'os'],
  ['events', 'event_filter'],
];

/** Renames aliases in a body, in place. An alias beside its field stays, and GraphQL refuses it as unknown. */
export function aliasing(type: GraphQLInputObjectType): ((body: Members) => void) | undefined {
  const names = new Set(Object.keys(type.getFields()).map(snake));
  const aliases = ALIASES.filter(([alias, field]) => names.has(field) && !names.has(alias));
  if (!aliases.length) return undefined;
  return (body) => {
    for (const [alias, field] of aliases) {
      if (!Object.hasOwn(body, alias) || Object.hasOwn(body, field)) continue;
      body[field] = body[alias];
      delete body[alias];
      noteWord(body, field, alias);
    }
  };
}
