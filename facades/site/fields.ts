/** The fields of a JSON Schema as a list, with nested objects that open. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Schema } from './document.ts';

type Deref = (schema: Schema) => Schema;

/** Larger bounds are those of number formats, and tell readers nothing. */
const TELLING_MAX = 1_000_000;
/** A longer pattern helps a program, and no reader. */
const PATTERN_MAX = 60;
const DEPTH_MAX = 6;

export interface Field {
  name: string;
  schema: Schema;
  isRequired: boolean;
  /** Instead of that of the schema. */
  description?: string | undefined;
}

/** The fields of an object. */
export function fieldsOf(schema: Schema, deref: Deref): Field[] {
  const { properties = {}, required = [], allOf = [] } = deref(schema);
  return [
    ...Object.entries(properties).map(([name, inner]) => ({
      name,
      schema: inner,
      isRequired: required.includes(name),
    })),
    ...allOf.flatMap((part) => fieldsOf(part, deref)),
  ];
}

/** Puts the required fields first. */
export const requiredFirst = (fields: readonly Field[]): Field[] =>
  [...fields].sort((a, b) => Number(b.isRequired) - Number(a.isRequired));

/** Shows fields. An answer marks no field as required, because it has nearly all of them. */
export function fieldList(fields: readonly Field[], deref: Deref, marksRequired: boolean, depth = 0): VNode {
  return html`<ul class="fields">${fields.map(({ name, schema, isRequired, description }) => {
    const { options, isNullable, plain } = unfolded(schema, deref);
    const text = description ?? schema.description ?? plain.description;
    const rules = rulesOf(plain);
    return html`<li>
      <code class="name">${name}</code>${' '}
      <span class="type">${typeOf(plain, options, deref)}${isNullable && ' or null'}</span>
      ${marksRequired && isRequired && html`${' '}<span class="must">required</span>`}
      ${text && html`<p>${inlined(text)}</p>`}
      ${rules.length > 0 && html`<span class="rule">${rules}</span>`}
      ${depth < DEPTH_MAX && nested(name, plain, options, deref, marksRequired, depth)}
    </li>`;
  })}</ul>`;
}

/** The alternatives of a schema without null. */
function unfolded(schema: Schema, deref: Deref) {
  const whole = deref(schema);
  const all = (whole.anyOf ?? whole.oneOf ?? []).map((option) => ({ option, shown: deref(option) }));
  const options = all.filter(({ shown }) => shown.type !== 'null');
  const types = [whole.type ?? []].flat();
  const isNullable = options.length < all.length || types.includes('null');
  const plain = options.length === 1 ? options[0]!.shown : whole;
  return { options: options.length > 1 ? options.map(({ option }) => option) : [], isNullable, plain };
}

function typeOf(schema: Schema, options: readonly Schema[], deref: Deref): string {
  if (options.length) return options.map((option) => typeOf(deref(option), [], deref)).join(' or ');
  const { type, format, items, const: only } = schema;
  const [name = only === undefined ? 'any' : typeof only] = [type ?? []].flat().filter((one) => one !== 'null');
  if (name === 'array' && items) return `array of ${plural(typeOf(deref(items), [], deref))}`;
  if (format === 'date-time') return 'time (RFC 3339)';
  if (format === 'date') return 'date';
  return name;
}

const plural = (type: string): string =>
  type.startsWith('array') || type === 'any' ? type : type.replace(/^\w+/, '$&s');

/** Text with `code` in it. */
export const inlined = (text: string): (string | VNode)[] =>
  text.split(/`([^`]+)`/).map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));

function rulesOf(schema: Schema): (string | VNode)[] {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, items } = schema;
  const values = schema.enum ?? items?.enum;
  const shown = [
    values && html`One of ${listed(values.map(String))}`,
    schema.const !== undefined && html`Always ${code(schema.const)}`,
    schema.default !== undefined && html`Default ${code(schema.default)}`,
    rangeOf(minimum, maximum, ''),
    rangeOf(minLength === 1 ? undefined : minLength, maxLength, ' characters'),
    rangeOf(minItems || undefined, maxItems, ' entries'),
    pattern && pattern.length <= PATTERN_MAX && html`Pattern ${code(pattern)}`,
  ];
  return shown
    .filter((rule) => rule !== false && rule !== undefined && rule !== '')
    .flatMap((rule, at) => [at ? ' · ' : '', rule as VNode]);
}

const code = (value: unknown): VNode => html`<code>${typeof value === 'string' ? value : JSON.stringify(value)}</code>`;
const listed = (values: readonly string[]) => values.map((value, at) => [at ? ', ' : '', html`<code>${value}</code>`]);

function rangeOf(least: number | undefined, most: number | undefined, unit: string): string | undefined {
  const [low, high] = [least, most].map((bound) =>
    bound !== undefined && Math.abs(bound) < TELLING_MAX ? bound : undefined,
  );
  const isText = unit === ' characters' && high !== undefined && high > 100_000;
  if (isText || (unit === ' entries' && high === 10_000)) return undefined;
  const shown = (bound: number) => bound.toLocaleString('en');
  if (low !== undefined && high !== undefined) return `${shown(low)} to ${shown(high)}${unit}`;
  if (high !== undefined) return `At most ${shown(high)}${unit}`;
  return low !== undefined && low !== 0 ? `At least ${shown(low)}${unit}` : undefined;
}

/** The fields below a field: of an object, of the entries of an array, or of each alternative. */
function nested(
  name: string,
  schema: Schema,
  options: readonly Schema[],
  deref: Deref,
  marksRequired: boolean,
  depth: number,
): (VNode | false)[] | false {
  const entry = schema.items ? deref(schema.items) : schema;
  const alternatives = options.length ? options : (entry.anyOf ?? [entry]);
  return alternatives.map((option) => {
    const fields = fieldsOf(option, deref);
    const title = option.$ref?.split('/').at(-1);
    return (
      fields.length > 0 &&
      html`<details>
        <summary>Fields of ${alternatives.length > 1 && title ? title : name}</summary>
        ${fieldList(fields, deref, marksRequired, depth + 1)}
      </details>`
    );
  });
}
