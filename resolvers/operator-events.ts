/** Reads the events that concern the operator alone, and notes backups as such events. */
import { noteBackup as note } from '../entities/archive/note.ts';
import {
  FIND_OPERATOR_EVENT,
  LIST_OPERATOR_EVENTS,
  LIST_OPERATOR_EVENTS_OF_TYPE,
  type OperatorEvent,
} from '../entities/history/event.ts';
import { idBounds } from '../entities/ids.ts';
import { actorOf, type Context } from './context.ts';
import { found } from './errors.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from './pages.ts';

/** Returns a page of the events, newest first. @throws ApiError invalid_cursor */
export async function listOperatorEvents(
  { db }: Context,
  request: PageRequest,
  { type = null, since = null }: { type?: string | null | undefined; since?: Date | null | undefined },
): Promise<Page<OperatorEvent>> {
  const filters = { type, since };
  const [oldest, newest] = idBounds('evt', since, null);
  const parameters = [oldest, afterCursor(request, filters) ?? newest, since, request.limit + 1];
  const rows = await (type === null
    ? LIST_OPERATOR_EVENTS.all(db, parameters)
    : LIST_OPERATOR_EVENTS_OF_TYPE.all(db, [...parameters, type]));
  return pageFrom(rows, request, filters);
}

/** Notes that the operator has made a backup of the database. Its event is the only trace. */
export const noteBackup = (context: Context): Promise<OperatorEvent> =>
  context.db.transaction(async (tx) => {
    const id = await note(tx, actorOf(context));
    return found(await FIND_OPERATOR_EVENT.first(tx, [id]));
  });
