/** How the package is described to others: to hosts that install bundles, and to the MCP registry. */

/** What of package.json the descriptions repeat. */
export interface Own {
  name: string;
  version: string;
  license: string;
  mcpName: string;
}

/** The registry takes no more than 100 characters. */
const SUMMARY = 'Rent VPS and dedicated servers with coins and without identity: order, watch, manage, delete.';
const KEY = 'Made with create_api_key or POST /v1/auth/api-keys. Without it, each tool takes access_token.';
const TOOLSETS =
  'Only tools of these, with commas: account, agents, auth, billing, catalog, servers, ssh-keys, transparency, webhooks.';
const READONLY = 'Only tools that change nothing.';

/** The host puts what the user has set there. */
const setting = (name: string) => `\${user_config.${name}}`;

/** manifest.json of the bundle (MCPB 0.3). */
export const manifestOf = ({ name, version, license }: Own, publicUrl: string, entry: string) => ({
  manifest_version: '0.3',
  name,
  display_name: 'Freehold',
  version,
  description: SUMMARY,
  author: { name: 'The Freehold founders' },
  homepage: publicUrl,
  documentation: `${publicUrl}/docs`,
  license,
  server: {
    type: 'node',
    entry_point: entry,
    mcp_config: {
      command: 'node',
      args: [`\${__dirname}/${entry}`],
      env: {
        FREEHOLD_URL: setting('url'),
        FREEHOLD_API_KEY: setting('api_key'),
        FREEHOLD_TOOLSETS: setting('toolsets'),
        FREEHOLD_READONLY: setting('readonly'),
      },
    },
  },
  tools_generated: true,
  prompts_generated: true,
  compatibility: { platforms: ['darwin', 'win32', 'linux'], runtimes: { node: '>=20.0.0' } },
  user_config: {
    url: { type: 'string', title: 'Address', description: 'Where Freehold is.', default: publicUrl, required: true },
    api_key: { type: 'string', title: 'API key', description: KEY, sensitive: true, required: false, default: '' },
    toolsets: { type: 'string', title: 'Toolsets', description: TOOLSETS, required: false, default: '' },
    readonly: { type: 'boolean', title: 'Read only', description: READONLY, required: false, default: false },
  },
});

/** server.json of the MCP registry. The files are named by where the service serves them, and by their content. */
export function serverJsonOf({ name, version, mcpName }: Own, publicUrl: string, sums: { tgz: string; mcpb: string }) {
  const transport = { type: 'stdio' };
  const environmentVariables = [
    { name: 'FREEHOLD_URL', description: 'Where Freehold is.', isRequired: true, default: publicUrl },
    { name: 'FREEHOLD_API_KEY', description: KEY, isRequired: false, isSecret: true },
    { name: 'FREEHOLD_TOOLSETS', description: TOOLSETS, isRequired: false },
    { name: 'FREEHOLD_READONLY', description: READONLY, isRequired: false, format: 'boolean', default: 'false' },
  ];
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name: mcpName,
    title: 'Freehold',
    description: SUMMARY,
    version,
    websiteUrl: publicUrl,
    remotes: [
      {
        type: 'streamable-http',
        url: `${publicUrl}/mcp`,
        headers: [{ name: 'Authorization', description: 'Bearer and the API key.', isRequired: false, isSecret: true }],
      },
    ],
    packages: [
      {
        registryType: 'npm',
        identifier: name,
        version,
        fileSha256: sums.tgz,
        runtimeHint: 'npx',
        transport,
        environmentVariables,
      },
      {
        registryType: 'mcpb',
        identifier: `${publicUrl}/downloads/${name}-${version}.mcpb`,
        fileSha256: sums.mcpb,
        transport,
        environmentVariables,
      },
    ],
  };
}
