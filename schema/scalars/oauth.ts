import { scalar, text } from './scalar.ts';

scalar('ClientText', 'Text of up to 254 characters.', text(1, 254));
scalar('ClientUri', 'An absolute URI of up to 2048 characters.', text(1, 2048, { format: 'uri' }));
scalar('OauthParameter', 'A parameter of OAuth, of up to 4096 characters.', text(1, 4096));
scalar('ScopeList', 'One or more of read, servers, billing and full, separated by spaces.', {
  type: 'string',
  maxLength: 64,
  pattern: '^(read|servers|billing|full)( (read|servers|billing|full))*$',
});
