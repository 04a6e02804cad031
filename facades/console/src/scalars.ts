/** How people type the scalars of the schema. A test compares the names with their JSON Schemas. */

/** The scalars that are numbers on the wire. All others are texts. */
export const NUMBERS: ReadonlySet<string> = new Set([
  ...['Int', 'Float', 'Usd', 'Amount', 'TopUpAmount', 'UsdLimit', 'PageLimit', 'AlertDays', 'TokenDays'],
  'AccountLimit',
  ...['Overcommit', 'Terabytes', 'Latitude', 'Longitude', 'DigestNumber', 'WaitSeconds'],
]);
/** The scalars whose texts have lines. */
export const LONG: ReadonlySet<string> = new Set(['Prose', 'MessageBody', 'Paragraph', 'UserData', 'PublicKey']);
