/** The builder of the schema, the TypeScript types of its scalars, and a short notation of types. */
import SchemaBuilder, { type InputFieldMap, type InputShapeFromFields, type ObjectFieldsShape } from '@pothos/core';
import type { PeeringDocument } from '../entities/transparency/transparency.ts';
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
    /** The first millisecond of the day in UTC. */
    Date: Same<Date>;
    /** The time. */
    RangeStart: Same<Date>;
    /** The time, exclusive. */
    RangeEnd: Same<Date>;
    TimeOrder: Same<'-created_at' | 'created_at'>;
    AuditAction: Same<string>;
    /** Micro-USD in TypeScript, US dollars on the wire. */
    Usd: Same<bigint>;
    TopUpAmount: Same<bigint>;
    JSON: Same<unknown>;
    AlertDays: Same<number>;
    TokenDays: Same<number>;
    AccountLimit: Same<number>;
    Labels: Same<Record<string, string>>;
    LabelSelector: Same<string>;
    ReverseDnsList: Same<{ ip: string; ptr: string }[]>;
    Amount: Same<number>;
    DiskName: Same<string>;
    Cidr: Same<string>;
    HostName: Same<string>;
    IpAddress: Same<string>;
    Mac: Same<string>;
    Overcommit: Same<number>;
    Terabytes: Same<number>;
    Latitude: Same<number>;
    Longitude: Same<number>;
    ClientText: Same<string>;
    ClientUri: Same<string>;
    Code: Same<string>;
    CoinCode: Same<string>;
    CurrentPassword: Same<string>;
    Cursor: Same<string>;
    Ed25519Key: Same<string>;
    Email: Same<string>;
    Empty: Same<Record<string, never>>;
    EpochSeconds: Same<Date>;
    EventFilter: Same<string[]>;
    Hostname: Same<string>;
    HttpsUrl: Same<string>;
    IpAllowlist: Same<string[]>;
    KeyName: Same<string>;
    Line: Same<string>;
    MessageBody: Same<string>;
    MessageSubject: Same<string>;
    OauthParameter: Same<string>;
    OperatorName: Same<string>;
    PageLimit: Same<number>;
    DigestNumber: Same<number>;
    Paragraph: Same<string>;
    Password: Same<string>;
    PeeringDocument: Same<PeeringDocument>;
    Prose: Same<string>;
    PgpKey: Same<string>;
    PublicKey: Same<string>;
    RootPassword: Same<string>;
    ScopeList: Same<string>;
    /** Micro-USD in TypeScript, US dollars on the wire. */
    UsdLimit: Same<bigint>;
    Month: Same<string>;
    Slug: Same<string>;
    Tags: Same<string[]>;
    Title: Same<string>;
    SshKeyIds: Same<string[]>;
    ProofOfWork: Same<string>;
    Token: Same<string>;
    TotpCode: Same<string>;
    UserData: Same<string>;
    WaitSeconds: Same<number>;
    WebhookDescription: Same<string>;
    WebhookUrl: Same<string>;
    X402Payment: Same<string>;
  };
}>({
  plugins: ['scope'],
  defaultFieldNullability: false,
});

builder.queryType({ description: 'Reads.' });
builder.mutationType({ description: 'Changes.' });
builder.subscriptionType({ description: 'Updates. The first message is the present state.' });

type Types = (typeof builder)['$inferSchemaTypes'];

/** Defines an object type. `Row` is the TypeScript type of its values. */
export const objectType = <Row>(name: string, description: string, fields: ObjectFieldsShape<Types, Row>) =>
  builder.objectRef<Row>(name).implement({ description, fields });

/** Defines an input type. */
export const inputType = <Fields extends InputFieldMap>(
  name: string,
  fields: (t: PothosSchemaTypes.InputFieldBuilder<Types, 'InputObject'>) => Fields,
): PothosSchemaTypes.InputObjectRef<Types, InputShapeFromFields<Fields>> => builder.inputType(name, { fields });

/** Describes the argument by which a caller proves the second factor again. */
export const STEP_UP = 'The code for step_up_required.';

/** Defines an enum. */
export const enumType = <const Values extends readonly string[]>(name: string, description: string, values: Values) =>
  builder.enumType(name, { description, values });
