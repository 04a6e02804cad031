/** The lxc driver on a real LXD. */
import { describeLxc } from './lxc/contract.ts';
import { startSingleLxd } from './lxd.ts';

describeLxc('LXD', () => startSingleLxd('single'));
