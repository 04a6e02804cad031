/** A line in place of the text of an answer. Without it, a client that passes both to its model would say everything twice. */
import type { CallToolResult, InputRequiredResult } from '@modelcontextprotocol/server';

/** Shortens the text of an answer. An error keeps its text, which clients of x402 read. */
export const withShortText = <Result extends CallToolResult | InputRequiredResult>(
  result: Result,
  tool: string,
): Result =>
  'structuredContent' in result && !result.isError
    ? { ...result, content: [{ type: 'text', text: `${tool} has answered. The answer is in structuredContent.` }] }
    : result;
