/** The builder of the schema, and the TypeScript types of its scalars. */
import SchemaBuilder from '@pothos/core';
import type { PeeringDocument } from '../entities/transparency.ts';
import type { Context } from '../resolvers/context.ts';
import './scope.ts';

interface Same<T> {
  Input: T;
  Output: T;
}

export const builder = new SchemaBuilder<{
  Context: Context;
  DefaultFieldNullability: false;
  Scalars: {
    ID: Same<string>;
    DateTime: Same<Date>;
    /** Micro-USD inside, US dollars outside. */
    Usd: Same<bigint>;
    TopUpAmount: Same<bigint>;
    JSON: Same<unknown>;
    AlertDays: Same<number>;
    Labels: Same<Record<string, string>>;
    Code: Same<string>;
    CoinCode: Same<string>;
    Cursor: Same<string>;
    Ed25519Key: Same<string>;
    Email: Same<string>;
    Hostname: Same<string>;
    HttpsUrl: Same<string>;
    KeyName: Same<string>;
    Line: Same<string>;
    PageLimit: Same<number>;
    Paragraph: Same<string>;
    Password: Same<string>;
    PeeringDocument: Same<PeeringDocument>;
    Prose: Same<string>;
    PublicKey: Same<string>;
    RootPassword: Same<string>;
    ScopeList: Same<string>;
    Slug: Same<string>;
    Tags: Same<string[]>;
    Title: Same<string>;
    SshKeyIds: Same<string[]>;
    UserData: Same<string>;
    WaitSeconds: Same<number>;
  };
}>({
  plugins: ['scope'],
  defaultFieldNullability: false,
});

builder.queryType({ description: 'What can be read.' });
builder.mutationType({ description: 'What can be done.' });
builder.subscriptionType({ description: 'What can be watched; the first message is the present state.' });
