/** Writes an archive each day, in a thread of its own: encryption would delay requests. */
import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { archiveName, deleteOld, PARTIAL } from '../../entities/archive/file.ts';
import { archiveKey } from '../../entities/archive/key.ts';
import { noteBackup } from '../../entities/archive/note.ts';
import type { Written } from '../../entities/archive/write.ts';
import { SYSTEM } from '../../entities/history/audit.ts';
import type { Vault } from '../../entities/secrets.ts';
import { periodic } from '../tasks/schedule.ts';
import { backoffSeconds, nap, type Process } from '../tasks/tasks.ts';

export const DAILY_ARCHIVE_PROCESS = 'daily-archive';
const DAY_SECONDS = 86_400;
/** The pause of a worker without a folder, while another worker may have one. */
const IDLE_SECONDS = 60;
const THREAD = new URL('./thread.ts', import.meta.url);

export interface ArchiveOptions {
  /** It exists. */
  folder: string;
  keepDays: number;
  /** The database, by a role that reads all tables. */
  url: string;
}

/** The task of the thread. */
export interface ThreadData {
  url: string;
  key: Uint8Array;
  file: string;
}

export const dailyArchiveProcess = (vault: Vault, options: ArchiveOptions | undefined): Process => ({
  ...periodic({
    start: async ({ aborted }) => {
      if (!options) return nap(IDLE_SECONDS);
      const { folder, keepDays, url } = options;
      // A full disk gets room for the new one.
      await deleteOld(folder, keepDays);
      const file = join(folder, archiveName());
      const { bytes, rows } = await writeInThread({ url, key: archiveKey(vault), file }, aborted);
      const note = { archive: basename(file), bytes, rows };
      return nap(DAY_SECONDS, { commit: (tx) => noteBackup(tx, SYSTEM, note) });
    },
  }),
  stepSecondsMax: DAY_SECONDS,
  backoffSeconds: (attempt) => backoffSeconds(attempt, { first: 60 }),
});

/** @throws Error of the thread, or the reason of `aborted` */
async function writeInThread(workerData: ThreadData, aborted: AbortSignal): Promise<Written> {
  aborted.throwIfAborted();
  const thread = new Worker(THREAD, { name: 'archive', workerData });
  try {
    return await new Promise((done, fail) => {
      thread.on('message', done).on('error', fail);
      thread.on('exit', () => fail(new Error('The thread of the archive ended early.')));
      aborted.addEventListener('abort', () => fail(aborted.reason));
    });
  } finally {
    await thread.terminate();
    // A thread that ends early leaves its part of a file.
    await rm(workerData.file + PARTIAL, { force: true });
  }
}
