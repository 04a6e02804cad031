/** The latest event of each server, for the subscribers of servers. */
import { statement } from '../database/statement.ts';
import { now, oneOf } from '../database/table.ts';
import { EVENT_TYPES } from '../history/event.ts';
import { SHOWN_COLUMNS, Server } from './server.ts';
