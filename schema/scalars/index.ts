/** The scalars, in files of the nouns that they belong to. */
import './agents.ts';
import './api-keys.ts';
import './audit.ts';
import './auth.ts';
import './billing.ts';
import './catalog.ts';
import './hosts.ts';
import './json.ts';
import './oauth.ts';
import './pages.ts';
import './servers.ts';
import './ssh-keys.ts';
import './times.ts';
import './transparency.ts';
import './webhooks.ts';
