/** The public directory of agents. Names follow the A2A agent card. */
import type { Agent, AgentEndpoint, AgentSkill, ListedAgent } from '../entities/agents/agent.ts';
import {
  AGENT_STATUSES,
  hideAgent,
  listHiddenAgents,
  publishAgent,
  searchAgents,
  showAgent,
  thumbprint,
} from '../resolvers/agents.ts';
import { builder, enumType, inputType, objectType } from './builder.ts';
import { pageArgs, pageOf } from './pages.ts';

const AgentStatus = enumType(
  'AgentStatus',
  'The search finds listed agents only. The operator hides agents.',
  AGENT_STATUSES,
);
const AgentProtocol = enumType('AgentProtocol', 'The protocol of an endpoint.', ['MCP', 'A2A', 'HTTP', 'GRAPHQL']);

const AgentEndpointType = objectType<AgentEndpoint>('AgentEndpoint', 'An address of an agent.', (t) => ({
  protocol: t.expose('protocol', { type: AgentProtocol, description: 'The protocol that the endpoint speaks.' }),
  url: t.exposeString('url', { description: 'The https URL of the endpoint.' }),
  protocolVersion: t.string({
    nullable: true,
    description: 'The version of the protocol; null: not stated.',
    resolve: ({ protocolVersion }) => protocolVersion ?? null,
  }),
}));
const AgentSkillType = objectType<AgentSkill>('AgentSkill', 'A skill of an agent.', (t) => ({
  id: t.exposeString('id', { description: 'The id of the skill within the entry.' }),
  name: t.exposeString('name', { description: 'The name of the skill.' }),
  description: t.exposeString('description', { description: 'The work that the skill does.' }),
  tags: t.exposeStringList('tags', { description: 'Words by which a search finds the skill.' }),
}));
const AgentType = objectType<Agent | ListedAgent>(
  'Agent',
  'An entry of the directory. Its owner wrote it and is not shown. Nothing but `verified` is checked.',
  (t) => ({
    id: t.exposeID('id', { description: 'The id of the entry.' }),
    slug: t.exposeString('slug', { description: 'The name of the entry in its URL.' }),
    name: t.exposeString('name', { description: 'The name of the agent.' }),
    description: t.exposeString('description', { description: 'The work that the agent does.' }),
    url: t.exposeString('url', { description: 'The URL of the agent.' }),
    status: t.expose('status', { type: AgentStatus, description: 'Whether the search finds the entry.' }),
    version: t.exposeString('version', { nullable: true, description: "The agent's own version; null: not stated." }),
    providerName: t.exposeString('providerName', { nullable: true, description: 'The maker of the agent.' }),
    providerUrl: t.exposeString('providerUrl', { nullable: true, description: 'The site of the maker.' }),
    documentationUrl: t.exposeString('documentationUrl', {
      nullable: true,
      description: 'The documentation of the agent.',
    }),
    iconUrl: t.exposeString('iconUrl', { nullable: true, description: 'A picture of the agent.' }),
    endpoints: t.expose('endpoints', {
      type: [AgentEndpointType],
      description: 'The addresses of the agent, one to ten.',
    }),
    skills: t.expose('skills', { type: [AgentSkillType], description: 'The skills of the agent, up to 20.' }),
    publicKey: t.string({
      nullable: true,
      description: 'Ed25519, base64.',
      resolve: ({ publicKey }) => publicKey?.toString('base64') ?? null,
    }),
    publicKeyThumbprint: t.string({
      nullable: true,
      description: 'RFC 7638.',
      resolve: ({ publicKey }) => publicKey && thumbprint(publicKey),
    }),
    verified: t.exposeBoolean('verified', {
      description:
        "Whether the agent's own card names this key. The card is at url + /.well-known/agent-card.json. It holds the key as" +
        ' publicKey (JWK or base64), in jwks.keys, or as jwk or kid of a signature.' +
        ' A worker checks it after each change of the entry, and each day. It does not prove the name, the description or the' +
        ' endpoints. Any account can publish the URL and the key of another agent.',
    }),
    x402: t.exposeBoolean('x402', { description: 'Whether the agent takes x402 payments.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
  }),
);
const AgentPage = pageOf('Agent', AgentType);

const AgentEndpointInput = inputType('AgentEndpointInput', (t) => ({
  protocol: t.field({ type: AgentProtocol, description: 'Its protocol.', required: true }),
  url: t.field({ type: 'HttpsUrl', description: 'Its https URL.', required: true }),
  protocolVersion: t.field({ type: 'Line', description: 'Its version.' }),
}));
const AgentSkillInput = inputType('AgentSkillInput', (t) => ({
  id: t.field({ type: 'Slug', description: 'Its id within the entry.', required: true }),
  name: t.field({ type: 'Title', description: 'Its name.', required: true }),
  description: t.field({ type: 'Paragraph', description: 'Its work.', required: true }),
  tags: t.field({ type: 'Tags', description: 'Words for the search.', required: true }),
}));
const PublishAgentInput = inputType('PublishAgentInput', (t) => ({
  slug: t.field({
    type: 'Slug',
    required: true,
    description: 'The name of the entry: 3 to 40 of a-z, 0-9 and -. Publishing it again replaces the entry.',
  }),
  name: t.field({ type: 'Title', description: 'Its name.', required: true }),
  description: t.field({ type: 'Paragraph', description: 'Its work.', required: true }),
  url: t.field({ type: 'HttpsUrl', required: true, description: 'Its URL.' }),
  version: t.field({ type: 'Line', description: 'Its own version.' }),
  providerName: t.field({ type: 'Line', description: 'Its maker.' }),
  providerUrl: t.field({ type: 'HttpsUrl', description: "Its maker's site." }),
  documentationUrl: t.field({ type: 'HttpsUrl', description: 'Its documentation.' }),
  iconUrl: t.field({ type: 'HttpsUrl', description: 'Its picture.' }),
  endpoints: t.field({
    type: [AgentEndpointInput],
    required: true,
    description: 'Its addresses, one to ten.',
  }),
  skills: t.field({ type: [AgentSkillInput], description: 'Its skills, up to 20.' }),
  publicKey: t.field({ type: 'Ed25519Key', description: 'As JWK or base64.' }),
  x402: t.boolean({ description: 'Whether it takes x402 payments.', required: true, defaultValue: false }),
  listed: t.boolean({ required: true, defaultValue: true, description: 'False removes the entry from the directory.' }),
}));

builder.queryFields((t) => ({
  agents: t.field({
    type: AgentPage,
    scope: 'public',
    description: 'The listed agents, newest first. A page has at most 50 and, without a credential, 20.',
    args: {
      ...pageArgs(),
      q: t.arg({ type: 'Line', description: 'Beginnings of words of the name, slug or description.' }),
      skill: t.arg({ type: 'Line', description: 'The id or a tag of a skill.' }),
      protocol: t.arg({ type: AgentProtocol, description: 'Only agents with an endpoint of this protocol.' }),
      verified: t.arg.boolean({ description: 'Only agents with a verified key, or without. It proves no endpoints.' }),
    },
    resolve: (_, { limit, cursor, ...filter }, context) => searchAgents(context, { limit, cursor }, filter),
  }),
  hiddenAgents: t.field({
    type: AgentPage,
    scope: 'operator',
    description: 'The agents that the operator has hidden, newest first.',
    args: pageArgs(),
    resolve: (_, page, context) => listHiddenAgents(context, page),
  }),
}));

builder.mutationFields((t) => ({
  publishAgent: t.field({
    type: AgentType,
    scope: 'full',
    errors: ['agent_limit_reached', 'account_suspended'],
    whileSuspended: true,
    urgent: false,
    description:
      'Adds an agent to the directory, or replaces it. An entry has at most 8 KiB as JSON, and no controls, ends of lines or' +
      ' invisible characters. A suspended account can only unlist an entry, and the rest of the entry stays.',
    args: { input: t.arg({ type: PublishAgentInput, required: true }) },
    resolve: (_, { input: { skills, endpoints, ...card } }, context) =>
      publishAgent(context, { ...card, endpoints: [...endpoints], skills: [...(skills ?? [])] }),
  }),
  hideAgent: t.field({
    type: AgentType,
    scope: 'operator',
    right: 'support',
    description: 'Hides a listed agent from the directory. Its owner cannot list it again.',
    args: {
      id: t.arg({ type: 'ID', required: true, description: 'The entry.' }),
      reason: t.arg({ type: 'Line', required: true, description: 'The reason, kept with the event.' }),
    },
    resolve: (_, { id, reason }, context) => hideAgent(context, id, reason),
  }),
  showAgent: t.field({
    type: AgentType,
    scope: 'operator',
    right: 'support',
    description: 'Lists a hidden agent again.',
    args: { id: t.arg({ type: 'ID', required: true, description: 'The entry.' }) },
    resolve: (_, { id }, context) => showAgent(context, id),
  }),
}));
