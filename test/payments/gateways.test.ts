import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readGateways } from '../../provisioning/payments/gateways.ts';
import { atEnd } from '../setup/end.ts';
import { newFolder, removeFolder } from '../setup/spawn.ts';

const folder = newFolder();
atEnd(() => removeFolder(folder));
const file = join(folder, 'payments.json');
const write = (content: unknown, mode = 0o600) => {
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  chmodSync(file, mode);
};

describe('The payments file', () => {
  it('is refused while other users can read it', () => {
    write({ gateways: [] }, 0o640);
    expect(() => readGateways(file)).toThrow('lets other users read it. Run: chmod 600');
  });

  it.each([
    ['not JSON', `${file} is not valid JSON`],
    [{}, "must have required property 'gateways'"],
    [{ gateways: {} }, '/gateways must be array'],
    [{ gateways: [{}] }, "/gateways/0 must have required property 'driver'"],
    [{ gateways: [], gate: [] }, 'must NOT have additional properties'],
    [{ gateways: [{ driver: 'cash' }] }, '/gateways/0: the driver cash does not exist'],
  ])('says what is wrong, and where: %j', (content, sentence) => {
    write(content);
    expect(() => readGateways(file)).toThrow(sentence);
  });

  it('is named if it does not exist, and no error quotes a broken one', () => {
    expect(() => readGateways(join(folder, 'absent.json'))).toThrow('absent.json, which does not exist');
    write('{"api_key": secret}');
    expect(() => readGateways(file)).toThrow(/^\S+ is not valid JSON( at position \d+.*)?$/);
    expect(() => readGateways(file)).not.toThrow('secret');
  });

  it('may be empty, so that no top-up is possible', () => {
    write({ gateways: [] });
    expect(readGateways(file)).toEqual({ payments: [], rates: [] });
  });
});
