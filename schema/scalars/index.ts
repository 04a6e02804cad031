/** The scalars, in files of the nouns that they belong to. */
import './accounts.ts';
import './agents.ts';
import './payments.ts';
import './servers.ts';
import './transparency.ts';
import './values.ts';
import './webhooks.ts';
