/** The differences between Bitcoin and its descendants. */
import { bech32, bech32m } from '@scure/base';
import { decodeBase58, encodeBase58, hash160 } from '../extended-key.ts';

export interface UtxoChain {
  code: string;
  name: string;
  /** The scheme of its URIs (BIP 21), and the name of its network. */
  scheme: string;
  /** The hash of its first block. */
  genesis: string;
  /** The first bytes of extended public keys for its addresses (BIP 32, SLIP 132). */
  versions: readonly number[];
  addressOf(publicKey: Uint8Array): string;
  /** Spells an address as its node does; undefined: it is no address of the chain. */
  spell(address: string): string | undefined;
  /** Whether its node returns full blocks. If not, the reader asks for each transaction, and the node needs an index. */
  fullBlocks: boolean;
  confirmations: number;
  /** A node without a new block for so long counts as stopped. Absent: blocks come at the wish of a test. */
  staleSeconds?: number;
}

const [XPUB, ZPUB, TPUB, VPUB, DGUB] = [0x0488b21e, 0x04b24746, 0x043587cf, 0x045f1cf6, 0x02facafd];

/** Native SegWit (BIP 141, 173): the address that BIP 84 derives. */
const p2wpkh = (prefix: string) => (publicKey: Uint8Array) =>
  bech32.encode(prefix, [0, ...bech32.toWords(hash160(publicKey))]);
/** The address that BIP 44 derives. */
const p2pkh = (version: number) => (publicKey: Uint8Array) => encodeBase58(version, hash160(publicKey));

/** Whether it is a witness program in lower case: version 0 by BIP 173, and later ones by BIP 350. */
function isSegwit(address: string, prefix: string): boolean {
  for (const [coding, isOf] of [
    [bech32, (version: number, size: number) => version === 0 && (size === 20 || size === 32)],
    [bech32m, (version: number, size: number) => version > 0 && version <= 16 && size >= 2 && size <= 40],
  ] as const) {
    const decoded = coding.decodeUnsafe(address);
    const [version, ...words] = decoded?.words ?? [];
    const program = coding.fromWordsUnsafe(words);
    if (decoded?.prefix === prefix && program && isOf(version!, program.length)) return true;
  }
  return false;
}
/**
 * @param versions the first bytes of addresses in Base58, and those that its node writes for them
 * @param prefix the prefix of SegWit addresses; undefined: the chain has none
 */
const spelling = (versions: Readonly<Record<number, number>>, prefix?: string) => (address: string) => {
  const lower = address.toLowerCase();
  const isOneCase = address === lower || address === address.toUpperCase();
  if (prefix && isOneCase && isSegwit(lower, prefix)) return lower;
  const [version = -1, ...hash] = decodeBase58(address) ?? [];
  const own = versions[version];
  return own === undefined || hash.length !== 20 ? undefined : encodeBase58(own, Uint8Array.from(hash));
};

const BITCOIN = { code: 'BTC', name: 'Bitcoin', scheme: 'bitcoin', fullBlocks: true, confirmations: 2 };
const LITECOIN = { code: 'LTC', name: 'Litecoin', scheme: 'litecoin', fullBlocks: true, confirmations: 6 };
// Its node descends from Bitcoin Core 0.14.
const DOGECOIN = { code: 'DOGE', name: 'Dogecoin', scheme: 'dogecoin', fullBlocks: false, confirmations: 20 };

/** The chains by their names in the gateways file. Coins of test chains are worthless. */
export const CHAINS: Readonly<Record<string, UtxoChain>> = {
  bitcoin: {
    ...BITCOIN,
    staleSeconds: 7_200,
    genesis: '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
    versions: [XPUB, ZPUB],
    addressOf: p2wpkh('bc'),
    spell: spelling({ 0: 0x00, 5: 0x05 }, 'bc'),
  },
  'bitcoin-regtest': {
    ...BITCOIN,
    genesis: '0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206',
    versions: [TPUB, VPUB],
    addressOf: p2wpkh('bcrt'),
    spell: spelling({ 111: 0x6f, 196: 0xc4 }, 'bcrt'),
  },
  litecoin: {
    ...LITECOIN,
    staleSeconds: 3_600,
    genesis: '12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2',
    versions: [XPUB, ZPUB],
    addressOf: p2wpkh('ltc'),
    // Scripts once had the first byte of Bitcoin's.
    spell: spelling({ 48: 0x30, 50: 0x32, 5: 0x32 }, 'ltc'),
  },
  'litecoin-regtest': {
    ...LITECOIN,
    genesis: '530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9',
    versions: [TPUB, VPUB],
    addressOf: p2wpkh('rltc'),
    spell: spelling({ 111: 0x6f, 58: 0x3a, 196: 0x3a }, 'rltc'),
  },
  dogecoin: {
    ...DOGECOIN,
    staleSeconds: 3_600,
    genesis: '1a91e3dace36e2be3bf030a65679fe821aa1d6ef92e7c9902eb318182c355691',
    versions: [XPUB, DGUB],
    addressOf: p2pkh(0x1e),
    spell: spelling({ 30: 0x1e, 22: 0x16 }),
  },
  'dogecoin-regtest': {
    ...DOGECOIN,
    genesis: '3d2160a3b5dc4a9d62e7e66a295f70313ac808440ef7400d6c0772171ce973a5',
    versions: [TPUB],
    addressOf: p2pkh(0x6f),
    spell: spelling({ 111: 0x6f, 196: 0xc4 }),
  },
};
