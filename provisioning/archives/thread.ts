/** The thread that writes an archive. It posts what it has written. */
import { parentPort, workerData } from 'node:worker_threads';
import { writeArchive } from '../../entities/archive/write.ts';
import type { ThreadData } from './daily.ts';

parentPort!.postMessage(await writeArchive(workerData as ThreadData));
