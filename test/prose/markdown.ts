import type { Passage } from './passage.ts';

const BEGINNING = /^(?:#{1,6}\s+|(?:[-*+]|\d+[.)])\s+|>\s*)/;

/** Paragraphs, headings, list items and table cells; code blocks and HTML comments are left out. */
export function passagesOfMarkdown(source: string): Passage[] {
  const passages: Passage[] = [];
  let open: Passage | undefined;
  let fence = '';
  const text = source.replace(/<!--.*?-->/gs, (comment) => comment.replace(/[^\n]/g, ''));
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    const mark = /^(```+|~~~+)/.exec(line)?.[0] ?? '';
    if (mark && (!fence || line === fence)) fence = fence ? '' : mark;
    if (fence || mark || !line) {
      open = undefined;
    } else if (line.startsWith('|')) {
      open = undefined;
      const cells = line.split('|').filter((cell) => /\w/.test(cell));
      passages.push(...cells.map((cell) => ({ line: index + 1, text: cell })));
    } else {
      const begins = BEGINNING.exec(line);
      if (open && !begins) open.text += `\n${line}`;
      else {
        open = { line: index + 1, text: line.slice(begins?.[0].length ?? 0) };
        passages.push(open);
      }
      if (line.startsWith('#')) open = undefined;
    }
  }
  return passages;
}
