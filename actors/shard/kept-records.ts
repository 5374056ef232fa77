/**
 * Replies of shards to reads of an instance, cached on the front thread while they are valid, so that
 * reading an unchanged instance wakes no other thread. Each reply is cached for the tenant that received
 * it, and used for no other.
 */

import { LRUCache } from 'lru-cache';
import { LIMITS } from '../../src/base/limits.js';
import type { Versions } from '../runtime/versions.js';

export interface KeptReply {
  readonly status: number;
  readonly body: string;
}

interface Kept {
  readonly stamp: number;
  readonly reply: KeptReply;
}

/** Its key, and the objects around it. */
const CHARACTERS_AROUND = 300;

export class KeptRecords {
  readonly #versions: Versions;
  readonly #kept = new LRUCache<string, Kept>({
    maxSize: LIMITS.keptRecordsCharactersMax,
    maxEntrySize: LIMITS.keptRecordCharactersMax,
    sizeCalculation: ({ reply }) => reply.body.length + CHARACTERS_AROUND,
  });

  constructor(versions: Versions) {
    this.#versions = versions;
  }

  /** @returns undefined when the shard has to be asked */
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

/** The id first: all ids have the same length. */
function keyOf(tenant: string, instance: string): string {
  return `${instance} ${tenant}`;
}
