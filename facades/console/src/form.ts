/** The form of a mutation, made from its arguments. It shows the answer that the service gives only once. */
import { signal } from '@preact/signals';
import { html } from 'htm/preact';
import { graphql, type Row } from './api.ts';
import { type Argument, inputsOf, inWords, isRequired, rootField, ruleOf, valuesOf, written } from './model.ts';
import type { Action } from './pages/page.ts';
import { readValue, shapeOf, shown, typed } from './values.ts';

interface Opened {
  action: Action;
  row?: Row | undefined;
  /** The name of the row, which a person types before something is destroyed. */
  name?: string | undefined;
  done: () => unknown;
}
interface Asked {
  argument: Argument;
  /** The argument that holds it, if it is an input object. */
  within?: string;
  given: unknown;
}

const opened = signal<Opened | undefined>(undefined);
const problem = signal('');
const isSending = signal(false);
const answer = signal<Row | undefined>(undefined);
/** The element that had the focus before the form. */
let origin: HTMLElement | undefined;

export function openForm(form: Opened): void {
  origin = document.activeElement as HTMLElement;
  problem.value = '';
  answer.value = undefined;
  opened.value = form;
}
function close(): void {
  opened.value = undefined;
  origin?.focus();
}

/** The arguments of a mutation. Those of its input object stand beside the others. */
function askedBy({ action, row }: Opened): Asked[] {
  const given = action.of?.(row ?? {}) ?? {};
  return rootField(action.mutation).args.flatMap((argument): Asked[] => {
    if (shapeOf(argument.type) !== 'group') return [{ argument, given: given[argument.name] }];
    const inner = given[argument.name] as Row | undefined;
    return inputsOf(argument.type)!.map((one) => ({ argument: one, within: argument.name, given: inner?.[one.name] }));
  });
}

/** Sends the mutation. @throws Error with the field that is wrong, or Refusal */
async function send({ action }: Opened, asked: Asked[], form: FormData): Promise<Row> {
  const { args, type } = rootField(action.mutation);
  const variables: Row = {};
  for (const { argument, within, given } of asked) {
    const text = form.get(argument.name);
    const value = text === null ? given : readValue(argument, String(text));
    if (value === undefined) continue;
    if (within) variables[within] = { ...(variables[within] as Row), [argument.name]: value };
    else variables[argument.name] = value;
  }
  const head = args.map((one) => `$${one.name}: ${written(one.type)}`).join(', ');
  const passed = args.map(({ name }) => `${name}: $${name}`).join(', ');
  const selection = action.shows ?? '__typename';
  const isScalar = !type.ofType && type.kind === 'SCALAR';
  const call = `${action.mutation}${passed && `(${passed})`}${isScalar ? '' : ` { ${selection} }`}`;
  return (await graphql(`mutation${head && `(${head})`} { ${call} }`, variables))[action.mutation] as Row;
}

export function FormDialog() {
  const form = opened.value;
  if (!form) return null;
  const asked = askedBy(form);
  const { action, name, done } = form;
  const onSubmit = async (event: SubmitEvent) => {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    if (action.destroys && name && data.get('confirmation') !== name) {
      problem.value = `Type ${name} to confirm.`;
      return;
    }
    isSending.value = true;
    try {
      const given = await send(form, asked, data);
      problem.value = '';
      if (action.shows) answer.value = given;
      else close();
      done();
    } catch (error) {
      problem.value = error instanceof Error ? error.message : String(error);
    } finally {
      isSending.value = false;
    }
  };
  const visible = asked
    .filter(({ given, within }) => given === undefined || within !== undefined)
    .toSorted((one, other) => Number(isNeeded(other)) - Number(isNeeded(one)));
  return html`<dialog class="form" aria-labelledby="form-title" ref=${(element: HTMLDialogElement | null) => {
    if (element && !element.open) element.showModal();
  }} onClose=${close}>
    <h2 id="form-title">${action.label}${name && html` <code>${name}</code>`}</h2>
    <p class="about">${rootField(action.mutation).description}</p>
    ${
      answer.value
        ? html`<${Answer} />`
        : html`
      <form onSubmit=${onSubmit}>
        ${visible.map((one) => html`<${Field} asked=${one} key=${one.argument.name} />`)}
        ${
          action.destroys &&
          name &&
          html`<label>Type <code>${name}</code> to confirm
          <input name="confirmation" autocomplete="off" required /></label>`
        }
        ${problem.value && html`<p class="problem" role="alert">${problem.value}</p>`}
        <footer class="actions"><button type="button" class="quiet" onClick=${close}>Cancel</button>
          <button class=${action.destroys ? 'danger' : 'main'} disabled=${isSending.value}>${action.label}</button></footer>
      </form>`
    }
  </dialog>`;
}

/** An answer that the service gives only once, such as a token. */
const Answer = () => html`
  <p>The service shows this only once. Copy it now.</p>
  <dl>${Object.entries(answer.value!).map(([field, value]) => html`<div><dt>${inWords(field)}</dt><dd><code>${shown(field, value)}</code></dd></div>`)}</dl>
  <footer class="actions"><button class="main" onClick=${close}>I have copied it</button></footer>`;

const isNeeded = ({ argument: { type, defaultValue } }: Asked): boolean => isRequired(type) && defaultValue === null;

function Field({ asked: { argument, given } }: { asked: Asked }) {
  const { name, type, description, defaultValue } = argument;
  const initial = typed(given ?? (defaultValue === null ? undefined : JSON.parse(enumless(defaultValue))));
  const [shape, needed] = [shapeOf(type), isNeeded({ argument, given })];
  const id = `field-${name}`;
  const shared = { id, name, required: needed, 'aria-describedby': `${id}-rule` };
  const choices = shape === 'yes or no' ? ['true', 'false'] : valuesOf(type);
  const rule = [description, ruleOf(type)].filter(Boolean).join(' ');
  return html`<div class="field">
    <label for=${id}>${inWords(name)}${!needed && html` <span class="hint">optional</span>`}</label>
    ${
      choices && shape !== 'list'
        ? html`<select ...${shared}>${(!needed || !initial) && html`<option value=""></option>`}${choices.map(
            (one) =>
              html`<option value=${one} selected=${one === initial}>${WORDS[one] ?? one.toLowerCase().replaceAll('_', ' ')}</option>`,
          )}</select>`
        : shape === 'lines' || shape === 'list' || shape === 'json'
          ? html`<textarea ...${shared} rows=${shape === 'list' ? 2 : 4} defaultValue=${initial}></textarea>`
          : html`<input ...${shared} defaultValue=${initial} autocomplete="off" inputmode=${shape === 'number' ? 'decimal' : 'text'} />`
    }
    <p class="hint" id="${id}-rule">${shape === 'list' ? `One a line. ${rule}` : rule}</p>
  </div>`;
}
const WORDS: Record<string, string> = { true: 'yes', false: 'no' };
/** A default value as JSON: GraphQL writes enums without quotes. */
const enumless = (text: string): string => (/^[A-Z_]+$/.test(text) ? JSON.stringify(text) : text);
