/**
 * The text within an archive, which zstd compresses before age encrypts it. Each table begins with a line of JSON and ends with
 * another one. Its rows are in the text format of COPY:
 *
 *     {"format":"freehold archive 1", …}
 *     {"table":"account","columns":["id", …]}
 *     acct_…	\N	…
 *     \.
 *     {"rows":1,"sha256":"…"}
 *     {"tables":1}
 */

/** The version of the format. */
export const FORMAT = 'freehold archive 1';

/** The first line. */
export interface Header {
  format: typeof FORMAT;
  /** Tells this archive from all others. */
  id: string;
  /** The version of Freehold that wrote it. */
  freehold: string;
  /** When its rows were read. */
  createdAt: string;
  /** The migrations of the database, in their order. */
  migrations: string[];
  /** The words that the keys of the database have sealed, in base64. */
  canaries: string[];
}

/** The line before the rows of a table. */
export interface TableHead {
  table: string;
  columns: string[];
}

/** The line after the rows of a table. */
export interface TableEnd {
  rows: number;
  /** Of the rows as the archive has them. */
  sha256: string;
}

/** The last line. */
export interface ArchiveEnd {
  /** Their number. */
  tables: number;
}

/** The line after the last row. No row is like it, because COPY doubles each backslash. */
export const ROWS_END = '\\.\n';

/** The bytes that the compression hands on at once. With fewer, Node spends its time on pieces. */
export const CHUNK_BYTES = 2 ** 18;

export const lineOf = (value: Header | TableHead | TableEnd | ArchiveEnd): string => `${JSON.stringify(value)}\n`;

/** Settings of a session by which all versions of PostgreSQL write and read the same text, and take their time. */
export const SESSION_SQL = `
  set client_encoding = 'UTF8'; set datestyle = 'ISO, YMD'; set timezone = 'UTC'; set intervalstyle = 'postgres';
  set bytea_output = 'hex'; set extra_float_digits = 1; set statement_timeout = 0; set lock_timeout = 0;
  set idle_in_transaction_session_timeout = 0;
  set idle_session_timeout = 0; select set_config(name, '0', false) from pg_settings where name = 'transaction_timeout'`;
