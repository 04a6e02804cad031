/** The memory of an agent: the facts that its user told, and the things that it read in answers. */
import { type Schema, type Tool, wordsOf } from './choose.ts';

type Values = Record<string, unknown>;

/** A thing of an answer. The description of the output names its type, such as Server. */
interface Thing {
  title: string;
  members: Values;
}

const isObject = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const lettersOf = (text: string) => text.toLowerCase().replace(/[^a-z]/g, '');

export class Memory {
  readonly #facts: Readonly<Record<string, string>>;
  /** The newest first. */
  readonly #things: Thing[] = [];

  /** @param facts by the words that the user has for them */
  constructor(facts: Readonly<Record<string, string>>) {
    this.#facts = facts;
  }

  remember(title: string, members: Values): void {
    this.#things.unshift({ title, members });
    for (const [name, value] of Object.entries(members)) if (isObject(value)) this.remember(name, value);
  }

  /** Remembers an answer under the type that its tool announces. */
  rememberAnswer({ outputSchema }: Tool, content: Values): void {
    const [title = 'answer'] = outputSchema.description?.match(/^[A-Z]\w+/) ?? [];
    this.remember(title, content);
  }

  /** Remembers an entry of a list. */
  rememberEntry({ outputSchema }: Tool, entry: Values): void {
    const [, title = 'entry'] = outputSchema.description?.match(/\[\] \(([A-Z]\w+)/) ?? [];
    this.remember(title, entry);
  }

  /** The newest value of a member of any thing. */
  latest(name: string): unknown {
    return this.#things.find(({ members }) => name in members)?.members[name];
  }

  /** A fact for an argument, by its name or by its description. */
  fact(name: string, { description = '' }: Schema = {}): string | undefined {
    const known = Object.entries(this.#facts);
    const told = wordsOf(description);
    return (known.find(([words]) => words === name) ??
      known.find(([words]) => wordsOf(words).every((word) => told.includes(word))))?.[1];
  }

  /** A value for an argument: a fact, or else a member of the thing that the description names. */
  find(name: string, schema: Schema): unknown {
    const { description } = schema;
    const fact = this.fact(name, schema);
    if (fact !== undefined) return fact;
    if (description === undefined) return this.latest(name);
    const named = this.#things.filter(({ title }) => lettersOf(description).includes(lettersOf(title)));
    for (const { members } of named) {
      const member = Object.keys(members).find((one) => one === name) ?? like(name, members);
      if (member) return members[member];
    }
    const words = wordsOf(codedIn(description) ?? '');
    const isMeant = ({ title, members }: Thing) =>
      'code' in members && wordsOf(title.replace(/([A-Z])/g, ' $1')).some((word) => words.includes(word));
    return this.#things.find(isMeant)?.members.code;
  }
}

/** `ipv4` for `ip`. */
const like = (name: string, members: Values): string | undefined =>
  Object.keys(members).find(
    (one) => /^[a-z]+\d?$/.test(one) && one.startsWith(name) && typeof members[one] === 'string',
  );

/** The thing in "The code of a thing". */
export const codedIn = (description: string): string | undefined => /The code of an? ([^.,]+)/.exec(description)?.[1];
