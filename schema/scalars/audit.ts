import { scalar } from './scalar.ts';

scalar(
  'AuditAction',
  'An action of the audit log: api.request, or the type of an event. One that is unknown has no entries.',
  {
    type: 'string',
    maxLength: 64,
    pattern: '^[a-z][a-z0-9_]*\\.[a-z][a-z0-9_]*$',
  },
);
