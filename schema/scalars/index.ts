/** The scalars, in one file for each noun. */
import './accounts.ts';
import './agents.ts';
import './payments.ts';
import './servers.ts';
import './transparency.ts';
import './values.ts';
import './webhooks.ts';
