/** The root fields of the schema. Forms and lists follow it, so that a new argument needs no change here. */
import { Refusal } from './refusal.ts';

/** A type of GraphQL, with the wrappers that make it a list or required. */
export interface TypeRef {
  kind: string;
  name: string | null;
  ofType: TypeRef | null;
}
export interface Argument {
  name: string;
  description: string | null;
  defaultValue: string | null;
  type: TypeRef;
}
export interface RootField {
  name: string;
  description: string;
  args: Argument[];
  type: TypeRef;
}
interface NamedType {
  name: string;
  kind: string;
  description: string | null;
  enumValues: { name: string }[] | null;
  inputFields: Argument[] | null;
  fields: { name: string; type: TypeRef }[] | null;
}

/** The schema, as `facades/console/model.ts` writes it. */
interface Model {
  queryType: { fields: RootField[] };
  mutationType: { fields: RootField[] };
  types: NamedType[];
}

let fields = new Map<string, RootField>();
let types = new Map<string, NamedType>();

/** Reads the schema once, before the first page. The browser keeps it until the service has another one. @throws Refusal */
export async function loadModel(): Promise<void> {
  if (fields.size) return;
  const response = await fetch(new URL('model.json', import.meta.url)).catch(() => undefined);
  if (!response?.ok) throw new Refusal('The service does not answer. Is it running?', 'unreachable');
  const schema: Model = await response.json();
  fields = new Map([...schema.queryType.fields, ...schema.mutationType.fields].map((field) => [field.name, field]));
  types = new Map(schema.types.map((type) => [type.name, type]));
}

export const rootField = (name: string): RootField => fields.get(name)!;

/** The type without its wrappers. */
export const innermost = (type: TypeRef): TypeRef => (type.ofType ? innermost(type.ofType) : type);
export const isRequired = ({ kind }: TypeRef): boolean => kind === 'NON_NULL';
export const isList = (type: TypeRef): boolean => type.kind === 'LIST' || (isRequired(type) && isList(type.ofType!));
/** The type as a document writes it, such as `[ID!]!`. */
export const written = ({ kind, name, ofType }: TypeRef): string =>
  kind === 'NON_NULL' ? `${written(ofType!)}!` : kind === 'LIST' ? `[${written(ofType!)}]` : name!;

/** The values of an enum, or undefined for another type. */
export const valuesOf = (type: TypeRef): string[] | undefined =>
  types.get(innermost(type).name!)?.enumValues?.map(({ name }) => name);
/** The fields of an input object, or undefined for another type. */
export const inputsOf = (type: TypeRef): Argument[] | undefined =>
  types.get(innermost(type).name!)?.inputFields ?? undefined;
/** The type of a field of an object, or undefined without such a field. */
export const memberOf = (type: TypeRef | undefined, field: string): TypeRef | undefined =>
  type && types.get(innermost(type).name!)?.fields?.find(({ name }) => name === field)?.type;
/** The rule of a scalar, in words. */
export const ruleOf = (type: TypeRef): string => {
  const { name } = innermost(type);
  return PLAIN.has(name!) ? '' : (types.get(name!)?.description ?? '');
};
/** The types whose descriptions tell people nothing more. */
const PLAIN: ReadonlySet<string> = new Set([
  ...['Boolean', 'Int', 'Float', 'String', 'ID'],
  ...['Line', 'Code', 'Usd', 'DateTime', 'Date'],
]);

/** `expiresAt` as people read it: `Expires at`. */
export const inWords = (name: string): string => {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(' ');
  const written = spelled(words);
  return /^vCPU/.test(written) ? written : written[0]!.toUpperCase() + written.slice(1);
};
/** The title of a value that is shown with its unit: `priceMonthUsd` is `Price month`. */
export const titleOf = (name: string): string => inWords(name.replace(/Usd$/, ''));
/** `READ_ONLY`, a value of an enum, as people read it: `read only`. */
export const enumInWords = (value: string): string => spelled(value.toLowerCase().split('_'));
const spelled = (words: string[]): string => words.map((word) => SPELLINGS[word] ?? word).join(' ');
const SPELLINGS: Record<string, string> = {
  ...{
    usd: 'USD',
    id: 'ID',
    ipv4: 'IPv4',
    ipv6: 'IPv6',
    mac: 'MAC',
    url: 'URL',
    ssh: 'SSH',
    bmc: 'BMC',
    totp: 'second factor',
    tx: 'transaction',
    q: 'search',
    vps: 'VPS',
    lxd: 'LXD',
    ipmi: 'IPMI',
    http: 'HTTP',
  },
  ...{
    gb: 'GB',
    mb: 'MB',
    tb: 'TB',
    mbps: 'Mbps',
    os: 'system',
    vcpus: 'vCPUs',
    cidr: 'network',
    ptr: 'PTR',
    sha256: 'SHA-256',
  },
};
