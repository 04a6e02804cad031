/** The contents that the fixtures answer with. */
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/server';

/** One red pixel. */
export const PNG = {
  mimeType: 'image/png',
  data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC',
};

/** A RIFF header without samples. */
const WAV = {
  mimeType: 'audio/wav',
  data: Buffer.from(
    '524946462400000057415645666d74201000000001000100401f0000401f00000100080064617461' + '00000000',
    'hex',
  ).toString('base64'),
};

export const text = (said: string): ContentBlock & { type: 'text' } => ({ type: 'text', text: said });
export const image = { type: 'image' as const, ...PNG };
export const audio = { type: 'audio' as const, ...WAV };
export const embedded = (uri: string, mimeType: string, said: string) => ({
  type: 'resource' as const,
  resource: { uri, mimeType, text: said },
});

export const answer = (...content: ContentBlock[]): CallToolResult => ({ content });
