import { Command } from 'commander';
import { UsageError } from '../failure.ts';
import { print } from '../output.ts';
import { readInput } from '../questions.ts';
import { sessionOf } from '../session.ts';

export const api = () =>
  new Command('api')
    .description('Send any call to the API')
    .argument('<method>', 'GET, POST, PATCH or DELETE')
    .argument('<path>', 'such as /v1/account')
    .option('-d, --data <json>', 'the body; - reads the standard input')
    .addHelpText('after', '\nExample:\n  freehold api POST /v1/servers -d \'{"service_code": "vps-1"}\'')
    .action(async (method: string, path: string, { data }: { data?: string }, command: Command) => {
      const { freehold, format, call } = sessionOf(command);
      const body = data === undefined ? undefined : parsed(data === '-' ? await readInput() : data);
      print(await freehold.api(method.toUpperCase(), path, body, call), format === 'table' ? 'json' : format);
    });

function parsed(text: string): object {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`The body is no JSON: ${(error as Error).message}`);
  }
}
