/** What only the operator sees. */
import { findBooks, type Proof } from '../../resolvers/payments/books.ts';
import { builder } from '../builder.ts';

const LedgerTotal = builder.objectRef<Proof['totals'][number]>('LedgerTotal').implement({
  description: 'What a ledger account sums up to; those of customers together.',
  fields: (t) => ({ name: t.exposeString('name'), totalUsd: t.expose('micros', { type: 'Usd' }) }),
});
const BooksType = builder.objectRef<Proof>('Books').implement({
  description: 'The proof that the books balance.',
  fields: (t) => ({
    balanced: t.exposeBoolean('balanced', {
      description:
        'Whether every balance is the sum of its transfers, and the ledger bears out every payment, top-up and order.',
    }),
    transfers: t.exposeInt('transfers'),
    firstMismatch: t.string({
      nullable: true,
      description: 'The first row that is wrong: its table, its id, and what is wrong with it.',
      resolve: ({ firstFault }) => firstFault && `${firstFault.table} ${firstFault.row}: ${firstFault.detail}`,
    }),
    totals: t.expose('totals', { type: [LedgerTotal], description: 'They sum up to nothing.' }),
  }),
});
builder.queryFields((t) => ({
  books: t.field({
    type: BooksType,
    scope: 'operator',
    description: 'Proves that the books balance. Reads everything.',
    resolve: (_, __, context) => findBooks(context),
  }),
}));
