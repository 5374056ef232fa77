/**
 * Caches replies of shards to reads of an instance on the front thread while they are valid, so that reading an
 * unchanged instance wakes no other thread. A reply is used only for the tenant that received it.
 */

import { LRUCache } from 'lru-cache';
import { LIMITS } from '../../src/base/limits.js';
import type { Versions } from '../runtime/versions.js';

export type KeptReply = { readonly status: number; readonly body: string };

/** The key, and the objects around the text. */
const CHARACTERS_AROUND = 300;

export class KeptRecords {
  readonly #versions: Versions;
  readonly #kept = new LRUCache<string, { readonly stamp: number; readonly reply: KeptReply }>({
    maxSize: LIMITS.keptRecordsCharactersMax,
    maxEntrySize: LIMITS.keptRecordCharactersMax,
    sizeCalculation: ({ reply }) => reply.body.length + CHARACTERS_AROUND,
  });

  constructor(versions: Versions) {
    this.#versions = versions;
  }

  find(tenant: string, instance: string): KeptReply | undefined {
    const key = keyOf(tenant, instance);
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    if (this.#versions.isCurrent(kept.stamp)) return kept.reply;
    this.#kept.delete(key);
    return undefined;
  }

  keep(tenant: string, instance: string, stamp: number, reply: KeptReply): void {
    if (this.#versions.isCurrent(stamp)) this.#kept.set(keyOf(tenant, instance), { stamp, reply });
  }

  clear(): void {
    this.#kept.clear();
  }
}

/** The id comes first: all ids have the same length. */
function keyOf(tenant: string, instance: string): string {
  return `${instance} ${tenant}`;
}
