/** A page of the console, as data: a list of the schema with the mutations that act on its rows. */
import type { graphql, Row } from '../api.ts';

/** Arguments of which a form sends exactly one. */
export interface Choice {
  title: string;
  /** The words for each argument. */
  words: Record<string, string>;
}

/** A mutation as a button. The form asks for every argument that `of` does not give. */
export interface Action {
  /** The mutation. Roles without its right see no button. */
  mutation: string;
  label: string;
  /**
   * The arguments that the row gives, and the form does not ask for. Members of `input` are first words instead, unless
   * the action destroys something.
   */
  of?: (row: Row) => Row;
  /** The first words of arguments that the person may change. */
  first?: (row: Row) => Row;
  choice?: Choice;
  /** Whether the action fits the state of the row. */
  when?: (row: Row) => boolean;
  /** Queries whose texts the form offers for an argument, such as the hosts that engines told of. */
  suggest?: Record<string, string>;
  /** The person must type the name of the row, because the action destroys something. */
  destroys?: boolean;
  /** Returns the act in words, which the person confirms, from the values of the form. Empty: the form goes at once. */
  asks?: (values: Row, row: Row, ask: typeof graphql) => Promise<string> | string;
  /** The fields of the answer to show once, such as a token. */
  shows?: string;
  /** The address of a page that takes the answer, relative to the console. */
  link?: (answer: Row) => string;
  /** The fields of the answer that tell the outcome. */
  tells?: string;
}

export interface Column {
  field: string;
  title: string;
  /** `thing`: an object, shown by its name or its id. */
  as?: 'state' | 'code' | 'number' | 'age' | 'day' | 'thing';
  /** Narrow screens leave it out. The details of the row have it. */
  wide?: boolean;
}

/** A plot above a list. Rows of one name count together. */
export interface Plot {
  /** A description for people who do not see it. */
  title: string;
  name: (row: Row) => string;
  series: { title: string; value: (row: Row) => number }[];
  unit: 'USD' | 'MB';
  /** The rows come newest first, and the plot shows them in the order of time. Otherwise the largest is the first. */
  isInOrder?: boolean;
}

/** Things to choose a filter from, by their ids. */
interface Things {
  /** The query of a list with `id`, `name` and `endedAt`. */
  query: string;
  /** A thing that the list does not have. */
  also: { id: string; name: string };
}

export interface Page {
  path: string;
  group: 'Customers' | 'Money' | 'Machines' | 'Catalog' | 'Public' | 'Company';
  title: string;
  /** The root field of the list. */
  list: string;
  /** The arguments of the root field that a person can set. */
  filters?: string[];
  /** The values with which filters begin. The value `all` takes them away. */
  starts?: Record<string, string>;
  /** The names that a filter offers for its ids. */
  choices?: Record<string, Things>;
  /** The words for the values of a field, in its cells and in its filter. */
  words?: Record<string, { title: string; values: Record<string, string> }>;
  /** The selection of a row. */
  fields: string;
  columns: Column[];
  /** A root field that takes the id of a row, and the parts that its details add. */
  details?: { field: string; fields: string };
  plot?: Plot;
  /** A root field that gives a row by its key, also one that the list has not read. */
  one?: string;
  /** The fields that name a row. No two rows of the list have the same values in all of them. */
  key: string;
  /** The field by which people know a row, if it has a value. It is unique, as the key. Default: the key. */
  called?: string;
  actions?: Action[];
  rowActions?: Action[];
  /** The words for an empty list, with the next act. */
  empty: string;
}

/** The value of a filter that takes the first value away. */
export const ALL = 'all';
/** The text of a filter, from the address or as the page begins. Empty: the filter takes all. */
export function filterIn({ starts }: Page, name: string, search: URLSearchParams): string {
  const text = search.get(name) ?? starts?.[name] ?? '';
  return starts?.[name] && text === ALL ? '' : text;
}

/** The name of a row, which no other row of its page has. A field that is true stands for itself. */
export function nameOf({ key }: Page, row: Row): string {
  const parts = key.split(' ').map((field) => (typeof row[field] === 'boolean' ? row[field] && field : row[field]));
  return parts.filter((part) => part !== false).join(' ');
}

/** Whether a field of the row has one of the values. */
export const is =
  (field: string, ...values: unknown[]) =>
  (row: Row) =>
    values.includes(row[field]);
export const not =
  (field: string, ...values: unknown[]) =>
  (row: Row) =>
    !values.includes(row[field]);
export const byName = ({ name }: Row): Row => ({ name });
export const byId = ({ id }: Row): Row => ({ id });
