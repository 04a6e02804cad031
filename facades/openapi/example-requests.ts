/** Bodies of requests for the examples of the OpenAPI document. */

/** The body of a request, by the operation. Without an entry it is made from what is required. */
export const REQUESTS: Readonly<Record<string, object>> = {
  UpdateAccount: { low_balance_alert_days: 3 },
  PublishAgent: {
    slug: 'weather-agent',
    name: 'Weather agent',
    description: 'Tells the weather of tomorrow.',
    url: 'https://agent.example.com',
    endpoints: [{ protocol: 'mcp', url: 'https://agent.example.com/mcp', protocol_version: '2025-11-25' }],
    skills: [{ id: 'forecast', name: 'Forecast', description: 'The weather of a place.', tags: ['weather'] }],
  },
  CreateApiKey: { name: 'deploy', scope: 'servers', ip_allowlist: ['203.0.113.0/24'], spend_limit_usd: 50 },
  CreateTopup: { amount_usd: 100, crypto: 'USDC-BASE' },
  RegisterOauthClient: { client_name: 'Deployer', grant_types: ['client_credentials'], scope: 'servers' },
  IssueOauthToken: { grant_type: 'client_credentials', scope: 'servers' },
  RevokeOauthToken: { token: 'svc_at_FyQCjF8vrDgjFhgoXUZOXcjriShb7i0L2bRC1y' },
  PostOauthIntrospection: { token: 'svc_at_FyQCjF8vrDgjFhgoXUZOXcjriShb7i0L2bRC1y' },
  Recover: { email: 'you@example.com' },
  OrderServer: {
    service_code: 'vps-1',
    region: 'ams',
    os: 'debian-13',
    hostname: 'web-1.example.com',
    ssh_key_ids: ['sshkey_01m7z3eaymx8r1n4b6tq0c5d2h'],
    labels: { env: 'prod' },
    max_price_usd: 10,
  },
  UpdateServer: { power_state: 'off' },
  AddSshKey: {
    name: 'laptop',
    public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJPzAgmPdM1Cmb3SPl6CyrwSP3gHWVg0wnS2xSVq5vVn laptop',
  },
  CreateWebhook: { url: 'https://hooks.example.com/freehold', event_filter: ['server.*', 'topup.confirmed'] },
};
