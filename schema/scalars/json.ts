import { scalar } from './scalar.ts';

scalar('JSON', 'Any JSON value.', {});
scalar('Empty', 'An object without members.', { type: 'object', maxProperties: 0 });
