import { Command } from 'commander';
import { renderUnicodeCompact } from 'uqr';
import type { Input, TopUp } from '../../../client/src/index.ts';
import { Unsettled } from '../failure.ts';
import { ago, type Columns, moment, print, printRows, usd } from '../output.ts';
import { Progress } from '../progress.ts';
import { type Session, sessionOf } from '../session.ts';
import { say, write } from '../terminal.ts';

const COLUMNS: Columns<TopUp> = {
  id: (one) => one.order_number,
  status: (one) => one.status,
  amount: (one) => usd(one.amount_usd),
  coin: (one) => one.crypto,
  to_pay: (one) => one.amount_crypto,
  received: (one) => one.received_crypto,
  credited: (one) => usd(one.credited_usd),
  age: (one) => ago(one.created_at),
};

export const topup = () =>
  new Command('topup')
    .description('Pay money into the balance')
    .addCommand(create())
    .addCommand(watch())
    .addCommand(list())
    .addCommand(one('get', 'Show a top-up', ({ freehold }, id) => freehold.topUps.get(id)))
    .addCommand(one('cancel', 'Cancel an unpaid top-up', ({ freehold, call }, id) => freehold.topUps.cancel(id, call)))
    .addCommand(one('receipt', 'Show the receipt of a paid top-up', ({ freehold }, id) => freehold.topUps.receipt(id)));

const create = () =>
  new Command('create')
    .description('Open a top-up, show its address and QR code, and wait for the payment')
    .argument('<usd>', 'US dollars', Number)
    .requiredOption('--coin <code>', 'see: freehold catalog coins')
    .option('--no-wait', 'do not wait for the payment')
    .addHelpText('after', '\nExample:\n  freehold topup create 50 --coin BTC')
    .action(async (amount: number, { coin, wait }: { coin: string; wait: boolean }, command: Command) => {
      const session = sessionOf(command);
      const opened = await session.freehold.topUps.create({ amount_usd: amount, crypto: coin }, session.call);
      if (session.format === 'table') showPayment(opened);
      const ended = wait ? await confirmed(session, opened) : opened;
      if (session.format !== 'table') print(ended, session.format);
    });

const watch = () =>
  new Command('watch')
    .description('Wait for the payment of a top-up')
    .argument('<id>')
    .addHelpText('after', '\nExample:\n  freehold topup watch TOP-7K2M9X4QHT')
    .action(async (id: string, _options, command: Command) => {
      const session = sessionOf(command);
      const ended = await confirmed(session, await session.freehold.topUps.get(id));
      if (session.format !== 'table') print(ended, session.format);
    });

const list = () =>
  new Command('list')
    .alias('ls')
    .description('List the top-ups, newest first')
    .option('--status <status>', 'only those with this status')
    .action(async ({ status }: { status?: Input<'ListTopups'>['status'] }, command: Command) => {
      const { freehold, format } = sessionOf(command);
      const topUps = await freehold.topUps.list(status ? { status } : {}).all();
      if (!topUps.length && format === 'table')
        say('There are no top-ups. Open one: freehold topup create 50 --coin BTC');
      else printRows(topUps, COLUMNS, format);
    });

const one = (name: string, description: string, read: (session: Session, id: string) => Promise<unknown>) =>
  new Command(name)
    .description(description)
    .argument('<id>')
    .action(async (id: string, _options, command: Command) => {
      const session = sessionOf(command);
      print(await read(session, id), session.format);
    });

function showPayment(topUp: TopUp): void {
  const lines = [
    `Top-up    ${topUp.order_number}`,
    `Pay       ${topUp.amount_crypto} ${topUp.crypto} on ${topUp.network}, for ${usd(topUp.amount_usd)}`,
    `To        ${topUp.wallet_address}`,
  ];
  if (topUp.expires_at) lines.push(`Until     ${moment(topUp.expires_at)}`);
  if (topUp.bonus_usd) lines.push(`Bonus     ${usd(topUp.bonus_usd)}`);
  if (topUp.payment_uri) lines.push(`URI       ${topUp.payment_uri}`, '');
  write(lines.join('\n'));
  // The colours of the code are escapes of our own.
  if (topUp.payment_uri) console.log(codeOf(topUp.payment_uri));
}

/** A QR code. It is white and black on a terminal of any colours, because many cameras read no inverted one. */
function codeOf(text: string): string {
  const code = renderUnicodeCompact(text, { border: 2 });
  if (!process.stdout.isTTY || process.env.NO_COLOR) return code;
  return code.replace(/^.*$/gm, (line) => `\x1b[97;40m${line}\x1b[0m`);
}

/** Shows the payment as it arrives. After an interruption, `topup watch` goes on. @throws Unsettled if it never comes */
async function confirmed({ freehold }: Session, topUp: TopUp): Promise<TopUp> {
  const { order_number: id } = topUp;
  const progress = new Progress(sayOf(topUp));
  const hint = () => {
    progress.end(`The top-up stays open. To wait again: freehold topup watch ${id}`);
    process.exit(130);
  };
  process.once('SIGINT', hint);
  const ended = await freehold.topUps.settled(id, { onChange: (now) => progress.say(sayOf(now)) });
  process.removeListener('SIGINT', hint);
  progress.end(ended.status === 'confirmed' ? `Credited ${usd(ended.credited_usd)}` : `The top-up is ${ended.status}`);
  if (ended.status !== 'confirmed')
    throw new Unsettled(`The top-up ${id} is ${ended.status}. Late payments are credited, too.`);
  return ended;
}

function sayOf({
  status,
  received_crypto: received,
  crypto,
  confirmations,
  confirmations_required: needed,
}: TopUp): string {
  if (status === 'pending' && !Number(received)) return 'Waiting for the payment';
  return `Received ${received} ${crypto}, ${confirmations} of ${needed} confirmations`;
}
