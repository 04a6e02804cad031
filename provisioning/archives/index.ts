/** Background work on archives: a worker writes one each day. */
import type { Vault } from '../../entities/secrets.ts';
import type { WorkerPart } from '../tasks/tasks.ts';
import { type ArchiveOptions, DAILY_ARCHIVE_PROCESS, dailyArchiveProcess } from './daily.ts';

export type { ArchiveOptions };

export class Archives implements WorkerPart {
  readonly processes;
  readonly lanes = {};
  readonly periodic;

  /** @param options undefined: the operator wants no archives */
  constructor(vault: Vault, options: ArchiveOptions | undefined) {
    this.periodic = options ? [DAILY_ARCHIVE_PROCESS] : [];
    this.processes = { [DAILY_ARCHIVE_PROCESS]: dailyArchiveProcess(vault, options) };
  }
}
