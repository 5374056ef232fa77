/**
 * Assigns a key to a bucket of a canary (docs/releases.md): 64-bit FNV-1a over the 16 bytes of the release's id and the
 * UTF-8 bytes of the key, modulo 100. The bucket of a key is stable, a higher percentage only adds keys, and releases
 * shuffle independently. The hash is two 32-bit halves, because BigInt is ten times as slow. Pure.
 */

/** The hash state after the bytes of a release's id. */
export interface CohortSeed {
  readonly high: number;
  readonly low: number;
}

const OFFSET_BASIS: CohortSeed = { high: 0xcbf29ce4, low: 0x84222325 };
/** The prime is 2^40 + this: the first term shifts the low half into the high one, by 8. */
const PRIME_LOW = 0x1b3;
const HALF = 0x1_0000_0000;

const UTF8 = new TextEncoder();
const SCRATCH = new Uint8Array(256);

export function cohortSeed(releaseId: string): CohortSeed {
  const hex = releaseId.replaceAll('-', '');
  const bytes = Uint8Array.from({ length: 16 }, (_, at) =>
    Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16),
  );
  return mix(OFFSET_BASIS, bytes, bytes.length);
}

/** 0 … 99. */
export function bucketOf(seed: CohortSeed, key: string): number {
  const { high, low } = mixKey(seed, key);
  return ((high % 100) * (HALF % 100) + (low % 100)) % 100;
}

/** Fast path for short ASCII keys: no array of bytes. */
function mixKey(seed: CohortSeed, key: string): CohortSeed {
  if (key.length <= SCRATCH.length) {
    let at = 0;
    for (; at < key.length; at++) {
      const code = key.charCodeAt(at);
      if (code >= 0x80) break;
      SCRATCH[at] = code;
    }
    if (at === key.length) return mix(seed, SCRATCH, at);
  }
  const bytes = UTF8.encode(key);
  return mix(seed, bytes, bytes.length);
}

function mix({ high, low }: CohortSeed, bytes: Uint8Array, length: number): CohortSeed {
  for (let at = 0; at < length; at++) {
    const mixed = (low ^ (bytes[at] ?? 0)) >>> 0;
    const product = mixed * PRIME_LOW;
    const carry = Math.floor(product / HALF);
    high = (Math.imul(high, PRIME_LOW) + carry + (mixed << 8)) >>> 0;
    low = product >>> 0;
  }
  return { high, low };
}
