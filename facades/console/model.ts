/** The root fields and types of the schema, as the forms and lists of the console read them. */
import { graphqlSync } from 'graphql';
import { schema } from '../../schema/index.ts';

const TYPE = 'kind name ofType { kind name ofType { kind name ofType { kind name } } }';
const VALUE = `name description defaultValue type { ${TYPE} }`;
const QUERY = `{ __schema {
  queryType { fields { name description args { ${VALUE} } type { ${TYPE} } } }
  mutationType { fields { name description args { ${VALUE} } type { ${TYPE} } } }
  types { name kind description enumValues { name } inputFields { ${VALUE} } fields { name type { ${TYPE} } } }
} }`;

/** Returns the model as JSON. It has no secret: the schema is part of the source. */
export const modelText = (): string => JSON.stringify(graphqlSync({ schema, source: QUERY }).data!.__schema);
