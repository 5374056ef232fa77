/** The limit of one sender, who has no key, for one trigger. */

import { EngineError } from '../../../src/base/errors.js';
import { lastUsed, valueFor } from '../../../src/base/quota/last-used.js';
import { SecondLimit } from '../../../src/base/quota/rates.js';

export const WEBHOOKS_PER_SECOND_MAX = 300;
/** The count of an evicted sender starts again. */
const SENDERS_REMEMBERED = 10_000;

const TOO_MANY = new EngineError(
  'ENG_TOO_MANY_WEBHOOKS',
  `too many requests: more than ${WEBHOOKS_PER_SECOND_MAX} webhooks to one trigger in a second`,
  1_000,
);

/** Counts webhooks before any read. */
export class SenderLimit {
  readonly #limits = lastUsed<string, SecondLimit>(SENDERS_REMEMBERED);

  /** @throws EngineError 429 */
  take(sender: string, nowMs: number): void {
    const limit = valueFor(this.#limits, sender, () => new SecondLimit(WEBHOOKS_PER_SECOND_MAX));
    if (!limit.admits(nowMs)) throw TOO_MANY;
  }
}
