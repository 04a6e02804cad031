/** Tools and a prompt that ask the client for user input, sampling or roots before they answer. */
import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  fromJsonSchema,
  type InputRequest,
  inputRequired,
  inputResponse,
  type McpServer,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { answer, text } from './content.ts';

/** The progress of a conversation. The server signs it, since the client carries it. */
export type Step = { step: number };
type Codec = RequestStateCodec<Step>;
type Envelope = Record<string, unknown> | undefined;
type Questions = Record<string, InputRequest>;

const field = (name: string, type = 'string') => ({
  type: 'object' as const,
  properties: { [name]: { type } as { type: 'string' } },
  required: [name],
});
const ask = (message: string, name: string, type?: string) =>
  inputRequired.elicit({ message, requestedSchema: field(name, type) });
const think = (said: string, maxTokens = 100) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: said } }], maxTokens });

const NAME = { user_name: ask('What is your name?', 'name') };
const CAPITAL = { capital_question: think('What is the capital of France?') };
const ROOTS = { client_roots: inputRequired.listRoots() };
const CONFIRM = { confirm: ask('Please confirm', 'ok', 'boolean') };
const CONTEXT = { user_context: ask('What context should the prompt use?', 'context') };
const ALL = { ...NAME, greeting: think('Generate a greeting', 50), ...ROOTS };
const STEPS: Questions[] = [
  { step1: ask('Step 1: What is your name?', 'name') },
  { step2: ask('Step 2: What is your favorite color?', 'color') },
];

/** Whether each question has an answer of the right kind. */
const answered = ({ mcpReq }: ServerContext, questions: Questions): boolean =>
  Object.keys(questions).every((key) => inputResponse(mcpReq.inputResponses, key).kind !== 'missing');

const said = ({ mcpReq }: ServerContext, questions: Questions) =>
  answer(text(`state-ok ${JSON.stringify(Object.keys(questions).map((key) => mcpReq.inputResponses?.[key]))}`));

export function addQuestions(server: McpServer, codec: Codec): void {
  addRounds(server, codec);
  addArguments(server);
  server.registerPrompt('test_input_required_result_prompt', { description: 'Asks for its context' }, (request) => {
    const given = acceptedContent<{ context?: unknown }>(request.mcpReq.inputResponses, 'user_context');
    if (!given) return inputRequired({ inputRequests: CONTEXT });
    return { messages: [{ role: 'user', content: text(`The context is ${given.context}.`) }] };
  });
}

function addRounds(server: McpServer, codec: Codec): void {
  const add = (name: string, description: string, call: (request: ServerContext) => ReturnType<typeof once>) =>
    server.registerTool(`test_${name}`, { description }, call);
  const once = async (request: ServerContext, inputRequests: Questions, state?: Step) =>
    answered(request, inputRequests)
      ? said(request, inputRequests)
      : inputRequired({ inputRequests, ...(state && { requestState: await codec.mint(state) }) });
  /** Accepts answers only together with the state that the server gave out. */
  const held = async (request: ServerContext, inputRequests: Questions) =>
    request.mcpReq.requestState<Step>()
      ? once(request, inputRequests)
      : once(UNASKED(request), inputRequests, { step: 1 });

  add('input_required_result_elicitation', 'Asks for a name', (request) => once(request, NAME));
  add('input_required_result_sampling', 'Asks the model', (request) => once(request, CAPITAL));
  add('missing_capability', 'Asks the model, which the client may not have', (request) => once(request, CAPITAL));
  add('input_required_result_list_roots', 'Asks for folders', (request) => once(request, ROOTS));
  add('streaming_elicitation', 'Asks for a name', (request) => once(request, NAME));
  add('input_required_result_request_state', 'Asks, and signs what it asked', (request) => held(request, CONFIRM));
  add('input_required_result_tampered_state', 'Asks, and signs what it asked', (request) => held(request, CONFIRM));
  add('input_required_result_multiple_inputs', 'Asks for three things at once', (request) => held(request, ALL));
  add('input_required_result_multi_round', 'Asks twice', async (request) => {
    const step = request.mcpReq.requestState<Step>()?.step ?? 0;
    const done = step > 0 && answered(request, STEPS[step - 1]!) ? step : Math.max(0, step - 1);
    const next = STEPS[done];
    if (!next) return said(request, STEPS.at(-1)!);
    return inputRequired({ inputRequests: next, requestState: await codec.mint({ step: done + 1 }) });
  });
  add('input_required_result_capabilities', 'Asks only what the client can answer', async (request) => {
    const can = ((request.mcpReq.envelope as Envelope)?.[CLIENT_CAPABILITIES_META_KEY] ?? {}) as Record<
      string,
      unknown
    >;
    const inputRequests = { ...(can.elicitation !== undefined && NAME), ...(can.sampling !== undefined && CAPITAL) };
    return Object.keys(inputRequests).length ? once(request, inputRequests) : answer(text('There is nobody to ask.'));
  });
}

/** Ignores answers without their state. */
const UNASKED = (request: ServerContext): ServerContext => ({
  ...request,
  mcpReq: { ...request.mcpReq, inputResponses: undefined },
});

const CONTACT = {
  type: 'object' as const,
  properties: {
    username: { type: 'string' as const, description: "User's response" },
    email: { type: 'string' as const, description: "User's email address" },
  },
  required: ['username', 'email'],
};

/** Tools of the 2025 scenarios. */
function addArguments(server: McpServer): void {
  const elicited = (name: string, description: string, requestedSchema: typeof DEFAULTS | typeof ENUMS) =>
    server.registerTool(name, { description }, (request) => {
      const view = inputResponse(request.mcpReq.inputResponses, 'form');
      if (view.kind !== 'elicit')
        return inputRequired({
          inputRequests: { form: inputRequired.elicit({ message: description, requestedSchema }) },
        });
      return answer(text(`Elicitation completed: ${JSON.stringify(view)}`));
    });
  elicited('test_elicitation_sep1034_defaults', 'Asks with answers filled in', DEFAULTS);
  elicited('test_elicitation_sep1330_enums', 'Asks to choose', ENUMS);

  const prompt = fromJsonSchema<{ prompt: string }>(field('prompt'));
  server.registerTool('test_sampling', { description: 'Asks the model', inputSchema: prompt }, (args, { mcpReq }) => {
    const view = inputResponse(mcpReq.inputResponses, 'thought');
    if (view.kind === 'missing') return inputRequired({ inputRequests: { thought: think(args.prompt) } });
    return answer(text(`LLM response: ${JSON.stringify(view)}`));
  });
  const message = fromJsonSchema<{ message: string }>(field('message'));
  server.registerTool(
    'test_elicitation',
    { description: 'Asks the user', inputSchema: message },
    (args, { mcpReq }) => {
      const view = inputResponse(mcpReq.inputResponses, 'contact');
      if (view.kind === 'missing') {
        const contact = inputRequired.elicit({ message: args.message, requestedSchema: CONTACT });
        return inputRequired({ inputRequests: { contact } });
      }
      return answer(text(`User response: ${JSON.stringify(view)}`));
    },
  );
}

/** SEP-1034: one default for each primitive type. */
const DEFAULTS = {
  type: 'object' as const,
  properties: {
    name: { type: 'string' as const, default: 'John Doe' },
    age: { type: 'integer' as const, default: 30 },
    score: { type: 'number' as const, default: 95.5 },
    status: { type: 'string' as const, enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean' as const, default: true },
  },
};

const titled = (noun: string) =>
  ['First', 'Second', 'Third'].map((one, i) => ({ const: `value${i + 1}`, title: `${one} ${noun}` }));
const OPTIONS = ['option1', 'option2', 'option3'];

/** SEP-1330: the five ways to offer a choice. */
const ENUMS = {
  type: 'object' as const,
  properties: {
    untitledSingle: { type: 'string' as const, enum: OPTIONS },
    titledSingle: { type: 'string' as const, oneOf: titled('Option') },
    legacyEnum: {
      type: 'string' as const,
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: { type: 'array' as const, items: { type: 'string' as const, enum: OPTIONS } },
    titledMulti: { type: 'array' as const, items: { anyOf: titled('Choice') } },
  },
};
