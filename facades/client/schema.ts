/** A JSON Schema, as the OpenAPI document uses it. */
export interface Schema {
  $ref?: string;
  anyOf?: Schema[];
  type?: string;
  description?: string;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: Schema | boolean;
}

/** The name of the type to which a schema refers. */
export const nameOf = ({ $ref }: Schema): string | undefined => $ref?.split('/').at(-1);
