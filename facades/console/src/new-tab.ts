/**
 * Gives the login of a tab to a tab that the operator opens from one of its links. Nothing is stored. A channel reaches pages of
 * this origin alone. An offer is for one tab, and ends some seconds after the click.
 */
interface Message {
  /** The channel on which a new tab waits. Absent: the operator has touched a tab. */
  answerTo?: string;
}

const tabs = new BroadcastChannel('freehold-tabs');
/** The time in which another tab answers, and the time of an offer. */
const [ANSWER_MS, OFFER_MS] = [400, 20_000];
const TOUCH_MS = 30_000;

/** Asks the tab whose link opened this one. @returns its token, or undefined without such a tab */
export function askForLogin(): Promise<string | undefined> {
  const name = `freehold-tab-${crypto.getRandomValues(new BigUint64Array(2)).join('-')}`;
  const own = new BroadcastChannel(name);
  return new Promise<string | undefined>((resolve) => {
    own.onmessage = ({ data }) => resolve(String(data));
    setTimeout(() => resolve(undefined), ANSWER_MS);
    tabs.postMessage({ answerTo: name } satisfies Message);
  }).finally(() => own.close());
}

let offeredUntil = 0;
/** The operator may open a link in a new tab by a key, the middle button or the menu. */
function noteOffer(event: MouseEvent): void {
  const isLink = event.target instanceof Element && event.target.closest('a[href^="#"]');
  const isAside = event.type !== 'click' || event.ctrlKey || event.metaKey || event.shiftKey;
  if (isLink && isAside) offeredUntil = Date.now() + OFFER_MS;
}

/**
 * Answers new tabs with the login of this one.
 * @param tokenOf the token of this tab; empty without a login
 * @param onTouch hears that the operator works in another tab
 */
export function offerLogin(tokenOf: () => string, onTouch: () => void): void {
  for (const type of ['click', 'auxclick', 'contextmenu'] as const) addEventListener(type, noteOffer, true);
  tabs.onmessage = ({ data: { answerTo } }: MessageEvent<Message>) => {
    if (!answerTo) return onTouch();
    if (!tokenOf() || Date.now() > offeredUntil) return;
    offeredUntil = 0;
    const asking = new BroadcastChannel(answerTo);
    asking.postMessage(tokenOf());
    asking.close();
  };
}

let toldAt = 0;
/** Tells the other tabs that the operator works in this one. They share the session, so none ends it as idle. */
export function tellTouch(): void {
  if (Date.now() < toldAt + TOUCH_MS) return;
  toldAt = Date.now();
  tabs.postMessage({} satisfies Message);
}
