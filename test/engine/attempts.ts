/** Attempts of a tenant with root. Each says how it ended: `refused …`, `limited …`, or `succeeded …`. */
import { spawnSync } from 'node:child_process';
import type { MachineSpec } from '../../provisioning/servers/drivers/driver.ts';
import { nameOf } from '../../provisioning/servers/drivers/lxc/instance.ts';

type Run = (script: string) => Promise<string>;

export interface Attempt {
  name: string;
  attempt(): Promise<string>;
}

export interface Tenants {
  mine: MachineSpec;
  other: MachineSpec;
  /** Runs a script as root of the own machine, and of the other. */
  run: Run;
  runOther: Run;
  /** The addresses of the host. The first is the gateway. */
  host: readonly [string, ...string[]];
  /** A host behind the router. It answers on the ports 25 and 80, sends 24 MB on 81, and reads all on 82. */
  world: string;
  portMbps: number;
}

const IN = 'they-are-in';

/** Ways to the other, to the host, and to mail servers. */
export function ways({ mine, other, run, host, world }: Tenants): Attempt[] {
  const [gateway] = host;
  const there = other.network.ipv4!.address;
  const refused = (name: string, script: string): Attempt => ({
    name,
    attempt: async () => ((await run(`(${script}) && echo ${IN}`)).includes(IN) ? 'succeeded' : 'refused'),
  });
  const connect = (address: string, port: number) => `nc -w 2 ${address} ${port} </dev/null`;
  const routed = (script: string) =>
    `ip route add ${there}/32 via ${gateway}; ${script}; code=$?; ip route del ${there}/32 via ${gateway}; exit $code`;
  return [
    refused('reach the other by TCP', connect(there, 22)),
    refused('reach the other by ping', `ping -c 1 -W 1 ${there}`),
    refused('reach the other through the router', routed(connect(there, 22))),
    refused('ping the other through the router', routed(`ping -c 1 -W 1 ${there}`)),
    refused('reach the other by IPv6', connect(other.network.ipv6!.address, 22)),
    {
      name: 'be reached at an IPv6 address that the books do not know',
      attempt: async () => {
        for (const address of (await addressesOf(run)).filter((one) => one !== mine.network.ipv6!.address))
          if (spawnSync('nc', ['-z', '-w', '2', address, '22']).status === 0) return `succeeded at ${address}`;
        return 'refused';
      },
    },
    refused('reach the other by its link-local address', `ping6 -c 1 -W 1 ${linkLocal(other.network.mac)}%eth0`),
    ...host.flatMap((address) => [
      refused(`reach the API of the engine at ${address}`, connect(address, 8443)),
      refused(`reach a service of the host at ${address}`, connect(address, 9100)),
    ]),
    refused('reach the API of the engine by a link-local address', connect('fe80::1%eth0', 8443)),
    ...['255.255.255.255', '224.0.0.1', 'ff02::1', gateway].map(
      (address): Attempt => ({
        name: `ask a UDP service of the host at ${address}`,
        attempt: async () => ((await run(askUdp(address, 9100))).includes('host') ? 'succeeded' : 'refused'),
      }),
    ),
    refused('send mail to port 25', connect(world, 25)),
    refused('ask the usual address for metadata', connect('169.254.169.254', 80)),
    ...['', `instances/${nameOf(other)}`, 'config/cloud-init.user-data', `config/../instances/${nameOf(other)}`].map(
      (path): Attempt => ({
        name: `read the metadata of the other at /1.0/${path}`,
        attempt: async () => {
          const answer = await run(`perl -e '${ASK.replace('PATH', `/1.0/${path}`)}'`);
          if (!answer.startsWith('HTTP/1.')) return `no answer: ${answer}`;
          return answer.includes(other.userData!) || answer.includes(other.order) ? 'succeeded' : 'refused';
        },
      }),
    ),
    {
      name: 'see the files of the other',
      attempt: async () =>
        (await run('ls /proc/*/root/root 2>/dev/null | grep -c trace')).startsWith('0')
          ? 'refused'
          : `succeeded ${mine.order}`,
    },
  ];
}

/** The global IPv6 addresses of a machine. */
const addressesOf = async (run: Run) =>
  [...(await run('ip -6 addr show dev eth0 scope global')).matchAll(/inet6 ([^/]+)/g)].map(([, address]) => address!);

/** Asks the socket of the engine in the machine. */
const ASK =
  '$p=(grep {-S} "/dev/lxd/sock","/dev/incus/sock")[0]; socket(S,1,1,0); connect(S,pack("Sa108",1,$p)) or die $!; syswrite(S,"GET PATH HTTP/1.0\\r\\nHost: lxd\\r\\n\\r\\n"); print <S>;';

/** Sends a datagram to a host, or to all of them, and prints an answer. The perl of the image has no modules. */
const askUdp = (address: string, port: number) => {
  const ofV6 = address.includes(':');
  // All nodes of a link, as the only address of IPv6 here: ff02::1.
  const to = ofV6
    ? `pack("SnNH32L", 10, ${port}, 0, "ff02".("0" x 27)."1", \`cat /sys/class/net/eth0/ifindex\`)`
    : `pack("SnC4x8", 2, ${port}, ${address.split('.').join()})`;
  return `perl -e 'socket(S, ${ofV6 ? 10 : 2}, 2, 17); setsockopt(S, 1, 6, 1); setsockopt(S, 1, 20, pack("qq", 2, 0)); send(S, "ask", 0, ${to}) or die $!; recv(S, $answer, 99, 0); print $answer'`;
};

/** False addresses and false routers. */
export function forgeries({ other, run, runOther, host }: Tenants): Attempt[] {
  const [gateway] = host;
  const { ipv4, mac } = other.network;
  const heard = (script: string) => async () => ((await run(script)).includes(IN) ? 'succeeded' : 'refused');
  const ping = `ping -c 1 -W 1 ${gateway} >/dev/null && echo ${IN}`;
  const asMac = (address: string) =>
    `ip link set eth0 down; ip link set eth0 address ${address}; ip link set eth0 up; ip route add default via ${gateway} 2>/dev/null`;
  const own = 'mac=$(cat /sys/class/net/eth0/address)';
  return [
    {
      name: 'send from the address of the other',
      attempt: heard(
        `ip addr add ${ipv4!.address}/24 dev eth0; ping -c 1 -W 1 -I ${ipv4!.address} ${gateway} >/dev/null && echo ${IN}; ip addr del ${ipv4!.address}/24 dev eth0`,
      ),
    },
    { name: 'send from the MAC of the other', attempt: heard(`${own}; ${asMac(mac)}; ${ping}; ${asMac('$mac')}`) },
    {
      name: 'answer ARP for the gateway',
      attempt: async () => {
        await run(`arping -U -c 2 -w 2 -s ${gateway} -I eth0 ${gateway}; ${ping}`);
        const known = await runOther(`ping -c 1 -W 1 ${gateway} >/dev/null; ip neigh show ${gateway}`);
        return known.includes((await run('cat /sys/class/net/eth0/address')).trim()) ? 'succeeded' : 'refused';
      },
    },
    {
      name: 'be the router of the other by an advertisement',
      attempt: async () => {
        // The kernel has no link-local address for a second after the network card was down.
        const sent = await run(`for i in 1 2 3 4 5 6; do perl -e '${ADVERTISE}' && break; sleep 1; done`);
        if (!sent.includes('sent')) return `not sent: ${sent}`;
        await new Promise((resolve) => setTimeout(resolve, 1500));
        const seen = await runOther('ip -6 addr show dev eth0; ip -6 route');
        return /2001:db8:bad/.test(seen) ? 'succeeded' : 'refused';
      },
    },
  ];
}

/** A router advertisement to all nodes: a router for 30 minutes, with the prefix 2001:db8:bad::/64. */
const ADVERTISE =
  'socket(S,10,3,58) or die $!; setsockopt(S,41,18,pack("i",255)); $i=`cat /sys/class/net/eth0/ifindex`; ' +
  '$ra=pack("CCnCCnNN",134,0,0,64,0,1800,0,0).pack("CCCCNNN",3,4,64,0xc0,86400,14400,0).pack("H32","20010db80bad00000000000000000000"); ' +
  'send(S,$ra,0,pack("SnNH32L",10,0,0,"ff020000000000000000000000000001",$i)) and print "sent" or die $!';

/** More than a fair share of the host. */
export function exhaustions({ mine, run, runOther, world, portMbps }: Tenants): Attempt[] {
  const { memoryMb, diskGb, vcpus } = mine.size;
  const timed = async (script: string) => {
    const began = performance.now();
    const output = await run(script);
    return { seconds: (performance.now() - began) / 1000, output };
  };
  return [
    {
      name: `start ${memoryMb * 4 + 500} processes`,
      attempt: async () => {
        const wanted = memoryMb * 4 + 500;
        const started = await run(
          `i=0; while [ $i -lt ${wanted} ]; do sleep 6 & i=$((i+1)); echo $i; done 2>/dev/null`,
        );
        const count = Number(started.trim().split('\n').at(-1));
        await new Promise((resolve) => setTimeout(resolve, 6000));
        return count < wanted ? `limited to ${count}` : 'succeeded';
      },
    },
    {
      name: `use ${memoryMb * 3} MiB of memory`,
      attempt: async () =>
        (await run(`perl -e '$x = "x" x (${memoryMb * 3} << 20); print "${IN}"'`)).includes(IN)
          ? 'succeeded'
          : 'refused',
    },
    {
      name: `write ${diskGb + 1} GiB to the disk`,
      attempt: async () => {
        const output = await run(
          `dd if=/dev/zero of=/big bs=1M count=${(diskGb + 1) * 1024} conv=fsync && echo ${IN}; rm -f /big; sync`,
        );
        return output.includes(IN) ? 'succeeded' : 'refused';
      },
    },
    {
      name: 'write to the disk without limit',
      attempt: async () => {
        const { seconds } = await timed('dd if=/dev/zero of=/big bs=1M count=300 oflag=direct; rm -f /big');
        const rate = 300 / seconds;
        return rate < 130 * vcpus ? `limited to ${rate.toFixed(0)} MB/s` : `succeeded: ${rate.toFixed(0)} MB/s`;
      },
    },
    {
      name: 'receive without limit',
      attempt: async () => {
        const { seconds, output } = await timed(`nc -w 9 ${world} 81 </dev/null | wc -c`);
        return rated((Number(output) * 8) / 1e6 / seconds, portMbps);
      },
    },
    {
      name: 'send without limit',
      attempt: async () => {
        const { seconds } = await timed(`dd if=/dev/zero bs=1M count=24 2>/dev/null | nc -w 9 ${world} 82`);
        return canPolice() ? rated((24 * 8.4) / seconds, portMbps) : 'not tried: the kernel lacks act_police';
      },
    },
    {
      name: 'stop the other by all of that',
      attempt: async () => ((await runOther('echo alive')).includes('alive') ? 'refused' : 'succeeded'),
    },
  ];
}

const rated = (mbps: number, limit: number) =>
  mbps > 1 && mbps < limit * 1.3 ? `limited to ${mbps.toFixed(0)} Mbit/s` : `succeeded: ${mbps.toFixed(0)} Mbit/s`;

/** The address that a machine derives from its MAC (RFC 4291, EUI-64). All MACs of machines begin with 02. */
function linkLocal(mac: string): string {
  const [, a, b, c, d, e] = mac.split(':');
  return `fe80::${a}:${b}ff:fe${c}:${d}${e}`;
}

/** Whether the kernel can limit what machines send. */
function canPolice(): boolean {
  const script = `ip link add police0 type veth peer name police1; tc qdisc add dev police0 ingress
    tc filter add dev police0 parent ffff: protocol all u32 match u32 0 0 police rate 1mbit burst 64k drop; code=$?
    ip link del police0; exit $code`;
  return spawnSync('sh', ['-c', script], { stdio: 'ignore' }).status === 0;
}
