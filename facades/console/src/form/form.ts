/** The form of a mutation, made from its arguments. It shows the answer that the service gives only once. */
import { signal } from '@preact/signals';
import { html } from 'htm/preact';
import { graphql, type Row } from '../api.ts';
import { inWords, memberOf, rootField, type TypeRef } from '../model.ts';
import { forConsole } from '../pages/words.ts';
import { Refusal } from '../refusal.ts';
import { Secret } from '../secret.ts';
import { shown } from '../values.ts';
import { ChoiceField } from './choice.ts';
import { Field } from './field.ts';
import { type Asked, askedBy, type Form, isNeeded, type Opened, readForm, sendOnce } from './sending.ts';
import { suggest } from './suggestions.ts';

/** The words against a form, and those against single fields by their names. */
interface Problem {
  words: string;
  fields: ReadonlyMap<string, string>;
}
const NONE: Problem = { words: '', fields: new Map() };

const opened = signal<Form | undefined>(undefined);
const problem = signal(NONE);
/** The act in words, which the person confirms by a second press. */
const question = signal('');
/** A person does not read the question faster. A second press in this time belongs to the first one. */
const QUESTION_MS = 700;
const isSending = signal(false);
/** Counts what the person types. A question about older values asks nothing. */
let edits = 0;
const answer = signal<Row | undefined>(undefined);
/** The outcome of the last form, for some seconds. */
const notice = signal('');
const NOTICE_MS = 8_000;
/** The element that had the focus before the form. */
let origin: HTMLElement | undefined;

export function openForm(form: Opened): void {
  origin = document.activeElement as HTMLElement;
  problem.value = NONE;
  question.value = '';
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

function problemOf(error: unknown, { asked }: Form): Problem {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof Refusal) || !error.fields.length) return { words: forConsole(message), fields: new Map() };
  const isAsked = (name: string) => asked.some(({ argument, given }) => argument.name === name && given === undefined);
  const named = error.fields.map((one) => ({ name: argumentOf(one.field), words: forConsole(one.message), ...one }));
  return {
    words: named.flatMap(({ name, field, words }) => (isAsked(name) ? [] : [`${field}: ${words}`])).join(' '),
    fields: new Map(named.filter(({ name }) => isAsked(name)).map(({ name, words }) => [name, words])),
  };
}
/** The argument of a field as the service names it, such as `input.notice_days`. */
const argumentOf = (field: string): string =>
  field
    .split('.')
    .at(-1)!
    .replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Sends the form, or asks the person about its outcome first. */
async function submit(form: Form, element: HTMLFormElement): Promise<void> {
  const { action, name, called = name, row = {}, done } = form;
  const data = new FormData(element);
  // The person may have closed the form meanwhile, and opened another one.
  const isOpen = () => opened.value === form;
  isSending.value = true;
  try {
    if (action.destroys && called && data.get('confirmation') !== called) throw new Error(`Type ${called} to confirm.`);
    const values = readForm(form, data);
    const before = edits;
    const asks = question.value ? '' : await action.asks?.(values, row, graphql);
    if (asks && isOpen() && edits === before) {
      question.value = asks;
      problem.value = NONE;
      requestAnimationFrame(() => element.querySelector('.question')?.scrollIntoView({ block: 'center' }));
      await new Promise((resume) => setTimeout(resume, QUESTION_MS));
    }
    if (asks) return;
    const given = await sendOnce(form, values);
    tell(form, given);
    void done();
    if (!isOpen()) return;
    problem.value = NONE;
    if (action.shows) answer.value = given;
    else close();
  } catch (error) {
    if (!isOpen()) return;
    problem.value = problemOf(error, form);
    requestAnimationFrame(() => element.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
  } finally {
    if (isOpen()) isSending.value = false;
  }
}

/** Tells the outcome for some seconds. */
function tell({ action: { label, mutation, tells } }: Form, given: Row): void {
  const words = tells ? `. ${shown('', given, rootField(mutation).type)}` : '';
  const told = `${label}: done${words}`;
  notice.value = told;
  setTimeout(() => {
    if (notice.value === told) notice.value = '';
  }, NOTICE_MS);
}
export const Notice = () => html`<p class="notice" role="status">${notice.value}</p>`;

/** An answer that the service gives only once closes by its button alone. */
function keepAnswer(event: Event): void {
  if (answer.value) event.preventDefault();
}

export function FormDialog() {
  const form = opened.value;
  if (!form) return null;
  const { action, name, called = name } = form;
  const { description, type } = rootField(action.mutation);
  return html`<dialog class="form" aria-labelledby="form-title" ref=${(element: HTMLDialogElement | null) => {
    if (element && !element.open) element.showModal();
  }} onClose=${close} onCancel=${keepAnswer}>
    <h2 id="form-title">${action.label}${called && html` <code>${called}</code>`}</h2>
    <p class="about">${forConsole(description)}</p>
    ${answer.value ? html`<${Answer} type=${type} link=${action.link?.(answer.value)} />` : html`<${Questions} form=${form} />`}
  </dialog>`;
}

/** Optional fields beyond this many wait behind a line, if the form has fields that it needs. */
const OPTIONAL_MAX = 8;
function Questions({ form }: { form: Form }) {
  const { action, name, called = name, asked } = form;
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault();
    void submit(form, event.target as HTMLFormElement);
  };
  const onInput = () => {
    edits++;
    question.value = '';
  };
  const isChoice = ({ argument }: Asked) => action.choice?.words[argument.name] !== undefined;
  const visible = asked.filter((one) => one.given === undefined && !isChoice(one));
  const [needed, optional] = [visible.filter(isNeeded), visible.filter((one) => !isNeeded(one))];
  const fields = (list: typeof asked) =>
    list.map(
      (one) =>
        html`<${Field} asked=${one} problem=${problem.value.fields.get(one.argument.name)} key=${one.argument.name} />`,
    );
  const isWrong = optional.some(({ argument }) => problem.value.fields.has(argument.name));
  return html`<form onSubmit=${onSubmit} onInput=${onInput}>
    ${action.choice && html`<${ChoiceField} choice=${action.choice} asked=${asked.filter(isChoice)} problems=${problem.value.fields} />`}
    ${fields(needed)}
    ${
      needed.length && optional.length > OPTIONAL_MAX
        ? html`<details class="more-fields" open=${isWrong || undefined}>
            <summary>${optional.length} optional fields: ${optional.map(({ argument }) => inWords(argument.name)).join(', ')}</summary>${fields(optional)}</details>`
        : fields(optional)
    }
    ${
      action.destroys &&
      called &&
      html`<label>Type <code>${called}</code> to confirm
      <input name="confirmation" autocomplete="off" required /></label>`
    }
    ${problem.value.words && html`<p class="problem" role="alert">${problem.value.words}</p>`}
    ${question.value && html`<p class="question" role="alert">${question.value}</p>`}
    <footer class="actions"><button type="button" class="quiet" onClick=${close}>Cancel</button>
      <button class=${action.destroys ? 'danger' : 'main'} disabled=${isSending.value}>
        ${question.value ? 'Yes, do it' : action.label}</button></footer>
  </form>`;
}

/** An answer that the service gives only once, such as a token. */
function Answer({ type, link }: { type: TypeRef; link?: string }) {
  const address = link && new URL(link, location.href).href;
  return html`
    <p>The service shows this only once. Copy it now.</p>
    <dl>${Object.entries(answer.value!).map(([field, value]) => {
      const text = Array.isArray(value) ? value.join('\n') : shown(field, value, memberOf(type, field));
      return html`<div><dt>${inWords(field)}</dt><dd>${value instanceof Object && !Array.isArray(value) ? text : html`<${Secret} text=${text} />`}</dd></div>`;
    })}
    ${address && html`<div><dt>Link</dt><dd><${Secret} text=${address} /></dd></div>`}</dl>
    <footer class="actions"><button class="main" onClick=${close}>I have copied it</button></footer>`;
}
