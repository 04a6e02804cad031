import { Command } from 'commander';
import { type Columns, moment, print, printRows, usd } from '../output.ts';
import { type Session, sessionOf } from '../session.ts';
import { write } from '../terminal.ts';

/** A command that shows one thing. */
const shows = (name: string, description: string, read: (session: Session) => Promise<unknown>) =>
  new Command(name).description(description).action(async (_options, command: Command) => {
    const session = sessionOf(command);
    print(await read(session), session.format);
  });

export const account = () => shows('account', 'Show the account', ({ freehold }) => freehold.account.get());
export const balance = () => shows('balance', 'Show the balance', ({ freehold }) => freehold.account.balance());
export const status = () =>
  new Command('status').description('Show whether the service works').action(async (_options, command: Command) => {
    const { freehold, format } = sessionOf(command);
    const now = await freehold.transparency.status();
    if (format !== 'table') return print(now, format);
    write(`${now.description}\n`);
    printRows(
      now.components,
      { component: ({ name }) => name, region: ({ region }) => region, status: (one) => one.status },
      format,
    );
    for (const { name, status: state, started_at } of [...now.incidents, ...now.scheduled_maintenances])
      write(`\n${name}: ${state}, since ${moment(started_at)}`);
  });
export const canary = () =>
  shows('canary', 'Show the warrant canary', ({ freehold }) => freehold.transparency.canary());

const USAGE: Columns<{
  kind: string;
  description: string;
  from: string;
  order_number: string | null;
  amount_usd: number;
}> = {
  time: (one) => one.from,
  kind: (one) => one.kind,
  amount: (one) => usd(one.amount_usd),
  order: (one) => one.order_number,
  description: (one) => one.description,
};
export const usage = () =>
  new Command('usage')
    .description('List the bookings of this month, or of a period')
    .option('--from <time>', 'a date, such as 2026-11-01')
    .option('--to <time>', 'a date')
    .addHelpText('after', '\nExample:\n  freehold usage --from 2026-11-01 --output json')
    .action(async (period: { from?: string; to?: string }, command: Command) => {
      const { freehold, format } = sessionOf(command);
      printRows(await freehold.account.usage(period).all(), USAGE, format);
    });

const CATALOG = {
  types: 'the VPS and dedicated tiers, with their prices',
  locations: 'the regions',
  images: 'the systems',
  coins: 'the coins that a top-up accepts',
};
export const catalog = () => {
  const command = new Command('catalog').description('Show what is on offer');
  for (const [name, description] of Object.entries(CATALOG))
    command.addCommand(
      new Command(name)
        .description(`List ${description}`)
        .action(async (_options, own: Command) => offer(name, sessionOf(own))),
    );
  return command.addHelpText('after', '\nExample:\n  freehold catalog types');
};

async function offer(name: string, { freehold, format }: Session): Promise<void> {
  if (name === 'coins')
    return printRows(
      await freehold.catalog.coins().all(),
      {
        code: (one) => one.code,
        name: (one) => one.name,
        network: (one) => one.network,
        least: (one) => usd(one.min_usd),
        rate: (one) => usd(one.rate_usd),
        available: (one) => one.available,
      },
      format,
    );
  const { vps, dedicated, bastions, images } = await freehold.catalog.get();
  if (name === 'locations')
    return printRows(
      bastions,
      { code: (one) => one.code, city: (one) => one.city, country: (one) => one.country, name: (one) => one.name },
      format,
    );
  if (name === 'images')
    return printRows(
      images,
      {
        code: (one) => one.code,
        name: (one) => one.name,
        arch: (one) => one.architecture,
        user: (one) => one.default_user,
      },
      format,
    );
  const cores = (one: { vcpus?: number; cores?: number }) => one.vcpus ?? one.cores;
  const regions = (all: { code: string; stock: string }[]) =>
    all.filter(({ stock }) => stock !== 'none').map(({ code }) => code);
  printRows(
    [...vps, ...dedicated],
    {
      code: (one) => one.code,
      cores,
      memory: (one) => `${one.memory_mb / 1024} GB`,
      disk: (one) =>
        'disk_gb' in one ? `${one.disk_gb} GB` : one.disks.map((disk) => `${disk.count}×${disk.size_gb} GB`),
      price: (one) => `${usd(one.price_month_usd)}/mo`,
      in_stock: (one) => regions(one.regions),
    },
    format,
  );
}
