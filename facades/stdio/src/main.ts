#!/usr/bin/env node
/** The process that a host starts. It reads and writes MCP messages, one a line, on standard input and output. */
import { createInterface } from 'node:readline';
import { INVALID_REQUEST, PARSE_ERROR, parseJSONRPCMessage } from '@modelcontextprotocol/client';
import own from '../package.json' with { type: 'json' };
import { Pipe } from './pipe.ts';
import { readSettings, type Settings, WrongSetting } from './settings.ts';

const say = (sentence: string) => process.stderr.write(`freehold-mcp: ${sentence}\n`);
const deliver = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`);

function settingsOrExit(): Settings {
  try {
    return readSettings(process.env);
  } catch (error) {
    if (!(error instanceof WrongSetting)) throw error;
    say(error.message);
    process.exit(2);
  }
}

const pipe = new Pipe({ ...settingsOrExit(), userAgent: `freehold-mcp/${own.version}`, deliver, warn: say });

/** A line holds one message. Revision 2025-03-26 also allows a list of messages, which are answered one by one. */
function receive(line: string): void {
  if (!line.trim()) return;
  let values: unknown[];
  try {
    values = [JSON.parse(line)].flat();
  } catch {
    refuse(PARSE_ERROR, 'Parse error: the line is not valid JSON.');
    return;
  }
  if (!values.length) refuse(INVALID_REQUEST, 'Invalid request: the list is empty.');
  for (const value of values) {
    try {
      void pipe.forward(parseJSONRPCMessage(value));
    } catch {
      refuse(INVALID_REQUEST, 'Invalid request: this is no message of JSON-RPC 2.0.', (value as { id?: unknown })?.id);
    }
  }
}

function refuse(code: number, message: string, id?: unknown): void {
  deliver({ jsonrpc: '2.0', error: { code, message }, id: typeof id === 'string' || Number.isInteger(id) ? id : null });
}

let stopping = false;
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  await pipe.stop();
  // The reader may be slow, so the last messages may not have left yet.
  process.stdout.write('', () => process.exit(0));
}

process.stdout.on('error', () => process.exit(0));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);
await pipe.start();
createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY }).on('line', receive).on('close', stop);
