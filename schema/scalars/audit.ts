import { scalar } from './scalar.ts';

scalar('AuditAction', 'An action of the audit log: the type of an event, or api.request.', {
  type: 'string',
  maxLength: 64,
  pattern: '^[a-z][a-z0-9_]*\\.[a-z][a-z0-9_]*$',
});
