/** The place in the console: a page with its filters and its open row, in the fragment of the address. */
import { signal } from '@preact/signals';

export interface Place {
  path: string;
  search: URLSearchParams;
}

const read = (): Place => {
  const [path = '', search = ''] = location.hash.slice(1).split('?');
  return { path, search: new URLSearchParams(search) };
};

export const place = signal<Place>(read());
addEventListener('hashchange', () => {
  place.value = read();
});

/** Goes to a page. Empty values leave the address. */
export function go(path: string, search: Record<string, string> = {}): void {
  location.hash = written(path, search);
}

/** Goes to a page in the place of the present one. The history of the browser gets no entry. */
export function replace(path: string, search: Record<string, string>): void {
  history.replaceState(null, '', `#${written(path, search)}`);
  // The browser tells of no change here.
  place.value = read();
}

function written(path: string, search: Record<string, string>): string {
  const kept = new URLSearchParams(Object.entries(search).filter(([, value]) => value));
  return kept.size ? `${path}?${kept}` : path;
}
