import { parse, TokenKind } from 'graphql';
import { passagesOfLines } from './comment.ts';
import type { Passage } from './passage.ts';

/** A string after one of these is a value, any other describes what follows it. */
const BEFORE_VALUES: TokenKind[] = [TokenKind.COLON, TokenKind.EQUALS, TokenKind.BRACKET_L];

/** The descriptions and comments of a GraphQL document. */
export function passagesOfGraphql(source: string): Passage[] {
  const described: Passage[] = [];
  const comments: { number: number; text: string }[] = [];
  let values = false;
  for (let token = parse(source).loc?.startToken; token; token = token.next ?? undefined) {
    if (token.kind === TokenKind.COMMENT) comments.push({ number: token.line, text: token.value });
    if (token.kind === TokenKind.STRING && !values) described.push({ line: token.line, text: token.value });
    if (token.kind === TokenKind.BLOCK_STRING && !values) {
      const lines = source.slice(token.start + 3, token.end - 3).split('\n');
      described.push(...passagesOfLines(lines.map((text, index) => ({ number: token.line + index, text }))));
    }
    values = BEFORE_VALUES.includes(token.kind);
  }
  return [...described, ...passagesOfLines(comments)];
}
