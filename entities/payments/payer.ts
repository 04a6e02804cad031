/** Whether an account ever had money: by a payment, or from the operator. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';

/** Whether the account $1 has a transfer. Its first one always brings money. */
export const HAS_PAID = statement({ paid: column.boolean() }, { name: 'has paid' })`
  select exists (select from transfer where account_id = $1) as paid`;
