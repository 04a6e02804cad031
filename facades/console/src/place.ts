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
  const kept = new URLSearchParams(Object.entries(search).filter(([, value]) => value));
  location.hash = kept.size ? `${path}?${kept}` : path;
}
