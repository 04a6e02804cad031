import { scalar, text } from './scalar.ts';

scalar('CurrentPassword', 'The password that the account has.', text(1, 128), {
  parse: (value: string) => value.normalize('NFKC'),
});
scalar('Email', 'An email address.', text(3, 254, { format: 'email' }), {
  parse: (value: string) => value.toLowerCase(),
});
scalar('Password', 'A password of 8 to 128 characters.', text(8, 128, { 'x-error': { minLength: 'weak_password' } }), {
  parse: (value: string) => value.normalize('NFKC'),
});
scalar('Token', 'A token as the service gave it.', text(1, 200));
scalar(
  'TotpCode',
  'A code of the authenticator (six digits), or a recovery code (xxxx-xxxx).',
  text(6, 9, { pattern: '^([0-9]{6}|[0-9a-zA-Z]{4}-[0-9a-zA-Z]{4})$' }),
);
