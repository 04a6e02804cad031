/** The peer of bench/start/start.ts: it loads the four largest libraries of the service, and starts the same database. Nothing more. */
import { startEmbeddedPostgres } from '../../entities/database/embedded/postgres.ts';

const waiting = Promise.withResolvers<void>();
const starting = startEmbeddedPostgres(process.env.DATA_DIR!, [], waiting.resolve);
await Promise.race([waiting.promise, starting]);
await Promise.all([import('fastify'), import('pg'), import('typeorm'), import('graphql-yoga')]);
const { stop } = await starting;
process.on('SIGTERM', () => void stop().then(() => process.exit(0)));
console.log('The peer is running');
