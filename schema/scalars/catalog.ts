import { scalar, text } from './scalar.ts';

scalar('Code', 'A code of the catalog.', text(1, 32));
