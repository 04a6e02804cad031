/** A page in a real browser (Debian's chromium), watched over the DevTools protocol. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { WebSocket } from 'ws';
import { newFolder } from './spawn.ts';

export const hasChromium = (() => {
  try {
    execFileSync('chromium', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

export interface Visit {
  /** The text of the page after the wait. */
  text: string;
  /** Errors of the console, exceptions, and failed requests. */
  errors: string[];
  /** The URLs of all requests. */
  requests: string[];
}

interface Message {
  id?: number;
  method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: the protocol has hundreds of messages
  params?: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  result?: any;
}

/** Opens a page and waits until its text contains the expected one. @throws Error without it */
export async function visit(url: string, until: string): Promise<Visit> {
  const profile = newFolder();
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--remote-debugging-port=0'];
  const browser = spawn('chromium', [...flags, `--user-data-dir=${profile}`, 'about:blank'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  try {
    return await watch(await addressOf(browser.stderr), url, until);
  } finally {
    browser.kill('SIGTERM');
    if (browser.exitCode === null && browser.signalCode === null) await once(browser, 'exit');
    await rm(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

async function addressOf(stderr: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: stderr })) {
    const address = /DevTools listening on (ws:\S+)/.exec(line)?.[1];
    if (address) return address;
  }
  throw new Error('Chromium did not start.');
}

async function watch(address: string, url: string, until: string): Promise<Visit> {
  const socket = new WebSocket(address);
  await once(socket, 'open');
  const errors: string[] = [];
  const requests: string[] = [];
  const waiting = new Map<number, (message: Message) => void>();
  socket.on('message', (data) => {
    const message: Message = JSON.parse(String(data));
    if (message.id !== undefined) waiting.get(message.id)?.(message);
    const { method, params } = message;
    if (method === 'Network.requestWillBeSent') requests.push(params.request.url);
    if (method === 'Network.loadingFailed') errors.push(`${params.errorText} ${params.blockedReason ?? ''}`);
    if (method === 'Runtime.exceptionThrown') errors.push(JSON.stringify(params.exceptionDetails));
    if (method === 'Runtime.consoleAPICalled' && params.type === 'error') errors.push(JSON.stringify(params.args));
    if (method === 'Log.entryAdded' && params.entry.level === 'error') errors.push(params.entry.text);
  });
  let counter = 0;
  const call = (method: string, params: object = {}, sessionId?: string) => {
    const id = ++counter;
    socket.send(JSON.stringify({ id, method, params, sessionId }));
    return new Promise<Message>((resolve) => waiting.set(id, resolve));
  };
  const { targetId } = (await call('Target.createTarget', { url: 'about:blank' })).result;
  const { sessionId } = (await call('Target.attachToTarget', { targetId, flatten: true })).result;
  for (const domain of ['Network', 'Runtime', 'Log', 'Page']) await call(`${domain}.enable`, {}, sessionId);
  await call('Page.navigate', { url }, sessionId);
  for (const end = Date.now() + 240_000; ; await new Promise((resume) => setTimeout(resume, 100))) {
    const { result } = await call('Runtime.evaluate', { expression: 'document.body?.innerText' }, sessionId);
    const text = String(result?.result?.value ?? '');
    if (text.includes(until)) {
      socket.close();
      return { text, errors, requests };
    }
    if (Date.now() > end) throw new Error(`${url} never had ${until}: ${text.slice(0, 500)} ${errors.join('\n')}`);
  }
}
