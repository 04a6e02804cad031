/** The differences between Bitcoin and its descendants. */
import { bech32 } from '@scure/base';
import { encodeBase58, hash160 } from '../extended-key.ts';

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
  /** Whether its node returns full blocks. If not, the reader asks for each transaction, and the node needs an index. */
  fullBlocks: boolean;
  confirmations: number;
}

const [XPUB, ZPUB, TPUB, VPUB, DGUB] = [0x0488b21e, 0x04b24746, 0x043587cf, 0x045f1cf6, 0x02facafd];

/** Native SegWit (BIP 141, 173): the address that BIP 84 derives. */
const p2wpkh = (prefix: string) => (publicKey: Uint8Array) =>
  bech32.encode(prefix, [0, ...bech32.toWords(hash160(publicKey))]);
/** The address that BIP 44 derives. */
const p2pkh = (version: number) => (publicKey: Uint8Array) => encodeBase58(version, hash160(publicKey));

const BITCOIN = { code: 'BTC', name: 'Bitcoin', scheme: 'bitcoin', fullBlocks: true, confirmations: 2 };
const LITECOIN = { code: 'LTC', name: 'Litecoin', scheme: 'litecoin', fullBlocks: true, confirmations: 6 };
// Its node descends from Bitcoin Core 0.14.
const DOGECOIN = { code: 'DOGE', name: 'Dogecoin', scheme: 'dogecoin', fullBlocks: false, confirmations: 20 };

/** The chains by their names in the gateways file. Coins of test chains are worthless. */
export const CHAINS: Readonly<Record<string, UtxoChain>> = {
  bitcoin: {
    ...BITCOIN,
    genesis: '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
    versions: [XPUB, ZPUB],
    addressOf: p2wpkh('bc'),
  },
  'bitcoin-regtest': {
    ...BITCOIN,
    genesis: '0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206',
    versions: [TPUB, VPUB],
    addressOf: p2wpkh('bcrt'),
  },
  litecoin: {
    ...LITECOIN,
    genesis: '12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2',
    versions: [XPUB, ZPUB],
    addressOf: p2wpkh('ltc'),
  },
  'litecoin-regtest': {
    ...LITECOIN,
    genesis: '530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9',
    versions: [TPUB, VPUB],
    addressOf: p2wpkh('rltc'),
  },
  dogecoin: {
    ...DOGECOIN,
    genesis: '1a91e3dace36e2be3bf030a65679fe821aa1d6ef92e7c9902eb318182c355691',
    versions: [XPUB, DGUB],
    addressOf: p2pkh(0x1e),
  },
  'dogecoin-regtest': {
    ...DOGECOIN,
    genesis: '3d2160a3b5dc4a9d62e7e66a295f70313ac808440ef7400d6c0772171ce973a5',
    versions: [TPUB],
    addressOf: p2pkh(0x6f),
  },
};
