/** The questions of a form, and the mutation that it sends. */
import { graphql, type Row } from '../api.ts';
import { type Argument, inputsOf, isRequired, rootField, written } from '../model.ts';
import type { Action } from '../pages/page.ts';
import { Refusal } from '../refusal.ts';
import { readValue, shapeOf } from '../values.ts';

export interface Opened {
  action: Action;
  row?: Row | undefined;
  /** The name of the row. */
  name?: string | undefined;
  /** The words by which people know the row. A person types them before something is destroyed. Default: its name. */
  called?: string | undefined;
  done: () => unknown;
}
/** A form that stands open. A render changes nothing of it. */
export interface Form extends Opened {
  asked: Asked[];
}
export interface Asked {
  argument: Argument;
  /** The argument that holds it, if it is an input object. */
  within?: string;
  /** The value that the form sends without asking. */
  given?: unknown;
  /** The first words of the field. */
  first?: unknown;
  /** The person has chosen the field among others. */
  isNeeded?: boolean;
}

/** Whether the form cannot go without the field. */
export const isNeeded = ({ argument: { type, defaultValue }, isNeeded: isChosen = false }: Asked): boolean =>
  isChosen || (isRequired(type) && defaultValue === null);

/** The arguments of a mutation. Those of its input object stand beside the others. */
export function askedBy(form: Opened): Asked[] {
  const { action, row = {} } = form;
  const [given, first] = [action.of?.(row) ?? {}, action.first?.(row) ?? {}];
  return rootField(action.mutation).args.flatMap((argument): Asked[] => {
    const { name, type } = argument;
    if (name === KEY) return [{ argument, given: sessionStorage.getItem(slotOf(form)) ?? newKey() }];
    if (shapeOf(type) !== 'group') return [{ argument, given: given[name], first: first[name] }];
    const words = (given[name] ?? {}) as Row;
    return inputsOf(type)!.map((one) => ({
      ...{ argument: one, within: name },
      ...(action.destroys ? { given: words[one.name] } : { first: words[one.name] }),
    }));
  });
}

/** Reads all values by the names of their arguments. @throws Refusal that names the fields with wrong ones */
export function readForm({ asked }: Form, data: FormData): Row {
  const [values, problems]: [Row, Refusal['fields']] = [{}, []];
  for (const { argument, given } of asked) {
    try {
      const value = given ?? readValue(argument, data.getAll(argument.name).join('\n'));
      if (value !== undefined) values[argument.name] = value;
    } catch (error) {
      problems.push({ field: argument.name, message: (error as Error).message });
    }
  }
  if (problems.length) throw new Refusal('', 'form', problems);
  return values;
}

/** The argument by which the service knows a payment that it has carried out. */
const KEY = 'key';
const newKey = (): string => `console ${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
/** The place of the key of a form that was sent. A form that opens anew sends the same key, until one succeeds. */
const slotOf = ({ action, name = '' }: Opened): string => `freehold-key ${action.mutation} ${name}`;

/** The service knows the key already: it has carried out a payment, or keeps a proposal. The next form is about another sum. */
const KNOWN: ReadonlySet<string> = new Set(['idempotency_key_reused', 'approval_needed']);

/** Sends the values, and keeps the key of the form until the service tells what became of it. @throws as `send` does */
export async function sendOnce(form: Form, values: Row): Promise<Row> {
  const { [KEY]: key } = values;
  if (typeof key === 'string') sessionStorage.setItem(slotOf(form), key);
  try {
    const given = await send(form, values);
    sessionStorage.removeItem(slotOf(form));
    return given;
  } catch (error) {
    if (!(error instanceof Refusal && KNOWN.has(error.code))) throw error;
    sessionStorage.removeItem(slotOf(form));
    if (error.code === 'approval_needed') throw error;
    throw new Error(`The service carried out the values that you sent first. Look at them, and open the form again.`);
  }
}

/** Sends the mutation. @throws Refusal */
async function send({ action, asked }: Form, values: Row): Promise<Row> {
  const { args, type } = rootField(action.mutation);
  const variables: Row = {};
  for (const { argument, within } of asked) {
    const value = values[argument.name];
    if (value === undefined) continue;
    if (within) variables[within] = { ...(variables[within] as Row), [argument.name]: value };
    else variables[argument.name] = value;
  }
  const head = args.map((one) => `$${one.name}: ${written(one.type)}`).join(', ');
  const passed = args.map(({ name }) => `${name}: $${name}`).join(', ');
  const selection = action.shows ?? action.tells ?? '__typename';
  const isScalar = !type.ofType && type.kind === 'SCALAR';
  const call = `${action.mutation}${passed && `(${passed})`}${isScalar ? '' : ` { ${selection} }`}`;
  return (await graphql(`mutation${head && `(${head})`} { ${call} }`, variables))[action.mutation] as Row;
}
