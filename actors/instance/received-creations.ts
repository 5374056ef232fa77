/** Makes a second delivery of a creation from another shard harmless. */

import { lastUsed } from '../../src/base/quota/last-used.js';
import { idempotencyKeyOf } from '../../src/core/creation-key.js';
import type { NewInstance } from './record.js';

/** More than arrive while a second delivery of a message is possible. */
const IDS_MAX = 10_000;

export class ReceivedCreations {
  readonly #ids = lastUsed<string, true>(IDS_MAX);

  /** False for an idempotency key, whose row shows a repetition. Without one, the sender has given an id of its own. */
  isSecond({ id, body }: Pick<NewInstance, 'id' | 'body'>): boolean {
    if (idempotencyKeyOf(body) !== null) return false;
    const isSecond = this.#ids.has(id);
    this.#ids.set(id, true);
    return isSecond;
  }
}
