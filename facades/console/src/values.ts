/** Values between the service and people: how the console shows them, and how it reads what people type. */
import {
  type Argument,
  enumInWords,
  innermost,
  inputsOf,
  isList,
  isRequired,
  memberOf,
  type TypeRef,
  titleOf,
  valuesOf,
} from './model.ts';
import { LONG, NUMBERS } from './scalars.ts';

/** Types that take a day. The ends of ranges also take a time, which few people need. */
const DAYS: ReadonlySet<string> = new Set(['Date', 'RangeStart', 'RangeEnd']);

export type Shape = 'choice' | 'yes or no' | 'number' | 'text' | 'lines' | 'list' | 'json' | 'group' | 'time' | 'day';
/** The type of the input for a shape, if it is no text. Times are in UTC. */
export const INPUTS: Partial<Record<Shape, string>> = { time: 'datetime-local', day: 'date' };

/** Returns how a form asks for a value of the type. */
export function shapeOf(type: TypeRef): Shape {
  const { name } = innermost(type);
  if (inputsOf(type)) return isList(type) ? 'json' : 'group';
  if (isList(type)) return 'list';
  if (valuesOf(type)) return 'choice';
  if (name === 'Boolean') return 'yes or no';
  if (name === 'JSON' || name === 'Labels' || name === 'PeeringDocument') return 'json';
  if (NUMBERS.has(name!)) return 'number';
  if (name === 'DateTime') return 'time';
  if (DAYS.has(name!)) return 'day';
  return LONG.has(name!) ? 'lines' : 'text';
}

/** The words for the values of a choice between yes and no. */
export const YES_NO: Record<string, string> = { true: 'yes', false: 'no' };

/** Reads what a person typed. An empty text is no value. @throws Error that says what to type */
export function readValue({ type }: Argument, text: string): unknown {
  const shape = shapeOf(type);
  if (text.trim() === '') {
    if (!isRequired(type)) return undefined;
    if (shape === 'list') return [];
    throw new Error('Fill this in.');
  }
  if (shape === 'number') {
    const number = Number(text.replace(/[$\s]/g, ''));
    if (!Number.isFinite(number)) throw new Error('Type a number, such as 4.50.');
    return number;
  }
  if (shape === 'yes or no') return text === 'true';
  if (shape === 'time') return inTime(text);
  if (shape === 'list') return readList(type, text);
  if (shape === 'json') return readJson(text);
  return shape === 'lines' ? text : text.trim();
}

function readList(type: TypeRef, text: string): unknown[] {
  const parts = text.split(/[\n,]/).map((part) => part.trim());
  const isNumber = NUMBERS.has(innermost(type).name!);
  return parts.filter(Boolean).map((part) => (isNumber ? Number(part) : part));
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('Type JSON, such as {"env": "prod"}.');
  }
}

/** A time of an input, in UTC, as the service takes it. The service refuses what is no time. */
export function inTime(text: string): string {
  const time = new Date(`${text}Z`);
  return Number.isNaN(time.getTime()) ? text : time.toISOString();
}

/** A value as the form shows it before the person types. */
export function typed(value: unknown, shape?: Shape): string {
  if (value === null || value === undefined) return '';
  if (shape === 'time') return String(value).slice(0, 19);
  if (Array.isArray(value) && value.every((one) => typeof one !== 'object')) return value.join('\n');
  return typeof value === 'object' ? JSON.stringify(value, null, 2) : String(value);
}

const USD = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', maximumFractionDigits: 6 });
const TIME = new Intl.DateTimeFormat('en-CA', {
  ...{ year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' },
  ...{ hour12: false, timeZone: 'UTC' },
});

/** An amount of USD. */
export const usd = (amount: number): string => USD.format(amount);

/** A value as lists and details show it. `name` is its field, and `type` the type of the field. Times are in UTC. */
export function shown(name: string, value: unknown, type: TypeRef | undefined): string {
  if (value === null || value === undefined || value === '') return '–';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number') return name.endsWith('Usd') ? usd(value) : value.toLocaleString('en');
  // A stranger may write a text that looks like a time.
  if (typeof value === 'string' && type && valuesOf(type)) return enumInWords(value);
  if (typeof value === 'string') return type && innermost(type).name === 'DateTime' ? inUtc(value) : value;
  if (Array.isArray(value)) return value.length ? value.map((one) => shown(name, one, type)).join(', ') : '–';
  const members = Object.entries(value as object).filter(([, member]) => member !== null);
  if (!members.length) return '–';
  return members
    .map(([member, inner]) => `${titleOf(member)} ${shown(member, inner, memberOf(type, member))}`)
    .join(' · ');
}
/** A time as pages show it, in UTC. */
export const inUtc = (time: string): string => TIME.format(new Date(time)).replace(',', '');

/** A thing by its name or its id, as a cell of a list shows it. Other values are in full. */
export function brief(name: string, value: unknown, type: TypeRef | undefined): string {
  const thing = (typeof value === 'object' ? value : null) as { name?: string | null; id?: string } | null;
  return thing?.name ?? thing?.id ?? shown(name, value, type);
}

/** How long ago a time was, in one number and unit. */
export function ago(time: string): string {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  const [unit, per] = (
    [
      ['d', 86_400],
      ['h', 3600],
      ['min', 60],
    ] as const
  ).find(([, size]) => seconds >= size) ?? ['s', 1];
  return `${Math.floor(seconds / per)} ${unit}`;
}

const GOOD = new Set([
  'VALID',
  'RESOLVED',
  'COMPLETED',
  'RUNNING',
  'ACTIVE',
  'CONFIRMED',
  'FINAL',
  'CREDITED',
  'LISTED',
  'OFFERED',
  'READY',
  'SUCCEEDED',
  'DONE',
]);
const BAD = new Set([
  'FAILED',
  'SUSPENDED',
  'UNMATCHED',
  'REVERSED',
  'DEAD',
  'HELD',
  'MISSING',
  'CRITICAL',
  'REVOKED',
  'EXPIRED',
  'TRIGGERED',
]);
/** The tone of a state: it decides the colour of its mark. */
export const toneOf = (state: string): 'good' | 'bad' | 'idle' | 'busy' =>
  GOOD.has(state) ? 'good' : BAD.has(state) ? 'bad' : /ING$/.test(state) ? 'busy' : 'idle';
