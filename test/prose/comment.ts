import type { Passage } from './passage.ts';

interface Line {
  number: number;
  text: string;
}

/** Comments for programs; the reason that biome wants is for people. */
const DIRECTIVE = /^(biome-ignore [\w/]+:|@ts-expect-error\b:?|shellcheck \w+=\S+|!|\/ <reference.*)/;

/** A list item, or a tag with the name of a parameter. */
const BEGINNING = /^(?:[-*•]|\d+[.)])\s+|^@(?:param|property|template)\s+(?:\{[^}]*\}\s+)?\S+\s*(?:-\s+)?|^@\w+\s*/;

/** Divides the lines of a comment at blank lines, list items, tags and fenced code. */
export function passagesOfLines(lines: Line[]): Passage[] {
  const passages: Passage[] = [];
  let open: Passage | undefined;
  let inCode = false;
  for (const { number, text: raw } of lines) {
    const text = raw.trim().replace(DIRECTIVE, '').trim();
    if (text.startsWith('```')) inCode = !inCode;
    if (inCode || !text || text.startsWith('```')) {
      open = undefined;
      continue;
    }
    const begins = BEGINNING.exec(text);
    if (open && !begins && open.line + open.text.split('\n').length === number) open.text += `\n${text}`;
    else {
      open = { line: number, text: text.slice(begins?.[0].length ?? 0) };
      passages.push(open);
    }
  }
  return passages;
}

/** The comments of shell scripts, YAML and configuration files, and the words that scripts print. */
export function passagesOfScript(source: string): Passage[] {
  const lines = source.split('\n').map((text, index) => ({ number: index + 1, text }));
  const comments = lines.flatMap(({ number, text }) => {
    const [, code, comment] = /^((?:[^'"#]|'[^']*'|"[^"]*"|(?<=\S)#)*)#(?!!)(.*)$/.exec(text) ?? [];
    return comment === undefined ? [] : [{ number, text: comment, alone: !code!.trim() }];
  });
  const printed = lines.flatMap(({ number, text }) =>
    [...text.matchAll(/\b(?:echo|section|die)\s+(?:-\w+\s+)?(?:'([^']*)'|"([^"]*)")/g)].map(([, single, double]) => ({
      line: number,
      text: (single ?? double)!.replace(/\$\{[^}]*\}|\$\w+|\$\([^)]*\)/g, '`'),
    })),
  );
  return [
    ...passagesOfLines(comments.filter(({ alone }) => alone)),
    ...comments.filter(({ alone }) => !alone).flatMap((comment) => passagesOfLines([comment])),
    ...printed,
  ];
}
