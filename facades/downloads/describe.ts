/** Descriptions of the package for hosts that install bundles, and for the MCP registry. */
import type { Own } from './archive.ts';

/** The package.json of the stdio package. */
export interface StdioPackage extends Own {
  mcpName: string;
}

/** The registry accepts at most 100 characters. */
const SUMMARY = 'Rent VPS and dedicated servers with cryptocurrency, without identity: order, manage, delete.';
const KEY = 'Make one with create_api_key or POST /v1/auth/api-keys. Without it, each tool takes access_token.';
const TOOLSETS =
  'Offer only these, with commas: account, agents, auth, billing, catalog, messages, servers, ssh-keys, transparency, webhooks.';
const READONLY = 'Offer only tools that change nothing.';

/** The host replaces this placeholder with the user's setting. */
const setting = (name: string) => `\${user_config.${name}}`;

/** Returns manifest.json of the bundle (MCPB 0.3). */
export const manifestOf = ({ name, version, license }: StdioPackage, publicUrl: string, entry: string) => ({
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
    url: {
      type: 'string',
      title: 'Address',
      description: 'The address of Freehold.',
      default: publicUrl,
      required: true,
    },
    api_key: { type: 'string', title: 'API key', description: KEY, sensitive: true, required: false, default: '' },
    toolsets: { type: 'string', title: 'Toolsets', description: TOOLSETS, required: false, default: '' },
    readonly: { type: 'boolean', title: 'Read only', description: READONLY, required: false, default: false },
  },
});

/** Returns server.json of the MCP registry. It names each file by its download URL and its SHA-256. */
export function serverJsonOf(
  { name, version, mcpName }: StdioPackage,
  publicUrl: string,
  sums: { tgz: string; mcpb: string },
) {
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
