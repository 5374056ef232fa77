/**
 * The compiled plans of one shard, cached by the bytes of their definitions. Definitions are
 * immutable; only deletion takes one away, and blocks creations first (see `catalog.ts`).
 */

import { LRUCache } from 'lru-cache';
import type { Block, Hooks } from '../../schema/blocks.js';
import { compileUserSchema } from '../../schema/user-schema.js';
import { unavailable } from '../../src/base/errors.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { type CompiledPlan, compilePlan, type Plan } from '../../src/core/plan.js';
import type { Room } from '../runtime/room.js';
import { UnknownId } from '../runtime/unknown-id.js';
import type { CatalogLoads, SequenceRow } from './loads.js';

export interface StoredSequence {
  readonly id: string;
  readonly tenantId: string;
  readonly namespace: string;
  readonly name: string;
  readonly plan: Plan;
  /** What `input_schema` finds wrong with context.data; undefined when the sequence has none. */
  readonly checkInput: ((data: JsonValue) => string | undefined) | undefined;
}

/** Whoever looked a sequence up before so many deletions asks again. */
const DELETED_IDS_MAX = 1_000;

export class Plans implements Room {
  readonly #loader: Pick<CatalogLoads, 'sequence'>;
  readonly #cache = new LRUCache<string, StoredSequence>({ maxSize: LIMITS.planCacheBytes });
  readonly #loading = new Map<string, Promise<StoredSequence | undefined>>();
  readonly #blocked = new Set<string>();
  readonly #unknownId = new UnknownId();
  #deletions = 0;
  /** The ids of the latest, the newest last. */
  readonly #deleted: string[] = [];

  constructor(loader: Pick<CatalogLoads, 'sequence'>) {
    this.#loader = loader;
  }

  /** The plan if it is at hand. A blocked sequence is about to be deleted: it takes no instances. */
  get(sequenceId: string): StoredSequence | undefined {
    return this.#cache.get(sequenceId);
  }

  isBlocked(sequenceId: string): boolean {
    return this.#blocked.has(sequenceId);
  }

  block(sequenceId: string): void {
    this.#blocked.add(sequenceId);
  }

  /** Whether it was deleted is not known: it is read again when it is asked for. */
  unblock(sequenceId: string): void {
    if (this.isBlocked(sequenceId)) this.sequenceEvicted(sequenceId);
  }

  sequenceEvicted(sequenceId: string): void {
    this.#cache.delete(sequenceId);
    this.#blocked.delete(sequenceId);
    this.#deletions += 1;
    this.#deleted.push(sequenceId);
    if (this.#deleted.length > DELETED_IDS_MAX) this.#deleted.shift();
  }

  /** They are not of this cell any more: what is kept of them may be old when they are again. */
  tenantComes(tenant: string): void {
    for (const [id, { tenantId }] of this.#cache.entries()) {
      if (tenantId === tenant) this.sequenceEvicted(id);
    }
  }

  /** How many sequences have been deleted so far; see `checkUsable`. */
  get deletions(): number {
    return this.#deletions;
  }

  /**
   * For who is about to make an instance live that the count before a deletion must not miss.
   *
   * @param deletions as they were when the sequence was looked up: a later one may be of it
   * @throws EngineError 503 when the sequence is being deleted, or may just have been
   */
  checkUsable(sequenceId: string, deletions = this.#deletions): void {
    if (!this.isBlocked(sequenceId) && !this.#mayBeGone(sequenceId, deletions)) return;
    throw unavailable('ENG_OVERLOADED', `sequence ${sequenceId} is being deleted`);
  }

  #mayBeGone(sequenceId: string, deletions: number): boolean {
    const later = this.#deletions - deletions;
    if (later === 0) return false;
    return later > this.#deleted.length || this.#deleted.slice(-later).includes(sequenceId);
  }

  /** @returns undefined when there is no such sequence; rejects when the database cannot be asked */
  load(sequenceId: string): Promise<StoredSequence | undefined> {
    const cached = this.#cache.get(sequenceId);
    if (cached !== undefined) return Promise.resolve(cached);
    const running = this.#loading.get(sequenceId);
    if (running !== undefined) return running;
    const loading = this.#read(sequenceId).finally(() => this.#loading.delete(sequenceId));
    this.#loading.set(sequenceId, loading);
    return loading;
  }

  /**
   * The same for who names a sequence: one of another tenant is there after a read, like one that is not.
   *
   * @param tenantId of who asks, and has to look whose it is
   */
  async seek(sequenceId: string, tenantId: string): Promise<StoredSequence | undefined> {
    const cached = this.#cache.get(sequenceId);
    if (cached === undefined) return this.load(sequenceId);
    if (cached.tenantId !== tenantId) await this.#loader.sequence(this.#unknownId.next());
    return cached;
  }

  /**
   * The plan of one instance, which may run blocks of its own after those of its sequence. With any
   * it is not kept: few instances have them.
   *
   * @returns undefined when there is no such sequence; `ok: false` when they do not go together
   */
  async compile(sequenceId: string, injected: readonly Block[]): Promise<CompiledPlan | undefined> {
    if (injected.length === 0) {
      const stored = await this.load(sequenceId);
      return stored && { ok: true, plan: stored.plan };
    }
    const row = await this.#loader.sequence(sequenceId);
    if (row === undefined) return undefined;
    const { blocks, on_failure, on_cancel } = definitionOf(row);
    const { id, name, version } = row;
    const all = [...blocks, ...injected];
    return compilePlan({ id, name, version, blocks: all, on_failure, on_cancel }, whenUsed);
  }

  async #read(sequenceId: string): Promise<StoredSequence | undefined> {
    const deletions = this.#deletions;
    const row = await this.#loader.sequence(sequenceId);
    if (row === undefined) return undefined;
    // It may be the one that was deleted while its row was on the way.
    if (deletions !== this.#deletions) return this.#read(sequenceId);
    const definition = definitionOf(row);
    const { id, name, version } = row;
    const { blocks, on_failure, on_cancel } = definition;
    const compiled = compilePlan({ id, name, version, blocks, on_failure, on_cancel }, whenUsed);
    if (!compiled.ok) {
      throw new Error(`stored sequence ${row.id} does not compile: ${compiled.message}`);
    }
    const stored = {
      id: row.id,
      tenantId: row.tenant_id,
      namespace: row.namespace,
      name: row.name,
      plan: compiled.plan,
      checkInput: definition.input_schema == null ? undefined : whenUsed(definition.input_schema),
    };
    this.#cache.set(sequenceId, stored, { size: Math.max(1, row.definition.length) });
    return stored;
  }
}

interface StoredDefinition extends Hooks {
  readonly blocks: readonly Block[];
  readonly input_schema?: JsonObject | null;
}

function definitionOf(row: SequenceRow): StoredDefinition {
  return JSON.parse(row.definition);
}

/** Compiling a schema takes half a millisecond, so it waits for the first value. */
function whenUsed(schema: JsonObject): (value: JsonValue) => string | undefined {
  let check: ((value: JsonValue) => string | undefined) | undefined;
  return (value) => {
    check ??= compileUserSchema(schema);
    return check(value);
  };
}
