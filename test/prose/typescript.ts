import { parseSync } from 'vite';
import { passagesOfLines } from './comment.ts';
import { lineAt, type Passage } from './passage.ts';

/** A node of the syntax tree, of which only some members are known. */
interface Node {
  type: string;
  start: number;
  [member: string]: unknown;
}

const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === 'string';

/** Members of objects whose strings people read. */
const READ_BY_PEOPLE = /^(description|detail|message|summary|instructions|title)$/;

/** A string that is a sentence, wherever it is used. */
const SENTENCE = /^[A-Z“"`][^\n]*\s\S+\s.*[.!?:]$/s;

/** The comments of a file, its test titles, errors and log lines; of the product also descriptions and whole sentences. */
export function passagesOfTypeScript(file: string, source: string): Passage[] {
  const { program, comments } = parseSync(file, source, { lang: 'ts' });
  const strings = new Map<number, string>();
  readStrings(program as unknown as Node, !/^(test|bench)\//.test(file), strings);
  return [
    ...passagesOfComments(source, comments),
    ...[...strings].map(([start, text]) => ({ line: lineAt(source, start), text })),
  ];
}

/** Adjacent line comments are one text, unless code stands before them. */
function passagesOfComments(source: string, comments: { type: string; value: string; start: number }[]): Passage[] {
  const alone: { number: number; text: string }[] = [];
  const passages: Passage[] = [];
  for (const { type, value, start } of comments) {
    const first = lineAt(source, start);
    const lines = value.split('\n').map((text, index) => ({
      number: first + index,
      text: type === 'Block' ? text.replace(/^\s*\*+(?=\s|$)/, '') : text,
    }));
    const before = source.slice(source.lastIndexOf('\n', start - 1) + 1, start);
    if (type === 'Line' && !before.trim()) alone.push(...lines);
    else passages.push(...passagesOfLines(lines));
  }
  return [...passages, ...passagesOfLines(alone)];
}

/** Collects the strings for people by their places. */
function readStrings(node: Node, product: boolean, strings: Map<number, string>): void {
  const add = (value: unknown) => {
    for (const { start, text } of textsOf(value)) if (/\S \S/.test(text)) strings.set(start, text);
  };
  if (node.type === 'CallExpression' || node.type === 'NewExpression') {
    const [first] = node.arguments as Node[];
    const name = nameOf(node.callee);
    if (/^(it|test|describe)\b/.test(name)) add(first);
    if (/^console\.|^process\.std(out|err)\.write$|(^|\.)(log|say)$/.test(name))
      (node.arguments as Node[]).forEach(add);
    if (node.type === 'NewExpression' && /Error$/.test(name)) (node.arguments as Node[]).forEach(add);
  }
  if (node.type === 'ThrowStatement' && isNode(node.argument) && node.argument.type === 'CallExpression')
    (node.argument.arguments as Node[]).forEach(add);
  if (product && node.type === 'Property' && READ_BY_PEOPLE.test(nameOf(node.key))) add(node.value);
  if (product) for (const { start, text } of ownText(node)) if (SENTENCE.test(text)) strings.set(start, text);
  for (const value of Object.values(node))
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) readStrings(child, product, strings);
}

/** `it.each` of `it.each(rows)('does it')`; empty where the callee has no plain name. */
function nameOf(node: unknown): string {
  if (!isNode(node)) return '';
  if (node.type === 'Identifier') return String(node.name);
  if (node.type === 'MemberExpression') return `${nameOf(node.object)}.${nameOf(node.property)}`;
  return node.type === 'CallExpression' ? nameOf(node.callee) : '';
}

interface Text {
  start: number;
  text: string;
}

/** The strings that an expression may amount to. */
function textsOf(node: unknown): Text[] {
  if (!isNode(node)) return [];
  if (node.type === 'ConditionalExpression') return [node.consequent, node.alternate].flatMap(textsOf);
  if (node.type === 'LogicalExpression') return [node.left, node.right].flatMap(textsOf);
  return ownText(node);
}

/** The text of a string, a template or a sum of them; values are inserted as one word of code. */
function ownText(node: Node): Text[] {
  if (node.type === 'Literal' && typeof node.value === 'string') return [{ start: node.start, text: node.value }];
  if (node.type === 'TemplateLiteral') {
    const quasis = node.quasis as { value: { cooked: string } }[];
    return [{ start: node.start, text: quasis.map(({ value }) => value.cooked).join('`x`') }];
  }
  if (node.type !== 'BinaryExpression' || node.operator !== '+') return [];
  const [left, right] = [node.left, node.right].map((side) => (isNode(side) ? ownText(side) : []));
  if (!left?.length && !right?.length) return [];
  return [{ start: node.start, text: (left?.[0]?.text ?? '`x`') + (right?.[0]?.text ?? '`x`') }];
}
