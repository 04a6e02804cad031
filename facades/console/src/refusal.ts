/** A refusal of the service, in its own words. */
export class Refusal extends Error {
  readonly code: string;
  /** The words against single fields. */
  readonly fields: { field: string; message: string }[];
  constructor(message: string, code: string, fields: Refusal['fields'] = []) {
    super(message || fields.map((one) => `${one.field}: ${one.message}`).join(' '));
    this.code = code;
    this.fields = fields;
  }
}
