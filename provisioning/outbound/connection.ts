/**
 * A connection to a customer's URL. It counts each byte of the receiver, also those of TLS. Otherwise a receiver could keep the
 * thread of all outbound calls busy. Ways are interim answers, records of TLS without end, and certificates that OpenSSL
 * checks for seconds.
 */
import { connect, isIP, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { DEFAULT_CIPHERS, connect as secure } from 'node:tls';
import { hostOf } from './public-address.ts';
import { ThreadTime } from './thread-time.ts';

/** The bytes of a receiver until its certificate is checked. Usual chains of certificates have two to six kilobytes. */
const HANDSHAKE_BYTES_MAX = 16 * 1024;
/** The bytes beside the body of an answer: TLS, interim answers and headers. One read of a socket brings up to 64 KB. */
const OVERHEAD_BYTES_MAX = HANDSHAKE_BYTES_MAX + 2 * 64 * 1024;
/** The records of TLS in a connection. A usual answer has ten. Small ones can ask for new keys again and again. */
const RECORDS_MAX = 100;
/** Without DHE, in which the receiver chooses the size of the numbers, and without RSA as key exchange. */
const CIPHERS = `${DEFAULT_CIPHERS}:!kDHE:!kRSA`;

const TIME = new ThreadTime();

/**
 * Connects to an address for a URL.
 * @param account the account whose time the connection uses
 * @param bodyBytesMax how many bytes of an answer the caller reads
 */
export function connectTo(url: URL, address: string, account: string, bodyBytesMax: number): Duplex {
  const isSecure = url.protocol === 'https:';
  const atTurn = (work: () => void) => TIME.atTurn(account, work);
  const counted = new CountedConnection(connect(Number(url.port || (isSecure ? 443 : 80)), address), atTurn);
  counted.bytesMax = isSecure ? HANDSHAKE_BYTES_MAX : bodyBytesMax + OVERHEAD_BYTES_MAX;
  if (!isSecure) return counted;
  counted.records = new Records();
  const host = hostOf(url);
  const socket = secure({
    ...{ socket: counted, host, servername: isIP(host) ? '' : host },
    ...{ ALPNProtocols: ['http/1.1'], ciphers: CIPHERS, minVersion: 'TLSv1.2' },
  });
  return socket.once('secureConnect', () => {
    counted.bytesMax = bodyBytesMax + OVERHEAD_BYTES_MAX;
  });
}

/** Ends when the other side has sent too many bytes. TLS and HTTP read the bytes at the turn of the account. */
class CountedConnection extends Duplex {
  bytesMax = 0;
  records: Records | undefined;
  #bytes = 0;
  readonly #raw: Socket;

  constructor(raw: Socket, atTurn: (work: () => void) => void) {
    super();
    this.#raw = raw;
    raw
      .on('data', (chunk: Buffer) => {
        raw.pause();
        atTurn(() => this.#take(chunk));
      })
      .on('end', () => atTurn(() => void (this.destroyed || this.push(null))))
      .on('error', (error) => atTurn(() => void this.destroy(error)))
      .on('close', () => atTurn(() => void this.destroy()));
  }

  #take(chunk: Buffer): void {
    if (this.destroyed) return;
    this.#bytes += chunk.length;
    if (this.#bytes > this.bytesMax || this.records?.allow(chunk) === false)
      this.destroy(new Error('The receiver sends too much.'));
    else if (this.push(chunk)) this.#raw.resume();
  }

  override _read(): void {
    this.#raw.resume();
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#raw.write(chunk, encoding, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#raw.end(done);
  }

  /** HTTP calls this after an answer, as with a socket. */
  destroySoon(): void {
    this.destroy();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#raw.destroy();
    done(error);
  }
}

/** The header of a record: its type, its version, and the length of the rest (RFC 8446, section 5.1). */
const HEADER_BYTES = 5;
const [CHANGE_CIPHER_SPEC, HANDSHAKE] = [20, 22];
/** The last record of a handshake: the Finished of TLS 1.2, or the ServerHello of TLS 1.3 after a retry. */
const LAST_BYTES_MAX = 2048;

/**
 * Looks at the records of TLS in a stream of bytes, before OpenSSL does. In TLS 1.2, a record of 16 KB after the handshake could
 * ask 4,000 times for another one.
 */
class Records {
  #count = 0;
  #header: number[] = [];
  /** The bytes of the present record that have not come. */
  #left = 0;
  #hasChanged = false;
  #hasLast = false;

  /** Whether OpenSSL may read the bytes. */
  allow(chunk: Buffer): boolean {
    for (let at = 0; at < chunk.length; ) {
      if (this.#left) {
        const skipped = Math.min(this.#left, chunk.length - at);
        this.#left -= skipped;
        at += skipped;
        continue;
      }
      this.#header.push(chunk[at++]!);
      if (this.#header.length < HEADER_BYTES) continue;
      const [type, , , high, low] = this.#header as [number, number, number, number, number];
      this.#header = [];
      this.#left = high * 256 + low;
      if (!this.#allowOne(type, this.#left)) return false;
    }
    return true;
  }

  #allowOne(type: number, bytes: number): boolean {
    if (type === CHANGE_CIPHER_SPEC) this.#hasChanged = true;
    if (type !== HANDSHAKE || !this.#hasChanged) return ++this.#count <= RECORDS_MAX;
    if (this.#hasLast || bytes > LAST_BYTES_MAX) return false;
    this.#hasLast = true;
    return true;
  }
}
