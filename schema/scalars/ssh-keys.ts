import { scalar, text } from './scalar.ts';

scalar('PublicKey', 'One line of an OpenSSH public key file.', text(1, 16_384));
