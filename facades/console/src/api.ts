/** Talks to the service: one GraphQL endpoint over HTTP, and one WebSocket for changes. */
import { signal } from '@preact/signals';
import { createClient } from 'graphql-ws';
import { askForLogin } from './new-tab.ts';
import { Refusal } from './refusal.ts';

/** The operator of this tab. */
export interface CurrentOperator {
  name: string;
  role: string;
  /** The root fields that the role may call. */
  fields: string[];
}

const KEPT = 'freehold-operator-token';
/** The operator of the token, as the service told last. The page begins with it while the service looks at the token again. */
const KEPT_OPERATOR = 'freehold-operator';
/** The token of the operator or of the session. It lives in this tab, and ends with it. No request sends it by itself. */
let token = sessionStorage.getItem(KEPT) ?? '';

/** The operator, or undefined before the login. */
export const operator = signal<CurrentOperator | undefined>(undefined);
/** Whether changes arrive. `lost`: the console connects again by itself. */
export const connection = signal<'opening' | 'live' | 'lost'>('opening');
/** Grows with each change of the service, so that pages read again. */
export const changes = signal(0);

export type Row = Record<string, unknown>;

/** Sends a document. @throws Refusal with the message of the service */
export const graphql = <T = Row>(query: string, variables: Row = {}): Promise<T> =>
  post<T>('/graphql', { query, variables }, { authorization: `Bearer ${token}` });

/** Sends an operation of a sign-in, which needs no credential. @throws Refusal with the message of the service */
export const signInBy = async <T>(operationName: string, variables: Row): Promise<T> =>
  (await post<Record<string, T>>('/sign-in', { operationName, variables }))[operationName]!;

async function post<T>(path: string, body: object, headers: Record<string, string> = {}): Promise<T> {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  }).catch(() => undefined);
  if (!response) throw new Refusal('The service does not answer. Is it running?', 'unreachable');
  const { data, errors } = await response.json();
  const [first] = errors ?? [];
  if (!first) return data;
  const { code = '', errors: fields = [] } = first.extensions ?? {};
  if (ENDED.has(code)) logOut();
  throw new Refusal(fields.length ? '' : first.message, code, fields);
}
const ENDED = new Set(['invalid_credential', 'expired_credential', 'revoked_credential', 'missing_credential']);

/** Takes the token, if the service knows it. @throws Refusal */
export async function logIn(given: string): Promise<void> {
  // A browser sends no other characters in a header.
  if (!/^[\x21-\x7e]+$/.test(given.trim()))
    throw new Refusal('The token is not valid. Copy it again.', 'invalid_credential');
  token = given.trim();
  const { currentOperator } = await graphql<{ currentOperator: CurrentOperator }>(
    '{ currentOperator { name role fields } }',
  );
  sessionStorage.setItem(KEPT, token);
  sessionStorage.setItem(KEPT_OPERATOR, JSON.stringify(currentOperator));
  operator.value = currentOperator;
  watch();
}

/** Continues with the token of this tab, or of the tab whose link opened it. */
export const resume = async (): Promise<void> => {
  token ||= (await askForLogin()) ?? '';
  if (!token) return;
  operator.value = JSON.parse(sessionStorage.getItem(KEPT_OPERATOR) ?? 'null') ?? undefined;
  await logIn(token).catch(() => {
    operator.value = undefined;
  });
};

/** The token for a tab that the operator opens from this one. Empty without a login. */
export const tokenOfTab = (): string => (operator.value ? token : '');

/** Whether the operator has signed in, and acts by no token. */
export const hasSession = (): boolean => token.startsWith('svc_os_');

/** Ends the session at the service, and the login. */
export async function signOut(): Promise<void> {
  if (hasSession()) await graphql('mutation { endOperatorSession }').catch(() => {});
  logOut();
}

let stop = () => {};
/** Ends the login. The page loads anew, so that the tab forgets the forms and rows of the operator. */
export function logOut(): void {
  const wasIn = operator.value !== undefined;
  sessionStorage.removeItem(KEPT);
  sessionStorage.removeItem(KEPT_OPERATOR);
  token = '';
  operator.value = undefined;
  stop();
  if (wasIn) location.reload();
}

/** Whether the role of the operator may call a root field. */
export const may = (field: string): boolean => operator.value?.fields.includes(field) ?? false;

/** The subscriptions whose messages say that something changed. The console reads the state itself anew. */
const SUBSCRIPTIONS = ['serverUpdated { type }', 'topUpUpdated { orderNumber }', 'operatorEvent { id }'];

/** The time in which the service answers a ping. After it, the connection counts as lost. */
const ANSWER_MS = 5_000;

/** The rest before the console subscribes again. */
const AGAIN_MS = 2_000;

/** Watches for changes, and connects again for as long as it takes. */
function watch(): void {
  stop();
  connection.value = 'opening';
  let socket: WebSocket | undefined;
  let silence: ReturnType<typeof setTimeout> | undefined;
  const client = createClient({
    url: new URL('/graphql', location.href).href.replace(/^http/, 'ws'),
    connectionParams: { authorization: `Bearer ${token}` },
    retryAttempts: Number.POSITIVE_INFINITY,
    retryWait: (tries) => new Promise((resume) => setTimeout(resume, Math.min(500 * 2 ** tries, 10_000))),
    shouldRetry: () => operator.value !== undefined,
    keepAlive: 10_000,
    on: {
      opened: (opened) => {
        socket = opened as WebSocket;
      },
      ping: (isReceived) => {
        if (!isReceived) silence = setTimeout(() => socket?.close(4408, 'No answer'), ANSWER_MS);
      },
      pong: () => clearTimeout(silence),
      // Something may have changed while the connection was lost.
      connected: () => {
        connection.value = 'live';
        noteChange();
      },
      closed: () => {
        connection.value = 'lost';
      },
    },
  });
  let isOver = false;
  /** Subscribes until the login ends. The service ends a subscription whose changes it may have lost. */
  const follow = async (query: string) => {
    while (!isOver) {
      await new Promise<void>((resolve) =>
        client.subscribe(
          { query: `subscription { ${query} }` },
          { next: noteChange, error: resolve, complete: resolve },
        ),
      );
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      noteChange();
    }
  };
  for (const query of SUBSCRIPTIONS) void follow(query);
  stop = () => {
    isOver = true;
    client.dispose();
  };
}

let isNoted = false;
/** Pages read again once a second at most, however much changes. */
function noteChange(): void {
  if (isNoted) return;
  isNoted = true;
  setTimeout(() => {
    isNoted = false;
    changes.value++;
  }, 1_000);
}
