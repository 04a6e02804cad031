/** Repairs an argument by the sentence of its error. The rules read English, and know no field of the service. */
import { type Schema, wordsOf } from './choose.ts';
import type { Memory } from './memory.ts';

type Values = Record<string, unknown>;

export interface FieldError {
  field: string;
  message: string;
}

/** The faulty argument of a call. */
interface Fault {
  args: Values;
  field: string;
  sent: unknown;
  schema: Schema;
  memory: Memory;
  /** The words of the goal. */
  goal: readonly string[];
}

/** A sentence and its repair, which changes `args` or returns the new value of the field. */
type Rule = readonly [sentence: RegExp, repair: (fault: Fault, ...groups: string[]) => unknown];

const RULES: readonly Rule[] = [
  [/There is no field (\S+)\. Did you mean ([\w.-]+?)\?/, ({ args }, from, to) => rename(args, from!, to!)],
  [/Did you mean (\S+)\?/, (_, meant) => meant],
  [/must be one of ([^.]+)\./, (fault, values) => oneOf(values!.split(', '), fault)],
  [/must be a number/, ({ sent }) => Number(sent)],
  [/must be an object/, (fault) => objectOf(fault)],
  [/must be at least ([\d.]+)\.$/, (_, least) => Number(least)],
  [/at least (\d+) characters|less common password/, () => 'a heron stood in the wet reeds'],
  [/must begin with (\w+)\./, ({ sent }, scheme) => String(sent).replace(/^\w+:/, `${scheme}:`)],
  [/repeat the value of (\w+)/, ({ args }, other) => args[other!]],
  [/needs the (\w+) (\w+)\.$/, ({ args }, other, value) => set(args, other!, value)],
  [/It has (\S+)/, (_, first) => first],
  [/not an allowed name\..* lower-case/, ({ args, field }) => lowerKey(args, field)],
  [/One or more of (.+?), separated by spaces/, ({ sent }, words) => among(sent, words!).join(' ')],
  [/Example: (\S+)\.$/, ({ sent }, example) => inFormOf(example!, String(sent))],
];

/** @returns whether it changed an argument */
export function repaired({ field, message }: FieldError, given: Omit<Fault, 'field' | 'sent'>): boolean {
  const { args, schema, memory } = given;
  const before = JSON.stringify(args);
  const fault = { ...given, field, sent: get(args, field) };
  const [found, groups] = RULES.map((rule) => [rule, rule[0].exec(message)] as const).find(([, match]) => match) ?? [];
  const value = found ? found[1](fault, ...groups!.slice(1)) : memory.fact(field, schema);
  if (value !== undefined) set(args, field, value);
  return JSON.stringify(args) !== before;
}

function get(args: Values, path: string): unknown {
  if (path in args) return args[path];
  const [first = '', ...rest] = path.split('.');
  const inner = args[first];
  // The service counts a single value as a list of one.
  if (rest[0] === '0' && !Array.isArray(inner))
    return rest.length === 1 ? inner : get(inner as Values, rest.slice(1).join('.'));
  return rest.length && typeof inner === 'object' && inner ? get(inner as Values, rest.join('.')) : inner;
}

function set(args: Values, path: string, value: unknown): undefined {
  const [first = '', ...rest] = path.split('.');
  if (!rest.length) args[first] = value;
  else if (rest.length === 1 && rest[0] === '0' && !Array.isArray(args[first])) args[first] = [value];
  else set(args[first] as Values, rest.join('.'), value);
}

function rename(args: Values, from: string, to: string): undefined {
  args[to] = args[from];
  delete args[from];
}

function lowerKey(args: Values, path: string): undefined {
  const [first = '', key = ''] = path.split(/\.(.*)/);
  rename(args[first] as Values, key, key.toLowerCase());
}

/** The value that the goal names, or the first. */
const oneOf = (values: string[], { goal }: Fault): string =>
  values.find((value) => goal.includes(wordsOf(value)[0]!)) ?? values[0]!;

const among = (sent: unknown, words: string): string[] => {
  const allowed = words.split(/, | and /);
  return String(sent)
    .split(/\W+/)
    .filter((word) => allowed.includes(word));
};

/** Reads key=value, or makes an object of the schema with the text as its only unknown member. */
function objectOf({ sent, schema, memory }: Fault): Values {
  const [, key, value] = /^(\w+)=(.*)$/.exec(String(sent)) ?? [];
  if (key) return { [key]: value };
  const { properties = {} } = schema.items ?? schema;
  return Object.fromEntries(
    Object.entries(properties).map(([name, member]) => [name, memory.find(name, member) ?? sent]),
  );
}

/** A day or a time as the example has it; otherwise a name of small letters and hyphens. */
function inFormOf(example: string, sent: string): string {
  const time = new Date(/^\d{4}-\d\d-\d\d$|Z$/.test(sent) ? sent : `${sent} UTC`);
  if (/^\d{4}-\d\d-\d\d/.test(example) && !Number.isNaN(time.getTime()))
    return time.toISOString().slice(0, example.length);
  return sent.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}
