/** The directory of agents. */
import { scalar, text } from './scalar.ts';

scalar('Ed25519Key', 'An Ed25519 key, as JWK or base64.', text(43, 512));
scalar(
  'HttpsUrl',
  'An https URL without credentials.',
  text(9, 2048, { format: 'uri', pattern: '^https://[^/@]+(/|$)' }),
  { example: 'https://agent.example.com' },
);
scalar('Paragraph', 'A text of up to 1,000 characters.', text(1, 1000), { example: 'Tells the weather of tomorrow.' });
scalar(
  'Slug',
  'A short name for addresses: 3 to 40 of a-z, 0-9 and -.',
  text(3, 40, { pattern: '^[a-z0-9-]{3,40}$' }),
  {
    example: 'weather-agent',
  },
);
scalar('Tags', 'Up to 20 tags.', { type: 'array', maxItems: 20, items: text(1, 40) }, { example: ['weather'] });
scalar('Title', 'A name of up to 80 characters.', text(1, 80), { example: 'Weather agent' });
