/** New SSH keys, as ssh-keygen prints them. */
import { generateKeyPairSync } from 'node:crypto';

const KIND = 'ssh-ed25519';

export function newSshKeyLine(): string {
  const { x } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  const members = [Buffer.from(KIND), Buffer.from(x!, 'base64url')];
  const blob = members.flatMap((member) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(member.length);
    return [length, member];
  });
  return `${KIND} ${Buffer.concat(blob).toString('base64')} soak@laptop`;
}
