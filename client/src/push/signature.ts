/** Verifies signatures of Standard Webhooks with Web Crypto, which every platform has. */

const PREFIX = 'whsec_';
const ENCODER = new TextEncoder();

type Bytes = Uint8Array<ArrayBuffer>;
/** The types of some platforms have no name for it. */
export type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

/** The key behind `whsec_` in base64, or the text itself. @throws TypeError if it is neither */
export async function importKey(secret: string): Promise<Key> {
  if (typeof secret !== 'string' || secret === '') throw new TypeError('secret must be a text');
  const bytes = secret.startsWith(PREFIX)
    ? bytesOf(secret.slice(PREFIX.length))
    : (ENCODER.encode(secret) as Bytes);
  if (bytes === undefined || bytes.length === 0) {
    throw new TypeError(`secret must have base64 after ${PREFIX}`);
  }
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, [
    'verify',
  ]);
}

/**
 * @param keys any of them may have signed, so that a secret can be replaced
 * @param now Unix milliseconds
 * @param toleranceMs how far the time of the message may be from now: a captured one is of no use later
 * @returns why the message is refused; undefined: it is genuine
 */
export async function refusalOf(
  headers: Headers,
  body: string,
  keys: readonly Key[],
  { now, toleranceMs }: { readonly now: number; readonly toleranceMs: number },
): Promise<string | undefined> {
  const id = headers.get('webhook-id');
  const time = headers.get('webhook-timestamp');
  const signatures = headers.get('webhook-signature');
  if (!id || !time || !signatures) return 'the request is not signed';
  const age = now - Number(time) * 1_000;
  if (!/^\d+$/.test(time) || Math.abs(age) > toleranceMs) {
    return 'the time of the signature is too far from now';
  }
  const signed = ENCODER.encode(`${id}.${time}.${body}`);
  for (const text of signatures.split(' ')) {
    const signature = text.startsWith('v1,') ? bytesOf(text.slice(3)) : undefined;
    if (signature === undefined) continue;
    for (const key of keys) {
      // Takes the same time for every wrong signature.
      if (await crypto.subtle.verify('HMAC', key, signature, signed)) return undefined;
    }
  }
  return 'the signature is wrong';
}

function bytesOf(base64: string): Bytes | undefined {
  try {
    return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  } catch {
    return undefined;
  }
}
