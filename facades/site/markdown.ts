/** Renders the project's Markdown as HTML with classes alone, because the policy of the pages allows no inline styles. */
import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import MarkdownIt from 'markdown-it';

for (const [name, language] of Object.entries({ bash, javascript, json, python }))
  hljs.registerLanguage(name, language);
hljs.registerAliases(['sh'], { languageName: 'bash' });
hljs.registerAliases(['js', 'ts'], { languageName: 'javascript' });

const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

/** Highlights code as HTML. A language that the pages do not know stays plain. */
export const highlighted = (code: string, language: string): string =>
  hljs.getLanguage(language) ? hljs.highlight(code, { language }).value : escaped(code);

/** A block of code that a keyboard can scroll. */
export const codeBlock = (code: string, language: string, label = 'Code'): string =>
  `<pre tabindex="0" aria-label="${escaped(label)}"><code>${highlighted(code.trimEnd(), language)}</code></pre>`;

/** The anchor that GitHub gives to a heading. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

/** The plain text of a line of Markdown. */
export const plainOf = (markdown: string): string =>
  markdown
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*]/g, '')
    .replace(/\s+/g, ' ')
    .trim();

/** Returns the target of a link on the page, or undefined if readers of the page cannot follow it. */
export type Resolve = (target: string) => string | undefined;

const markdown = new MarkdownIt({ html: false });
const { rules } = markdown.renderer;
rules.fence = (tokens, at) => codeBlock(tokens[at]!.content, tokens[at]!.info.trim());
rules.table_open = () => '<div class="scroll" role="group" aria-label="Table" tabindex="0"><table>';
rules.table_close = () => '</table></div>';
rules.heading_open = (tokens, at) => `<${tokens[at]!.tag} id="${anchorOf(plainOf(tokens[at + 1]!.content))}">`;
rules.heading_close = (tokens, at) => {
  const heading = plainOf(tokens[at - 1]!.content);
  const link = `<a class="anchor" href="#${anchorOf(heading)}" aria-label="Link to ${escaped(heading)}">#</a>`;
  return `${tokens[at]!.tag === 'h1' ? '' : link}</${tokens[at]!.tag}>\n`;
};
rules.link_open = (tokens, at, _options, env) => {
  const target = String(tokens[at]!.attrGet('href'));
  const shown = (env!.resolve as Resolve)(target);
  return shown === undefined ? '<a>' : `<a href="${escaped(shown)}">`;
};

/** Renders Markdown. HTML in it shows as text. */
export const rendered = (text: string, resolve: Resolve): string => markdown.render(text, { resolve });
