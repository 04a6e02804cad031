/**
 * An agent without a model. It knows English, its user's facts, and the texts of the server: instructions, tools and answers.
 * It chooses tools by their descriptions, and repairs its calls by the sentences of errors.
 */
import type { Agent as Client, Connect } from '../agents.ts';
import { choose, type Schema, type Tool, wordsOf } from './choose.ts';
import { codedIn, Memory } from './memory.ts';
import { type FieldError, repaired } from './repair.ts';

type Values = Record<string, unknown>;

/** One step of a task: the words for its tool, and the first call of a typical agent. */
export interface Move {
  seeks: string;
  sends?: Values;
  /** Chooses the entry of a list with the least value of this member. */
  least?: string;
}

interface Failure {
  code: string;
  detail: string;
  retryable: boolean;
  retry_after?: number;
  errors?: FieldError[];
}

/** The most calls of one move, so that an agent that makes no progress ends. */
const TRIES_MAX = 8;
const LOOKS_MAX = 200;
const pause = (ms: number) => new Promise((resume) => setTimeout(resume, ms));

export class Agent {
  readonly memory: Memory;
  /** The codes of all errors, in their order. */
  readonly met: string[] = [];
  readonly #client: Client;
  readonly #tools: readonly Tool[];
  readonly #instructions: string;
  readonly #goal: readonly string[];

  private constructor(client: Client, tools: Tool[], goal: string, facts: Record<string, string>) {
    this.#client = client;
    this.#tools = tools;
    this.#instructions = client.client.getInstructions();
    this.#goal = wordsOf(goal);
    this.memory = new Memory(facts);
  }

  static async connect(connect: Connect, url: URL, goal: string, facts: Record<string, string> = {}): Promise<Agent> {
    const client = await connect(url);
    return new Agent(client, await client.tools(), goal, facts);
  }

  /** Calls the tool that the move seeks, until it answers. @throws Error if no text tells the next step */
  async make({ seeks, sends = {}, least }: Move): Promise<Values> {
    const tool = choose(this.#tools, seeks);
    const answer = await this.#call(tool, structuredClone(sends));
    const entries = listIn(answer);
    if (least && entries)
      this.memory.rememberEntry(tool, entries.sort((a, b) => Number(a[least]) - Number(b[least]))[0]!);
    return answer;
  }

  async #call(tool: Tool, args: Values): Promise<Values> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      await this.#complete(tool, args);
      const { isError, content } = await this.#client.call(tool.name, args);
      if (!isError) {
        this.memory.rememberAnswer(tool, content);
        await this.#followUp(tool);
        return content;
      }
      this.met.push(content.code);
      this.memory.remember('error', content);
      if (!(await this.#recover(tool, args, content)))
        throw new Error(`${tool.name}(${JSON.stringify(args)}) tells no next step: ${JSON.stringify(content)}`);
    }
    throw new Error(`${tool.name} makes no progress: ${this.met.join(', ')}`);
  }

  /** Adds the arguments that the schema or a description requires, and the credential. */
  async #complete({ inputSchema }: Tool, args: Values): Promise<void> {
    const { properties = {}, required = [] } = inputSchema;
    for (const [name, schema] of Object.entries(properties)) {
      const isDue = required.includes(name) || /^Required|\. Required/.test(schema.description ?? '');
      if (name in args || !(isDue || name === 'access_token')) continue;
      const value = this.memory.find(name, schema) ?? (await this.#lookUp(schema)) ?? this.#least(schema);
      if (value !== undefined) args[name] = value;
    }
  }

  /** The first entry of the list that "The code of a thing" points to. */
  async #lookUp({ description = '' }: Schema): Promise<unknown> {
    const things = codedIn(description);
    if (!things) return undefined;
    const tool = choose(this.#tools, `list ${things}`);
    const entry = listIn(await this.#call(tool, {}))?.find(({ available }) => available !== false);
    if (entry) this.memory.rememberEntry(tool, entry);
    return entry?.code;
  }

  /** The least amount that the schema allows and the last error requires. */
  #least({ minimum }: Schema): number | undefined {
    return minimum === undefined ? undefined : Math.max(minimum, Number(this.memory.latest('required_usd') ?? 0));
  }

  /** @returns whether the next call may succeed */
  async #recover(tool: Tool, args: Values, failure: Failure): Promise<boolean> {
    const { detail, errors = [], retryable, retry_after = 0.1 } = failure;
    const { properties = {} } = tool.inputSchema;
    const repairs = errors.map((error) => {
      const schema = properties[error.field.split('.')[0]!] ?? {};
      return repaired(error, { args, schema, memory: this.memory, goal: this.#goal });
    });
    if (repairs.includes(true)) return true;
    if (/Use a new key/.test(detail)) {
      const key = Object.keys(args).find((name) => name.endsWith('_key'));
      if (key) args[key] = `${args[key]}-again`;
      return key !== undefined;
    }
    const next = this.#tools.find(({ name }) => wordsIn(detail).includes(name));
    if (next) await this.#call(next, settingsIn(detail, next));
    else if (retryable) await pause(retry_after * 1000);
    return next !== undefined || retryable;
  }

  /** Follows the instructions: "Then get_thing until it is ready." */
  async #followUp({ name }: Tool): Promise<void> {
    const line = this.#instructions.split('\n').find((one) => wordsIn(one).includes(name));
    const [, looker, status] = /Then (\w+) until it is (\w+)/.exec(line ?? '') ?? [];
    const tool = this.#tools.find((one) => one.name === looker);
    if (!tool || looker === name) return;
    for (let looks = 0; looks < LOOKS_MAX; looks++) {
      if ((await this.#call(tool, {})).status === status) return;
      await pause(50);
    }
    throw new Error(`It never became ${status} after ${name}.`);
  }
}

const wordsIn = (text: string): string[] => text.match(/\w+/g) ?? [];

/** The entries of a list, or of the first of several. */
const listIn = (content: Values): Values[] | undefined => Object.values(content).find(Array.isArray);

/** The arguments that a sentence gives for a tool: `name "value"`, or "Turn name off". */
function settingsIn(sentence: string, { inputSchema }: Tool): Values {
  const names = Object.keys(inputSchema.properties ?? {});
  const quoted = [...sentence.matchAll(/(\w+) "(\w+)"/g)].map(([, name, value]) => [name, value]);
  const turned = [...sentence.matchAll(/Turn (\w+) (on|off)/g)].map(([, name, value]) => [name, value === 'on']);
  return Object.fromEntries([...quoted, ...turned].filter(([name]) => names.includes(String(name))));
}
