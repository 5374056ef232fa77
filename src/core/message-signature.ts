/** Signatures of Standard Webhooks, version 1, with which tasks are delivered (docs/push-workers.md). Pure. */

import { createHmac } from 'node:crypto';
import { decodeBase64 } from './sealing/base64.js';

const PREFIX = 'whsec_';

/** The bytes behind `whsec_` in base64, or the text itself. */
function keyBytes(secret: string): Buffer | undefined {
  if (!secret.startsWith(PREFIX)) return Buffer.from(secret);
  const bytes = decodeBase64(secret.slice(PREFIX.length));
  return bytes?.length === 0 ? undefined : bytes;
}

/** Why the secret cannot be a key; undefined: it can. */
export function keyProblem(secret: string): string | undefined {
  return keyBytes(secret) === undefined ? `must have base64 after ${PREFIX}` : undefined;
}

/**
 * The value of `webhook-signature`.
 * @param timestamp Unix seconds, as `webhook-timestamp` has them
 * @throws RangeError for a secret with a `keyProblem`
 */
export function messageSignature(
  secret: string,
  {
    id,
    timestamp,
    body,
  }: { readonly id: string; readonly timestamp: number; readonly body: string },
): string {
  const key = keyBytes(secret);
  if (key === undefined) throw new RangeError('the secret is no key');
  const digest = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return `v1,${digest}`;
}
