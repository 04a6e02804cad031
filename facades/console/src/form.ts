/** The form of a mutation, made from its arguments. It shows the answer that the service gives only once. */
import { signal } from '@preact/signals';
import { html } from 'htm/preact';
import { graphql, Refusal, type Row } from './api.ts';
import {
  type Argument,
  enumInWords,
  inputsOf,
  inWords,
  isRequired,
  memberOf,
  rootField,
  ruleOf,
  type TypeRef,
  valuesOf,
  written,
} from './model.ts';
import type { Action } from './pages/page.ts';
import { suggest, suggestions } from './suggestions.ts';
import { INPUTS, readValue, shapeOf, shown, typed, YES_NO } from './values.ts';

interface Opened {
  action: Action;
  row?: Row | undefined;
  /** The name of the row, which a person types before something is destroyed. */
  name?: string | undefined;
  done: () => unknown;
}
/** A form that stands open. A render changes nothing of it. */
interface Form extends Opened {
  asked: Asked[];
}
interface Asked {
  argument: Argument;
  /** The argument that holds it, if it is an input object. */
  within?: string;
  /** The value that the form sends without asking. */
  given?: unknown;
  /** The first words of the field. */
  first?: unknown;
}

const opened = signal<Form | undefined>(undefined);
const problem = signal('');
const isSending = signal(false);
const answer = signal<Row | undefined>(undefined);
/** The element that had the focus before the form. */
let origin: HTMLElement | undefined;

export function openForm(form: Opened): void {
  origin = document.activeElement as HTMLElement;
  problem.value = '';
  answer.value = undefined;
  isSending.value = false;
  const asked = askedBy(form);
  opened.value = { ...form, asked };
  const names = asked.map(({ argument }) => argument.name);
  void suggest(names, form.action.suggest).catch(() => {});
}
function close(): void {
  opened.value = undefined;
  origin?.focus();
}

/** The arguments of a mutation. Those of its input object stand beside the others. */
function askedBy(form: Opened): Asked[] {
  const { action, row = {} } = form;
  const [given, first] = [action.of?.(row) ?? {}, action.first?.(row) ?? {}];
  return rootField(action.mutation).args.flatMap((argument): Asked[] => {
    const { name, type } = argument;
    if (name === KEY) return [{ argument, given: sessionStorage.getItem(slotOf(form)) ?? newKey() }];
    if (shapeOf(type) !== 'group') return [{ argument, given: given[name], first: first[name] }];
    const words = (given[name] ?? {}) as Row;
    return inputsOf(type)!.map((one) => ({
      ...{ argument: one, within: name },
      ...(action.destroys ? { given: words[one.name] } : { first: words[one.name] }),
    }));
  });
}

/** The argument by which the service knows a payment that it has carried out. */
const KEY = 'key';
const newKey = (): string => `console ${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
/** The place of the key of a form that was sent. A form that opens anew sends the same key, until one succeeds. */
const slotOf = ({ action, name = '' }: Opened): string => `freehold-key ${action.mutation} ${name}`;

/** The service knows the key already: it has carried out a payment, or keeps a proposal. The next form is about another sum. */
const KNOWN: ReadonlySet<string> = new Set(['idempotency_key_reused', 'approval_needed']);

/** Sends the form, and keeps its key until the service tells what became of it. @throws as `send` does */
async function sendOnce(form: Form, data: FormData): Promise<Row> {
  const key = form.asked.find(({ argument }) => argument.name === KEY)?.given;
  if (typeof key === 'string') sessionStorage.setItem(slotOf(form), key);
  try {
    const given = await send(form, data);
    sessionStorage.removeItem(slotOf(form));
    return given;
  } catch (error) {
    if (!(error instanceof Refusal && KNOWN.has(error.code))) throw error;
    sessionStorage.removeItem(slotOf(form));
    if (error.code === 'approval_needed') throw error;
    throw new Error(`The service carried out the values that you sent first. Look at them, and open the form again.`);
  }
}

/** Sends the mutation. @throws Error with the field that is wrong, or Refusal */
async function send({ action, asked }: Form, form: FormData): Promise<Row> {
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
  const { action, name, done, asked } = form;
  const onSubmit = async (event: SubmitEvent) => {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    if (action.destroys && name && data.get('confirmation') !== name) {
      problem.value = `Type ${name} to confirm.`;
      return;
    }
    isSending.value = true;
    // The person may have closed the form meanwhile, and opened another one.
    const isOpen = () => opened.value === form;
    try {
      const given = await sendOnce(form, data);
      done();
      if (!isOpen()) return;
      problem.value = '';
      if (action.shows) answer.value = given;
      else close();
    } catch (error) {
      if (isOpen()) problem.value = error instanceof Error ? error.message : String(error);
    } finally {
      if (isOpen()) isSending.value = false;
    }
  };
  const visible = asked
    .filter(({ given }) => given === undefined)
    .toSorted((one, other) => Number(isNeeded(other)) - Number(isNeeded(one)));
  return html`<dialog class="form" aria-labelledby="form-title" ref=${(element: HTMLDialogElement | null) => {
    if (element && !element.open) element.showModal();
  }} onClose=${close}>
    <h2 id="form-title">${action.label}${name && html` <code>${name}</code>`}</h2>
    <p class="about">${rootField(action.mutation).description}</p>
    ${
      answer.value
        ? html`<${Answer} type=${rootField(action.mutation).type} />`
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
const Answer = ({ type }: { type: TypeRef }) => html`
  <p>The service shows this only once. Copy it now.</p>
  <dl>${Object.entries(answer.value!).map(([field, value]) => html`<div><dt>${inWords(field)}</dt><dd><code>${shown(field, value, memberOf(type, field))}</code></dd></div>`)}</dl>
  <footer class="actions"><button class="main" onClick=${close}>I have copied it</button></footer>`;

const isNeeded = ({ argument: { type, defaultValue } }: Asked): boolean => isRequired(type) && defaultValue === null;

function Field({ asked: { argument, first } }: { asked: Asked }) {
  const { name, type, description, defaultValue } = argument;
  const [shape, needed] = [shapeOf(type), isNeeded({ argument })];
  const initial = typed(first ?? (defaultValue === null ? undefined : JSON.parse(enumless(defaultValue))), shape);
  const id = `field-${name}`;
  const shared = { id, name, required: needed, 'aria-describedby': `${id}-rule` };
  const choices = shape === 'yes or no' ? ['true', 'false'] : valuesOf(type);
  const rule = [description, ruleOf(type)].filter(Boolean).join(' ');
  return html`<div class="field">
    <label for=${id}>${inWords(name)}${shape === 'time' && ' (UTC)'}${!needed && html` <span class="hint">optional</span>`}</label>
    ${
      choices && shape !== 'list'
        ? html`<select ...${shared}>${(!needed || !initial) && html`<option value=""></option>`}${choices.map(
            (one) => html`<option value=${one} selected=${one === initial}>${YES_NO[one] ?? enumInWords(one)}</option>`,
          )}</select>`
        : shape === 'lines' || shape === 'list' || shape === 'json'
          ? html`<textarea ...${shared} rows=${shape === 'list' ? 2 : 4} defaultValue=${initial}></textarea>`
          : html`<input ...${shared} type=${INPUTS[shape] ?? 'text'} step=${shape === 'time' ? 1 : undefined} list=${`${id}-names`} defaultValue=${initial}
              autocomplete="off" inputmode=${shape === 'number' ? 'decimal' : 'text'} />
            <datalist id=${`${id}-names`}>${suggestions.value[name]?.map((one) => html`<option value=${one}></option>`)}</datalist>`
    }
    <p class="hint" id="${id}-rule">${shape === 'list' ? `One a line. ${rule}` : rule}</p>
  </div>`;
}
/** A default value as JSON: GraphQL writes enums without quotes. */
const enumless = (text: string): string => (/^[A-Z_]+$/.test(text) ? JSON.stringify(text) : text);
