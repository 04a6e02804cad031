/**
 * GraphQL over HTTP as Yoga serves it. Two queries read the rows that the service reads, with its statements. It counts no
 * limits, and adds no headers.
 */
import { hash } from 'node:crypto';
import { createServer } from 'node:http';
import { buildSchema, type GraphQLSchema } from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import pg from 'pg';
import { FIND_API_KEY } from '../../entities/accounts/credential.ts';
import { digest } from '../../entities/secrets.ts';
import { FIND_SERVER } from '../../entities/servers/find.ts';
import { SHOWN_COLUMNS } from '../../entities/servers/server.ts';

const { DATABASE_URL, PORT } = process.env;
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 10 });
const LIST = `select ${SHOWN_COLUMNS} from server where status <> 'DELETED' and account_id = $2 order by id desc limit $1`;
const NAMES =
  'kind status hostname region os ipv4 ipv6 auto_renew:Boolean delete_protection:Boolean service_code ipv6_prefix created_at updated_at paid_until'.split(
    ' ',
  );
const fields = NAMES.map((name) => name.split(':')).map(([name, type = 'String']) => `${name}: ${type}`);

const accounts = new Map<string, string>();
async function accountOf(request: Request): Promise<string> {
  const credential = request.headers.get('authorization')!.slice(7);
  const key = hash('sha256', credential, 'base64');
  const known = accounts.get(key);
  if (known) return known;
  const values = [digest(credential)];
  const { rows } = await pool.query<{ account_id: string }>({ name: 'key', text: FIND_API_KEY.text, values });
  accounts.set(key, rows[0]!.account_id);
  return rows[0]!.account_id;
}

const rootValue = {
  server: async ({ order_number: orderNumber }: { order_number: string }, { request }: { request: Request }) => {
    const values = [orderNumber, await accountOf(request)];
    return (await pool.query({ name: 'server', text: FIND_SERVER.text, values })).rows[0];
  },
  servers: async ({ limit }: { limit: number }, { request }: { request: Request }) =>
    (await pool.query({ name: 'list', text: LIST, values: [limit, await accountOf(request)] })).rows,
};
const schema: GraphQLSchema = buildSchema(`
  type Server { order_number: ID! ${fields.join(' ')} }
  type Query { server(order_number: ID!): Server servers(limit: Int!): [Server!]! }
`);
// The schema has no resolvers, so the root value answers.
const plugin: Plugin = { onExecute: ({ args }) => void Object.assign(args, { rootValue }) };
const yoga = createYoga({ schema, logging: false, graphiql: false, plugins: [plugin] });
createServer(yoga).listen(Number(PORT), '127.0.0.1', () => console.log('listening'));
