/** The inventory of boxes as a file of the operator's, JSON, which is read each time: it can be changed while all runs. */
import { readFile } from 'node:fs/promises';
import { Ajv, type JSONSchemaType } from 'ajv';
import type { Box, Inventory } from '../servers/drivers/bmc/box.ts';

const text = { type: 'string', minLength: 1, maxLength: 255 } as const;
const count = { type: 'integer', minimum: 1, maximum: 1_000_000_000 } as const;
const optional = { nullable: true } as const;
const BOXES: JSONSchemaType<Box[]> = {
  type: 'array',
  items: {
    type: 'object',
    additionalProperties: false,
    required: ['name', 'region', 'serviceCode', 'bmc', 'mac', 'disk', 'size'],
    properties: {
      name: { type: 'string', pattern: '^[a-z0-9][a-z0-9.-]{0,62}$' },
      region: text,
      serviceCode: text,
      bmc: {
        type: 'object',
        additionalProperties: false,
        required: ['protocol', 'address', 'user', 'password'],
        properties: {
          protocol: { type: 'string', enum: ['ipmi', 'redfish'] },
          // Never an option of ipmitool.
          address: { ...text, pattern: '^[^-]' },
          user: text,
          password: { type: 'string', maxLength: 255 },
          certificate: { type: 'string', ...optional },
        },
      },
      mac: { type: 'string', pattern: '^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$' },
      disk: { type: 'string', pattern: '^/dev/[A-Za-z0-9/_.:-]{1,200}$' },
      size: {
        type: 'object',
        additionalProperties: false,
        required: ['vcpus', 'memoryMb', 'diskGb'],
        properties: { vcpus: count, memoryMb: count, diskGb: count },
      },
      firmware: { type: 'string', enum: ['BIOS', 'UEFI'], ...optional },
    },
  },
};
const validate = new Ajv({ allErrors: true }).compile(BOXES);

/** @throws Error that names the place, and never the password, if the file is not what it should be */
export const boxesOf =
  (file: string): Inventory =>
  async () => {
    const boxes = parsed(file, await readFile(file, 'utf8'));
    if (!validate(boxes)) {
      const [wrong] = validate.errors!;
      throw new Error(`${file} is wrong at ${wrong!.instancePath || 'its beginning'}: ${wrong!.message}.`);
    }
    const twice = (property: 'name' | 'mac') =>
      new Set(boxes.map((box) => box[property].toLowerCase())).size < boxes.length && property;
    const repeated = twice('name') || twice('mac');
    if (repeated) throw new Error(`${file} is wrong: two boxes have the same ${repeated}.`);
    return boxes;
  };

/** What JSON.parse says of a file has a piece of it, and that may be a password. */
function parsed(file: string, content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    throw new Error(`${file} is wrong: it is not JSON.`);
  }
}
