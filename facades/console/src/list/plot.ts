/** A plot of the rows of a report: bars that lie beside their names. The table below has the same numbers. */
import { html } from 'htm/preact';
import type { Row } from '../api.ts';
import type { Plot as Drawn } from '../pages/page.ts';
import { usd } from '../values.ts';
import { groupsOf } from './groups.ts';

/** The sizes in pixels. The letters keep their size on narrow screens, where bars and names get less. */
const [BAR, GAP, WIDTH_MAX, VALUE] = [14, 10, 640, 110];
/** The pixels beside the plot on a narrow screen. */
const MARGIN = 60;
/** The width of a letter of a name. */
const LETTER = 6.5;

export function Plot({ plot, rows }: { plot: Drawn; rows: readonly Row[] }) {
  const groups = groupsOf(plot, rows);
  const largest = Math.max(0, ...groups.flatMap(({ values }) => values));
  if (!largest) return null;
  const step = plot.series.length * (BAR + 2) + GAP;
  const width = Math.min(WIDTH_MAX, innerWidth - MARGIN);
  const names = Math.min(150, width / 3);
  const lettersMax = Math.floor((names - 10) / LETTER);
  const [top, room] = [GAP / 2, width - names - VALUE];
  return html`<figure class="plot">
    <figcaption>${plot.series.map(({ title }, i) => html`<span class=${`key series-${i}`}>${title}</span>`)}</figcaption>
    <svg role="img" aria-label=${`${plot.title}. The table below has the numbers.`} width=${width} height=${groups.length * step}>
      ${groups.map(
        ({ name, values }, line) => html`
        <text class="name" x=${names - 10} y=${top + line * step + (values.length * (BAR + 2)) / 2} text-anchor="end" dominant-baseline="central">
          ${name.length > lettersMax ? `${name.slice(0, lettersMax - 1)}…` : name}</text>
        ${values.map((value, i) => {
          const [y, length] = [top + line * step + i * (BAR + 2), value && Math.max(1, (room * value) / largest)];
          return html`<rect class=${`series-${i}`} x=${names} y=${y} width=${length} height=${BAR} rx="2" />
            <text x=${names + length + 6} y=${y + BAR / 2} dominant-baseline="central">${plot.unit === 'USD' ? usd(value) : value.toLocaleString('en')}</text>`;
        })}`,
      )}
    </svg>
  </figure>`;
}
