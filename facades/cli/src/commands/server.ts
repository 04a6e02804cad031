import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import type { Input, Server } from '../../../client/src/index.ts';
import { Unsettled } from '../failure.ts';
import { ago, type Columns, print, printRows, usd } from '../output.ts';
import { Progress } from '../progress.ts';
import { confirmByName } from '../questions.ts';
import { findServer, type Session, sessionOf } from '../session.ts';
import { say, write } from '../terminal.ts';

const COLUMNS: Columns<Server> = {
  id: (one) => one.order_number,
  name: (one) => one.hostname,
  status: (one) => one.status,
  ipv4: (one) => one.ipv4,
  type: (one) => one.service_code,
  location: (one) => one.region,
  age: (one) => ago(one.created_at),
  price: (one) => `${usd(one.price_month_usd)}/mo`,
  image: (one) => one.os,
};
interface CreateOptions {
  type: string;
  image?: string;
  location?: string;
  name?: string;
  sshKey?: string[];
  label?: string[];
  userData?: string;
  maxPrice?: number;
  renew: boolean;
  wait: boolean;
  dryRun?: boolean;
}
const collect = (value: string, all: string[] = []) => [...all, value];

export const server = () =>
  new Command('server')
    .description('Order and manage servers')
    .addCommand(create())
    .addCommand(list())
    .addCommand(get())
    .addCommand(power('start', 'running', 'Start a server', { power_state: 'on' }))
    .addCommand(power('stop', 'stopped', 'Shut a server down', { power_state: 'off' }))
    .addCommand(power('reboot', 'running', 'Reboot a server', { action: 'reboot' }))
    .addCommand(power('reset', 'running', 'Turn a server off and on at once', { action: 'reset' }))
    .addCommand(resize())
    .addCommand(rebuild())
    .addCommand(remove());

const create = () =>
  new Command('create')
    .description('Order a server. Its first month is paid from the balance')
    .requiredOption('--type <code>', 'the tier, see: freehold catalog types')
    .option('--image <code>', 'the system, see: freehold catalog images (default: debian-13)')
    .option('--location <code>', 'see: freehold catalog locations (default: the first with stock)')
    .option('--name <hostname>', 'the hostname (default: a random one)')
    .option('--ssh-key <id>', 'a key to install, repeatable (default: all keys of the account)', collect)
    .option('--label <key=value>', 'your own label, repeatable', collect)
    .option('--user-data <file>', 'a file with cloud-init user data')
    .option('--max-price <usd>', 'order only if the total is not higher', Number)
    .option('--no-renew', 'let the server end after its month')
    .option('--no-wait', 'do not wait until the server runs')
    .option('--dry-run', 'show the price, and order nothing')
    .addHelpText('after', '\nExample:\n  freehold server create --type vps-1 --name web --max-price 10')
    .action(async (options: CreateOptions, command: Command) => {
      const session = sessionOf(command);
      const order = orderOf(options);
      if (options.dryRun) return print(await session.freehold.servers.quote(order), session.format);
      const ordered = await session.freehold.servers.order(order, session.call);
      const { order_number: number, root_password: password } = ordered;
      say(`Ordered ${number}, for ${usd(ordered.charged_usd)}.`);
      const { ready: _, ...shown } = ordered;
      const result = options.wait ? { ...shown, ...(await settled(session, ordered, 'running')) } : shown;
      if (session.format !== 'table') return print(result, session.format);
      printRows([result], COLUMNS, session.format);
      // The service shows it once.
      if (password) write(`\nThe root password: ${password}`);
      if (result.ipv4) say(`\nConnect with: freehold ssh ${result.hostname}`);
    });

function orderOf(options: CreateOptions): Omit<Input<'OrderServer'>, 'dry_run'> {
  return {
    service_code: options.type,
    ...(options.image && { os: options.image }),
    ...(options.location && { region: options.location }),
    ...(options.name && { hostname: options.name }),
    ...(options.sshKey && { ssh_key_ids: options.sshKey }),
    ...(options.label && { labels: labelsOf(options.label) }),
    ...(options.userData && { user_data: readFileSync(options.userData, 'utf8') }),
    ...(options.maxPrice !== undefined && { max_price_usd: options.maxPrice }),
    ...(!options.renew && { auto_renew: false }),
  };
}

const labelsOf = (pairs: string[]): Record<string, string> =>
  Object.fromEntries(pairs.map((pair) => [pair.split('=')[0]!, pair.split('=').slice(1).join('=')]));

const list = () =>
  new Command('list')
    .alias('ls')
    .description('List the servers, newest first')
    .option('--status <status...>', 'only those with one of these statuses')
    .option('--location <code>', 'only those in a location')
    .option('-l, --selector <selector>', 'only those with labels, such as env=prod')
    .addHelpText('after', '\nExample:\n  freehold server list --status running --selector env=prod')
    .action(async (options: { status?: string[]; location?: string; selector?: string }, command: Command) => {
      const { freehold, format } = sessionOf(command);
      const servers = await freehold.servers
        .list({
          ...(options.status && { status: options.status as Input<'ListServers'>['status'] & string[] }),
          ...(options.location && { region: [options.location] }),
          ...(options.selector && { label_selector: options.selector }),
        })
        .all();
      if (!servers.length && format === 'table')
        say('There are no servers. Order one: freehold server create --type vps-1');
      else printRows(servers, COLUMNS, format);
    });

const get = () =>
  new Command('get')
    .alias('show')
    .alias('describe')
    .description('Show a server')
    .argument('<server>', 'its order number or hostname')
    .action(async (given: string, _options, command: Command) => {
      const session = sessionOf(command);
      print(await findServer(session, given), session.format);
    });

const changing = (name: string, description: string) =>
  new Command(name)
    .description(description)
    .argument('<server>', 'its order number or hostname')
    .option('--no-wait', 'do not wait until it is done');

const power = (
  name: string,
  status: 'running' | 'stopped',
  description: string,
  change: { power_state: 'on' | 'off' } | { action: 'reboot' | 'reset' },
) =>
  changing(name, description)
    .addHelpText('after', `\nExample:\n  freehold server ${name} web`)
    .action((given: string, { wait }: { wait: boolean }, command: Command) =>
      changed(command, given, change, wait && status),
    );

const resize = () =>
  changing('resize', 'Give a stopped server another tier')
    .requiredOption('--type <code>', 'the new tier')
    .addHelpText(
      'after',
      '\nExample:\n  freehold server stop web && freehold server resize web --type vps-2 && freehold server start web',
    )
    .action((given: string, { wait, type }: { wait: boolean; type: string }, command: Command) =>
      changed(command, given, { service_code: type }, wait && 'stopped'),
    );

const rebuild = () =>
  changing('rebuild', 'Delete all data of a server, and install a system')
    .option('--image <code>', 'the system (default: the present one)')
    .option('--force', 'do not ask')
    .addHelpText('after', '\nExample:\n  freehold server rebuild web --image debian-13')
    .action(
      async (
        given: string,
        { wait, image, force }: { wait: boolean; image?: string; force?: boolean },
        command: Command,
      ) => {
        const { hostname } = await findServer(sessionOf(command), given);
        if (!force) await confirmByName(hostname, `This deletes all data of ${hostname}.`);
        await changed(command, given, { action: 'rebuild', ...(image && { os: image }) }, wait && 'running');
      },
    );

const remove = () =>
  new Command('delete')
    .alias('rm')
    .description('Delete a server and its data. Unused hours go back to the balance')
    .argument('<server>', 'its order number or hostname')
    .option('--force', 'do not ask')
    .addHelpText('after', '\nExample:\n  freehold server delete web')
    .action(async (given: string, { force }: { force?: boolean }, command: Command) => {
      const session = sessionOf(command);
      const { order_number: number, hostname } = await findServer(session, given);
      if (!force)
        await confirmByName(hostname, `This deletes ${hostname} (${number}) and all its data. It cannot be undone.`);
      const deleted = await session.freehold.servers.delete(number, session.call);
      if (session.format === 'table')
        write(`Deleted ${hostname} (${number}). ${usd(deleted.refunded_usd)} went back to the balance.`);
      else print(deleted, session.format);
    });

async function changed(
  command: Command,
  given: string,
  change: object,
  status: 'running' | 'stopped' | false,
): Promise<void> {
  const session = sessionOf(command);
  const { order_number: number } = await findServer(session, given);
  const updated = await session.freehold.servers.update(number, change, session.call);
  const { root_password: password } = updated as { root_password?: string | null };
  const result = status ? await settled(session, updated, status) : updated;
  if (session.format === 'table') printRows([result], COLUMNS, session.format);
  else print({ ...updated, ...result }, session.format);
  if (password && session.format === 'table') write(`\nThe root password: ${password}`);
}

/** Waits for a server, and shows its status. @throws Unsettled if it fails, or has another status in the end */
async function settled(
  { freehold }: Session,
  { order_number: number, hostname }: Pick<Server, 'order_number' | 'hostname'>,
  status: 'running' | 'stopped',
): Promise<Server> {
  const progress = new Progress(`Waiting for ${hostname}`);
  const server = await freehold.servers.settled(number, status, {
    onChange: (now) => now.status !== status && progress.say(`${hostname} is ${now.status}`),
  });
  progress.end(`${hostname} is ${server.status}`);
  if (server.failure) throw new Unsettled(`${hostname}: ${server.failure.message}`);
  if (server.status !== status) throw new Unsettled(`${hostname} is ${server.status}, not ${status}.`);
  return server;
}
