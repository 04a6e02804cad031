/** A field of a form, as the type of its argument asks for it. */
import { html } from 'htm/preact';
import { enumInWords, inWords, ruleOf, valuesOf } from '../model.ts';
import { INPUTS, shapeOf, typed, YES_NO } from '../values.ts';
import { type Asked, isNeeded } from './sending.ts';
import { suggestions } from './suggestions.ts';

/** @param problem the words of the service against its value */
export function Field({ asked, problem }: { asked: Asked; problem?: string | undefined }) {
  const { name, type, description } = asked.argument;
  const [shape, needed] = [shapeOf(type), isNeeded(asked)];
  const id = `field-${name}`;
  const rule = [description, ruleOf(type)].filter(Boolean).join(' ');
  const title = html`${inWords(name)}${shape === 'time' && ' (UTC)'}${!needed && html` <span class="hint">optional</span>`}`;
  const boxes = shape === 'list' ? (valuesOf(type) ?? suggestions.value[name]) : undefined;
  const words = html`
    <p class="hint" id="${id}-rule">${shape === 'list' && !boxes ? `One a line. ${rule}` : rule}</p>
    ${problem && html`<p class="problem" id="${id}-problem" role="alert">${problem}</p>`}`;
  if (boxes)
    return html`<fieldset class="field"><legend>${title}</legend>
      <div class="boxes">${boxes.map((one) => html`<label><input type="checkbox" name=${name} value=${one} defaultChecked=${isFirst(asked, one)} /> ${one}</label>`)}</div>
      ${words}</fieldset>`;
  return html`<div class="field"><label for=${id}>${title}</label>
    <${Control} asked=${asked} shared=${{ id, name, required: needed, 'aria-invalid': problem !== undefined, 'aria-describedby': `${id}-rule ${id}-problem` }} />
    ${words}</div>`;
}
const isFirst = ({ first }: Asked, one: string): boolean => Array.isArray(first) && first.includes(one);

/** The input of a field. @param shared the attributes that every kind of it has */
function Control({ asked: { argument, first }, shared }: { asked: Asked; shared: Record<string, unknown> }) {
  const { name, type, defaultValue } = argument;
  const shape = shapeOf(type);
  const initial = typed(first ?? (defaultValue === null ? undefined : JSON.parse(enumless(defaultValue))), shape);
  const choices = shape === 'yes or no' ? ['true', 'false'] : valuesOf(type);
  if (choices)
    return html`<select ...${shared}>${(!shared.required || !initial) && html`<option value=""></option>`}${choices.map(
      (one) => html`<option value=${one} selected=${one === initial}>${YES_NO[one] ?? enumInWords(one)}</option>`,
    )}</select>`;
  if (shape === 'lines' || shape === 'list' || shape === 'json')
    return html`<textarea ...${shared} rows=${shape === 'list' ? 2 : 4} defaultValue=${initial}></textarea>`;
  return html`<input ...${shared} type=${INPUTS[shape] ?? 'text'} step=${shape === 'time' ? 1 : undefined} list="${shared.id}-names"
      defaultValue=${initial} autocomplete="off" inputmode=${shape === 'number' ? 'decimal' : 'text'} />
    <datalist id="${shared.id}-names">${suggestions.value[name]?.map((one) => html`<option value=${one}></option>`)}</datalist>`;
}
/** A default value as JSON: GraphQL writes enums without quotes. */
const enumless = (text: string): string => (/^[A-Z_]+$/.test(text) ? JSON.stringify(text) : text);
