/** The prompts: guided tasks that a person starts from the menu of a client. */
import { type GetPromptResult, type Prompt, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';

const ONBOARDING = {
  name: 'onboarding',
  title: 'Get a server',
  description: 'Guides you from registration to a running server: register, pay in coins, order, and connect by SSH.',
  arguments: [
    { name: 'purpose', description: 'The purpose of the server. It decides the tier and the image.', required: false },
    { name: 'region', description: 'The code of the bastion (data-centre location) for the server.', required: false },
  ],
} satisfies Prompt;

const STEPS = `Work in this order, and tell me what you are about to pay before you pay it:
1. Read list_vps, list_bastions and list_os_images, and propose a tier, a bastion and an image with the price of a month.
2. If you have no credential, call register_account with an email and a password of my choice. Then call create_api_key with scope "servers billing" and the new access token. Show me the key, because the service shows it only once. Pass it as access_token from then on.
3. Upload my SSH public key with add_ssh_key. Never ask for a private key.
4. Check get_balance. If the balance is too low, call list_coins, then create_topup (30 USD at least). Show me the address and the amount, and repeat get_topup until the top-up is confirmed.
5. Call quote_server, and after my yes order_server with max_price_usd and an idempotency_key of your own.
6. Call wait_for_server until the status is running, and give me the ssh command with the address.
If a call fails, its code and detail give the reason. With retryable, the same call may succeed later.`;

export const PROMPTS: { prompts: Prompt[] } = { prompts: [ONBOARDING] };

/** @throws ProtocolError if the prompt is unknown, or an argument is not a text of at most 500 characters */
export function promptOf({
  name,
  arguments: args = {},
}: {
  name: string;
  arguments?: Record<string, unknown> | undefined;
}): GetPromptResult {
  if (name !== ONBOARDING.name)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such prompt. See prompts/list.');
  const textOf = (argument: string) => {
    const value = args[argument];
    if (value === undefined || value === '') return undefined;
    if (typeof value === 'string' && value.length <= 500) return value;
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `${argument} must be a text of at most 500 characters.`);
  };
  const [purpose, region] = [textOf('purpose'), textOf('region')];
  const wish = `Get me a server${purpose ? ` for this purpose: ${purpose}` : ''}${region ? `, at the bastion ${region}` : ''}.`;
  return {
    description: ONBOARDING.description,
    messages: [{ role: 'user', content: { type: 'text', text: `${wish}\n\n${STEPS}` } }],
  };
}
