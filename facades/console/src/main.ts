/** The console: the menu, the pages, and the palette of commands. */
import { effect, signal } from '@preact/signals';
import { html, render } from 'htm/preact';
import { connection, may, operator, resume, signOut } from './api.ts';
import { FormDialog, Notice } from './form/form.ts';
import { Guard } from './guard.ts';
import { followRow } from './list/details.ts';
import { ListPage } from './list/list.ts';
import { followPage } from './list/rows.ts';
import { loadModel } from './model.ts';
import { PAGES } from './pages/index.ts';
import { Palette, togglePalette } from './palette/palette.ts';
import { go, place } from './place.ts';
import { Login } from './sign-in.ts';
import { Today } from './today.ts';

const isReady = signal(false);
const problem = signal('');
const isMenuOpen = signal(false);

/** The pages whose list the role of the operator may read. */
const allowed = () => PAGES.filter(({ list }) => may(list));

async function enter(work: () => Promise<void>): Promise<void> {
  problem.value = '';
  // Pages need both the operator and the schema.
  isReady.value = false;
  try {
    await Promise.all([work(), loadModel()]);
  } catch (error) {
    problem.value = error instanceof Error ? error.message : String(error);
  }
  isReady.value = true;
}

function Menu() {
  const groups = Map.groupBy(allowed(), ({ group }) => group);
  const link = (path: string, title: string) =>
    html`<a href="#${path}" aria-current=${place.value.path === path ? 'page' : undefined}
      onClick=${() => {
        isMenuOpen.value = false;
      }}>${title}</a>`;
  return html`<nav class=${isMenuOpen.value ? 'menu open' : 'menu'} aria-label="Pages">
    <p class="brand">Freehold</p>
    <${SearchButton} />
    <div class="pages">${link('', 'Today')}
    ${[...groups].map(([group, pages]) => html`<h2>${group}</h2>${pages.map(({ path, title }) => link(path, title))}`)}</div>
    <footer class="self">
      <${Connection} />
      <p>${operator.value!.name} · ${operator.value!.role.toLowerCase().replace('_', ' ')}</p>
      <button class="quiet" onClick=${signOut}>Log out</button>
    </footer>
  </nav>`;
}

const SearchButton = () => html`<button class="find" onClick=${togglePalette}>Search <kbd>Ctrl K</kbd></button>`;

const WORDS = { opening: 'connecting …', live: 'live', lost: 'connection lost, trying again' };
const Connection = () => html`<p class="connection ${connection.value}" role="status">${WORDS[connection.value]}</p>`;

function Shell() {
  const page = allowed().find(({ path }) => path === place.value.path);
  const toggleMenu = () => {
    isMenuOpen.value = !isMenuOpen.value;
  };
  return html`
    <a class="skip" href="#main" onClick=${focusMain}>Skip to the page</a>
    <div class="bar">
      <button class="quiet" aria-expanded=${isMenuOpen.value} onClick=${toggleMenu}>Menu</button>
      <${SearchButton} />
      <${Connection} />
    </div>
    <${Menu} />
    <main id="main" tabindex="-1">
      <${Guard} words="The console cannot show this page" key=${place.value.path}>
        ${page ? html`<${ListPage} page=${page} />` : html`<${Today} />`}
      <//>
    </main>
    <${Palette} pages=${allowed()} />
    <${FormDialog} />
    <${Notice} />`;
}
function focusMain(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

const App = () =>
  !isReady.value
    ? html`<p class="empty">Opening …</p>`
    : operator.value
      ? html`<${Shell} />`
      : html`<${Login} enter=${enter} problem=${problem.value} />`;

addEventListener('keydown', (event) => {
  const isTyping =
    (event.target as Element).closest?.('input, textarea, select') || document.querySelector('dialog[open]');
  if ((event.key === 'k' && (event.metaKey || event.ctrlKey)) || (event.key === '/' && !isTyping)) {
    event.preventDefault();
    togglePalette();
  } else if (event.key === 'Escape' && !isTyping && place.value.search.has('row'))
    go(place.value.path, { ...Object.fromEntries(place.value.search), row: '' });
});

render(html`<${App} />`, document.body);
await enter(resume);
let stop = () => {};
effect(() => {
  stop();
  const stops = operator.value && isReady.value ? [followPage(allowed()), followRow(allowed())] : [];
  stop = () => {
    for (const end of stops) end();
  };
});
effect(() => {
  // The menu may be longer than the window.
  if (place.value && isReady.value)
    requestAnimationFrame(() => document.querySelector('.pages [aria-current]')?.scrollIntoView({ block: 'nearest' }));
});
effect(() => {
  const title = PAGES.find(({ path }) => path === place.value.path)?.title ?? 'Today';
  document.title = `${title} · Freehold`;
});
