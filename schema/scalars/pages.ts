import { scalar, text } from './scalar.ts';

scalar('Cursor', 'The next_cursor of the page before.', text(1, 200));
scalar('PageLimit', 'How many entries a page has.', { type: 'integer', format: 'int32', minimum: 1, maximum: 200 });
