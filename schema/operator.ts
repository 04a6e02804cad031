/** What only the operator sees. */
import { type Books, findBooks } from '../resolvers/operator.ts';
import { builder } from './builder.ts';

const LedgerTotal = builder.objectRef<Books['totals'][number]>('LedgerTotal').implement({
  description: 'What a ledger account sums up to; those of customers together.',
  fields: (t) => ({ name: t.exposeString('name'), totalUsd: t.expose('micros', { type: 'Usd' }) }),
});
const BooksType = builder.objectRef<Books>('Books').implement({
  description: 'The proof that the books balance.',
  fields: (t) => ({
    balanced: t.exposeBoolean('balanced', { description: 'Whether every kept balance is the sum of its transfers.' }),
    transfers: t.exposeInt('transfers'),
    firstMismatch: t.string({
      nullable: true,
      description: 'The first account of which it is not.',
      resolve: ({ firstMismatch }) => firstMismatch?.accountId ?? null,
    }),
    totals: t.expose('totals', { type: [LedgerTotal], description: 'They sum up to nothing.' }),
  }),
});
builder.queryFields((t) => ({
  books: t.field({
    type: BooksType,
    scope: 'operator',
    description: 'Proves that the books balance. Reads every transfer.',
    resolve: (_, __, context) => findBooks(context),
  }),
}));
