/** Accounts: passwords and codes, API keys, OAuth, SSH keys, messages and the audit log. */
import { GraphQLError } from 'graphql';
import { networkFrom } from '../../entities/networks.ts';
import { line, scalar, text } from './scalar.ts';

const PASSWORD = {
  example: 'correct horse battery staple',
  parse: (value: string) => value.normalize('NFKC'),
};
scalar('CurrentPassword', 'The present password of the account.', text(1, 128), PASSWORD);
const WEAK = { 'x-error': { minLength: 'weak_password' } };
scalar('Password', 'A password of 8 to 128 characters.', text(8, 128, WEAK), PASSWORD);
scalar('Email', 'An email address.', text(3, 254, { format: 'email' }), {
  example: 'you@example.com',
  parse: (value: string) => value.toLowerCase(),
});
scalar('ProofOfWork', 'A challenge of proof_of_work_required, a colon, and the number that solves it.', text(1, 300), {
  example: '1:20:1795348800:Zm9yIGV4YW1wbGU:7c6PpQ0bJ8mYt1r0bq3ZyqF2xk5v9wLhN4sTgUoEdIk:1048577',
});
scalar('Token', 'A token that the service issued.', text(1, 200), {
  example: 'svc_rt_6mlLTzEnmlPVPxHAe74kg9awGRUOButR2pp2Kz',
});
scalar(
  'TotpCode',
  'A code of the authenticator (six digits), or a recovery code (xxxx-xxxx).',
  text(6, 9, { pattern: '^([0-9]{6}|[0-9a-zA-Z]{4}-[0-9a-zA-Z]{4})$' }),
  { example: '123456' },
);

scalar('KeyName', 'A name of up to 120 characters, without control characters and marks of direction.', line(1, 120), {
  example: 'deploy',
});
/** Invisible characters would let a name pass for another one. */
const WORD = '[^\\p{C}\\p{Z}\\p{DI}]+';
scalar(
  'OperatorName',
  'A name of up to 120 characters: words of printable characters, with one space between them.',
  text(1, 120, { pattern: `^${WORD}( ${WORD})*$` }),
  { example: 'Jane Doe', parse: (value: string) => value.normalize('NFC') },
);
const NETWORKS_MAX = 20;
scalar(
  'IpAllowlist',
  'Up to 20 networks in CIDR notation, IPv4 or IPv6, as a list or as text with commas.',
  {
    anyOf: [
      { type: 'array', maxItems: NETWORKS_MAX, items: text(2, 49) },
      { type: 'string', maxLength: 1100 },
    ],
  },
  {
    parse: (value: string[] | string) => {
      const given = Array.isArray(value) ? value : value.split(',').filter((one) => one.trim());
      if (typeof value === 'string' && !given.length)
        throw new GraphQLError('The text has no network. Send [] to allow all networks.');
      const networks = given.map(networkFrom);
      if (networks.length > NETWORKS_MAX) throw new GraphQLError(`The list has more than ${NETWORKS_MAX} networks.`);
      const wrong = networks.indexOf(undefined);
      if (wrong >= 0)
        throw new GraphQLError(
          `Entry ${wrong + 1} is no network such as 203.0.113.0/24 or 2001:db8::/32. Write IPv4 networks without ::ffff:.`,
        );
      return networks;
    },
  },
);
const SCOPES = {
  type: 'string',
  maxLength: 64,
  pattern: '^(read|servers|billing|full)( (read|servers|billing|full))*$',
};
scalar('ScopeList', 'One or more of read, servers, billing and full, separated by spaces.', SCOPES, {
  example: 'servers',
});

scalar('ClientText', 'Text of up to 254 characters.', text(1, 254));
scalar('ClientUri', 'An absolute URI of up to 2048 characters.', text(1, 2048, { format: 'uri' }));
scalar('OauthParameter', 'An OAuth parameter of up to 4096 characters.', text(1, 4096));

scalar('PgpKey', 'An armored PGP key, or an empty text.', text(0, 16_384));
scalar('PublicKey', 'One line of an OpenSSH public key file.', text(1, 16_384), {
  example: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJPzAgmPdM1Cmb3SPl6CyrwSP3gHWVg0wnS2xSVq5vVn laptop',
});
scalar(
  'AuditAction',
  'An action of the audit log, or its beginning, such as `server.`: api.request, or the type of an event. An unknown action has no entries.',
  { type: 'string', maxLength: 64, pattern: '^[a-z][a-z0-9_]*(\\.[a-z0-9_]*)?$' },
  { example: 'server.created' },
);
scalar('AccountLimit', 'A number from 0 to 1,000,000.', {
  type: 'integer',
  format: 'int32',
  minimum: 0,
  maximum: 1_000_000,
});
scalar('TokenDays', 'The days until a token expires, 1 to 365.', {
  type: 'integer',
  format: 'int32',
  minimum: 1,
  maximum: 365,
});

scalar(
  'MessageSubject',
  'A line of up to 120 characters, without control characters and marks of direction.',
  line(1, 120),
  { example: 'A question about my server' },
);
scalar(
  'MessageBody',
  'A text of up to 4,000 characters. Its only control characters are newlines.',
  text(1, 4000, { pattern: '^[^\\u0000-\\u0009\\u000b-\\u001f\\u007f-\\u009f]*$' }),
  { example: 'Why did it restart last night?' },
);
