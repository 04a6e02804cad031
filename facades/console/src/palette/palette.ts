/** The palette: type some letters of a page, an action or a thing, and go there by Enter. */
import { signal } from '@preact/signals';
import { html } from 'htm/preact';
import { may } from '../api.ts';
import { openForm } from '../form/form.ts';
import { formsOf, openRowOf } from '../list/details.ts';
import type { Page } from '../pages/page.ts';
import { go, place } from '../place.ts';
import { type Command, hits, look } from './search.ts';

const isOpen = signal(false);
const typed = signal('');
/** The name of the command that the arrows chose. Hits that arrive later move it, and choose no other one. Empty: the first. */
const chosen = signal('');
/** The pages and actions that leave room for hits and searches. */
const PLACES_MAX = 8;

const type = (text: string) => {
  typed.value = text;
  chosen.value = '';
  look(text.trim());
};
export function togglePalette(): void {
  type('');
  isOpen.value = !isOpen.value;
}
const close = () => {
  type('');
  isOpen.value = false;
};

const nameOf = ({ label, hint }: Command): string => `${label} ${hint}`;

/** An order number, an address or an id leads to the list that knows it. */
function searches(text: string): Command[] {
  const found: Command[] = [];
  const server = (search: Record<string, string>, hint: string) =>
    found.push({ label: text, hint, run: () => go('servers', search) });
  if (/^SRV-/i.test(text)) server({ row: text.toUpperCase() }, 'server by order number');
  if (text) found.push({ label: text, hint: 'accounts by anything', run: () => go('accounts', { search: text }) });
  if (/^acct_/.test(text))
    found.push({ label: text, hint: 'audit log of the account', run: () => go('audit', { accountId: text }) });
  if (/^TOP-/i.test(text))
    found.push({
      label: text,
      hint: 'payments of the top-up',
      run: () => go('payments', { orderNumber: text.toUpperCase() }),
    });
  if (/^[a-z0-9][a-z0-9.-]+$/i.test(text)) server({ hostname: text }, 'servers by host name');
  return found;
}

/** The actions of the open row, as its buttons. */
function actionsOfRow(pages: readonly Page[]): Command[] {
  const page = pages.find(({ path }) => path === place.value.path);
  const row = page && openRowOf(page);
  if (!row) return [];
  return formsOf(page, row).map((form) => ({
    label: form.action.label,
    hint: form.called ?? '',
    run: () => openForm(form),
  }));
}

function commands(pages: readonly Page[]): Command[] {
  const places = [{ title: 'Today', path: '', group: '' }, ...pages];
  const actions = pages.flatMap(({ title, actions = [] }) =>
    actions
      .filter(({ mutation }) => may(mutation))
      .map((action) => ({ label: action.label, hint: title, run: () => openForm({ action, done: () => {} }) })),
  );
  return [
    ...actionsOfRow(pages),
    ...places.map(({ title, path, group }) => ({ label: title, hint: group, run: () => go(path) })),
    ...actions,
  ];
}

/** Whether the letters stand in the text in this order. */
const fits = (text: string, letters: string): boolean => {
  let at = -1;
  return [...letters.toLowerCase()].every((letter) => {
    at = text.toLowerCase().indexOf(letter, at + 1);
    return at >= 0;
  });
};

/** Whether the text has the letters side by side. Such a command comes first. */
const has = (text: string, letters: string): boolean => text.toLowerCase().includes(letters.toLowerCase());

/** The list may be longer than the window. */
const show = (element: Element | null) => element?.scrollIntoView({ block: 'nearest' });

const WORDS = 'Page, action, email, host name or id';

export function Palette({ pages }: { pages: readonly Page[] }) {
  if (!isOpen.value) return null;
  const text = typed.value.trim();
  const found = commands(pages).filter(({ label }) => fits(label, text));
  const [near, far] = [true, false].map((isNear) => found.filter(({ label }) => has(label, text) === isNear));
  const listed = [...[...near!, ...far!].slice(0, PLACES_MAX), ...hits.value, ...searches(text)];
  const names = listed.map(nameOf);
  const at = Math.max(0, names.indexOf(chosen.value));
  const run = (command: Command | undefined) => {
    close();
    command?.run();
    // The dialog is gone by then, and the focus would be nowhere. A form has taken it.
    requestAnimationFrame(() => {
      if (document.activeElement === document.body) document.getElementById('main')?.focus();
    });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) chosen.value = names.at((at + step) % names.length)!;
    else if (event.key === 'Enter') run(listed[at]);
    else return;
    event.preventDefault();
  };
  const onInput = (event: Event) => type((event.target as HTMLInputElement).value);
  return html`<dialog class="palette" aria-label="Commands" onClose=${close} ref=${(
    element: HTMLDialogElement | null,
  ) => {
    if (element && !element.open) element.showModal();
  }}>
    <input role="combobox" aria-label=${WORDS} aria-expanded="true" aria-controls="commands"
      aria-activedescendant="command-${at}" placeholder=${WORDS}
      onInput=${onInput} onKeyDown=${onKeyDown} autofocus />
    <ul id="commands" role="listbox" aria-label="Commands">${listed.map(
      (
        command,
        i,
      ) => html`<li id="command-${i}" role="option" aria-selected=${i === at} ref=${i === at && show} onClick=${() => run(command)}>
        ${command.label}<span class="hint">${command.hint}</span></li>`,
    )}</ul>
  </dialog>`;
}
