/** What the operator's DNS was told last of each address; what servers want is compared with it. */
import { entity, inet, type RowOf, text } from '../database/table.ts';

export const ReverseDnsTold = entity('reverse_dns_told', {
  ip: { ...inet(), primary: true },
  ptr: text(),
});
export type ReverseDnsTold = RowOf<typeof ReverseDnsTold>;
