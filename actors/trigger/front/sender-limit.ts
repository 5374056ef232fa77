/**
 * How much each sender may send of what nobody is asked a key for: counted in memory by the second, and
 * refused beyond that, before anything is looked up.
 */

import { EngineError } from '../../../src/base/errors.js';
import { lastUsed } from '../../../src/base/last-used.js';

export const WEBHOOKS_PER_SECOND_MAX = 300;
/** Of those that were not heard of for longest it is as if they came for the first time. */
const SENDERS_REMEMBERED = 10_000;

const TOO_MANY = new EngineError(
  'ENG_TOO_MANY_WEBHOOKS',
  `too many requests: more than ${WEBHOOKS_PER_SECOND_MAX} webhooks to one trigger in a second`,
  1_000,
);

export class SenderLimit {
  readonly #counts = lastUsed<string, { readonly second: number; count: number }>(
    SENDERS_REMEMBERED,
  );

  /** @throws EngineError 429 */
  take(sender: string, nowMs: number): void {
    const second = Math.floor(nowMs / 1_000);
    const known = this.#counts.get(sender);
    if (known?.second !== second) this.#counts.set(sender, { second, count: 1 });
    else if (known.count >= WEBHOOKS_PER_SECOND_MAX) throw TOO_MANY;
    else known.count += 1;
  }
}
