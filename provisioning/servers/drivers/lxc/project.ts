/**
 * The project of the machines. A restricted certificate in a restricted project cannot become root of the host. Over a
 * socket the driver creates the project. Over HTTPS it checks project and certificate, and refuses weaker ones.
 */
import { DriverError } from '../driver.ts';
import type { Engine, LxcClient } from './client.ts';
import { type Instance, MARK } from './instance.ts';
import { ISOLATED, type Network, networkOf } from './network.ts';

/** The set-up lets our certificate endanger the host. The driver touches no machine until the operator has mended it. */
export class UnsafeEngine extends DriverError {
  constructor(faults: readonly string[]) {
    super('unreachable', faults.join(' '));
  }
}

/** Restrictions that the operator may lift. No value of these gives access to the host. */
const LIFTABLE =
  /^restricted\.(snapshots|backups|cluster\.|networks\.|images\.|storage-pools\.|containers\.nesting$|devices\.nic$)/;
/** The other restrictions may have these values. Every value that is missing here is a fault. */
const STRICT = new Set(['block', 'managed', 'unprivileged', 'isolated']);

/**
 * Creates the project if we may, and checks it.
 * @param networkName the network of the machines
 * @returns the network, the name of the network that the operator vouches for, and warnings for the operator
 * @throws UnsafeEngine
 */
export async function openProject(
  engine: Engine,
  networkName: string,
  signal: AbortSignal,
): Promise<{ network: Network; vouched: string | undefined; warnings: string[] }> {
  const { client, command } = engine;
  const { project, fingerprint } = client;
  if (fingerprint) refuse(await certificateFaults(engine, fingerprint, signal));
  const found = await client.find<{ config: Config }>(`/1.0/projects/${encodeURIComponent(project)}`, signal);
  if (!found) await create(engine, networkName, signal);
  const network = await networkOf(client, networkName, signal);
  // The user of a socket is root on the host in every project.
  if (fingerprint) refuse(faultsOf(engine, found?.config ?? {}));
  const vouched = found?.config[ISOLATED];
  const isLoose = fingerprint && network.managed && found?.config['restricted.devices.nic'] === 'allow';
  const shut = `Run: ${command} project set ${project} restricted.devices.nic=managed`;
  const loose = `The certificate of the service can take every interface of the host. ${shut}`;
  return { network, vouched, warnings: isLoose ? [loose] : [] };
}

type Config = Record<string, string>;

function refuse(faults: readonly string[]): void {
  if (faults.length) throw new UnsafeEngine(faults);
}

async function create({ client, command }: Engine, networkName: string, signal: AbortSignal): Promise<void> {
  const { project, fingerprint } = client;
  if (fingerprint) refuse([`The engine has no project ${project}. Run: ${command} project create ${project}`]);
  await refuseMove(client, signal);
  const config = restricted(await networkOf(client, networkName, signal, 'default'));
  await client.call('POST', '/1.0/projects', { name: project, config }, signal, 'default');
}

/** The project of a new installation. It shares the images of the default project. */
const restricted = ({ managed }: Network): Config => ({
  'features.images': 'false',
  'features.profiles': 'true',
  restricted: 'true',
  // The driver names the bridge of a host directly, which only `allow` permits.
  'restricted.devices.nic': managed ? 'managed' : 'allow',
  'restricted.containers.nesting': 'allow',
  'restricted.cluster.target': 'allow',
});

/** In a new project the driver would find no earlier machine, and take all of them for lost. */
async function refuseMove(client: LxcClient, signal: AbortSignal): Promise<void> {
  for (const { name } of await client.get<{ name: string }[]>('/1.0/projects?recursion=1', signal, 'default')) {
    const earlier = await client.get<Instance[]>('/1.0/instances?recursion=1', signal, name);
    if (earlier.some(({ config }) => config?.[MARK.order]))
      throw new UnsafeEngine([`The project ${name} has machines of the service. Set LXC_PROJECT=${name}.`]);
  }
}

function faultsOf({ client, command, clustered }: Engine, config: Config): string[] {
  const set = (key: string, value: string) => `Run: ${command} project set ${client.project} ${key}=${value}`;
  const faults: string[] = [];
  if (config.restricted !== 'true')
    faults.push(`The project ${client.project} lets its users become root of the host. ${set('restricted', 'true')}`);
  if (config['features.profiles'] !== 'true')
    faults.push(
      `The project ${client.project} shares its profiles with other projects. ${set('features.profiles', 'true')}`,
    );
  if (clustered && config['restricted.cluster.target'] !== 'allow')
    faults.push(`The driver cannot choose the member for a machine. ${set('restricted.cluster.target', 'allow')}`);
  for (const [key, value] of Object.entries(config))
    if (key.startsWith('restricted.') && !LIFTABLE.test(key) && !STRICT.has(value))
      faults.push(`The project ${client.project} lifts ${key}. Run: ${command} project unset ${client.project} ${key}`);
  return faults;
}

/** Reads our certificate as the engine knows it. It may not know one that an authority signed, and then restricts nothing. */
async function certificateFaults(
  { client, command }: Engine,
  fingerprint: string,
  signal: AbortSignal,
): Promise<string[]> {
  const { project } = client;
  const path = `/1.0/certificates/${fingerprint}`;
  const found = await client.find<{ restricted: boolean; projects: string[] | null }>(path, signal);
  if (found?.restricted && found.projects?.length === 1 && found.projects[0] === project) return [];
  const add = command === 'incus' ? 'add-certificate' : 'add';
  return [
    `The certificate of the service is not restricted to the project ${project}.`,
    `Run: ${command} config trust remove ${fingerprint.slice(0, 12)}`,
    `Then run: ${command} config trust ${add} client.crt --restricted --projects ${project}`,
  ];
}
