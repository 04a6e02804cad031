/** Inputs from the wire to GraphQL: names and enum values, by mappers that are compiled once. */
import {
  type GraphQLInputObjectType,
  type GraphQLInputType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
} from 'graphql';
import { snake, wireOfEnum } from './names.ts';
import { defaultOf } from './parameters.ts';

/** Maps a value that is not null. */
export type Mapper = (value: unknown) => unknown;
type Members = Record<string, unknown>;

export const isRecord = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** How many entries a list of an input may have. */
export const ENTRIES_MAX = 100;

/** GraphQL takes a single value for a list of one. It refuses an object, which stands for a list that is too long. */
function listMapper(map: Mapper = (value) => value): Mapper {
  return (value) => {
    if (!Array.isArray(value)) return map(value);
    return value.length > ENTRIES_MAX ? {} : value.map((item) => (item === null ? item : map(item)));
  };
}

/** Names and enum values, deep; undefined if nothing is to be mapped. What GraphQL has to refuse stays refusable. */
export function inputMapper(type: GraphQLInputType, known = new Map<unknown, Mapper>()): Mapper | undefined {
  const bare = getNullableType(type);
  if (isListType(bare)) return listMapper(inputMapper(bare.ofType, known));
  if (isEnumType(bare)) {
    const names = new Map(bare.getValues().map(({ name }) => [wireOfEnum(name), name]));
    return (value) => names.get(value as string) ?? (typeof value === 'string' ? '' : value);
  }
  return isInputObjectType(bare) ? objectMapper(bare, known) : undefined;
}

/** Defaults are put in here, because a compiled document knows only those of its variables. */
function objectMapper(type: GraphQLInputObjectType, known: Map<unknown, Mapper>): Mapper {
  const done = known.get(type);
  if (done) return done;
  const fields = new Map<string, [name: string, map: Mapper | undefined]>();
  const defaults: [name: string, value: unknown][] = [];
  const map: Mapper = (value) => {
    if (!isRecord(value)) return value;
    const mapped: Members = {};
    for (const [name, fallback] of defaults) mapped[name] = fallback;
    for (const key in value) {
      const field = fields.get(key);
      const inner = value[key];
      // No GraphQL name has a space, so `serviceCode` or `__proto__` cannot pass for something known.
      if (!field) mapped[` ${key}`] = inner;
      else mapped[field[0]] = field[1] && inner !== null ? field[1](inner) : inner;
    }
    return mapped;
  };
  known.set(type, map);
  for (const field of Object.values(type.getFields())) {
    const mapInner = inputMapper(field.type, known);
    fields.set(snake(field.name), [field.name, mapInner]);
    const fallback = defaultOf(field);
    if (fallback !== undefined) defaults.push([field.name, mapInner ? mapInner(fallback) : fallback]);
  }
  return map;
}

/** Names that the facades also take for a field, where the type has that field and none of the alias itself. */
const ALIASES: readonly (readonly [alias: string, field: string])[] = [
  ['code', 'totp_code'],
  ['code', 'service_code'],
  ['plan', 'service_code'],
  ['bastion', 'region'],
  ['location', 'region'],
  ['image', 'os'],
  ['events', 'event_filter'],
];

/** Renames aliases in a body, in place; one that stands beside its field stays, and is refused as unknown. */
export function aliasing(type: GraphQLInputObjectType): ((body: Members) => void) | undefined {
  const names = new Set(Object.keys(type.getFields()).map(snake));
  const aliases = ALIASES.filter(([alias, field]) => names.has(field) && !names.has(alias));
  if (!aliases.length) return undefined;
  return (body) => {
    for (const [alias, field] of aliases) {
      if (!Object.hasOwn(body, alias) || Object.hasOwn(body, field)) continue;
      body[field] = body[alias];
      delete body[alias];
    }
  };
}
