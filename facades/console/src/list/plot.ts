/** A plot of the rows of a report: bars that lie beside their names. The table below has the same numbers. */
import { html } from 'htm/preact';
import type { Row } from '../api.ts';
import type { Plot as Drawn } from '../pages/page.ts';
import { usd } from '../values.ts';
import { groupsOf } from './groups.ts';

/** The sizes in pixels. The letters keep their size on narrow screens, because the plot shows fewer pixels there. */
const [BAR, GAP, NAME, WIDTH, VALUE] = [14, 10, 150, 640, 110];
/** The letters of a name that fit. */
const LETTERS_MAX = 22;

export function Plot({ plot, rows }: { plot: Drawn; rows: readonly Row[] }) {
  const groups = groupsOf(plot, rows);
  const largest = Math.max(0, ...groups.flatMap(({ values }) => values));
  if (!largest) return null;
  const step = plot.series.length * (BAR + 2) + GAP;
  const [top, room] = [GAP / 2, WIDTH - NAME - VALUE];
  return html`<figure class="plot">
    <figcaption>${plot.series.map(({ title }, i) => html`<span class=${`key series-${i}`}>${title}</span>`)}</figcaption>
    <svg role="img" aria-label=${`${plot.title}. The table below has the numbers.`} viewBox="0 0 ${WIDTH} ${groups.length * step}">
      ${groups.map(
        ({ name, values }, line) => html`
        <text class="name" x=${NAME - 10} y=${top + line * step + (values.length * (BAR + 2)) / 2} text-anchor="end" dominant-baseline="central">
          ${name.length > LETTERS_MAX ? `${name.slice(0, LETTERS_MAX - 1)}…` : name}</text>
        ${values.map((value, i) => {
          const [y, width] = [top + line * step + i * (BAR + 2), value && Math.max(1, (room * value) / largest)];
          return html`<rect class=${`series-${i}`} x=${NAME} y=${y} width=${width} height=${BAR} rx="2" />
            <text x=${NAME + width + 6} y=${y + BAR / 2} dominant-baseline="central">${plot.unit === 'USD' ? usd(value) : value.toLocaleString('en')}</text>`;
        })}`,
      )}
    </svg>
  </figure>`;
}
