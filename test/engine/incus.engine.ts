/** The lxc driver on a real Incus. Run only where INCUS_ROOT is a Debian that has it (incus-root.sh). */
import { describeLxc } from './lxc-contract.ts';
import { startIncus } from './lxd.ts';

describeLxc('Incus', () => startIncus('incus', process.env.INCUS_ROOT!));
