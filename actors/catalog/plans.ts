/**
 * A cache of compiled plans on one shard, limited by the size of their definitions, which are immutable. A deletion
 * blocks the sequence first (see `catalog.ts`): the shard creates no more instances of it, and confirms to the first
 * shard when the earlier ones are durable.
 */

import { LRUCache } from 'lru-cache';
import type { Block, Hooks } from '../../schema/blocks.js';
import type { CancelOnMember } from '../../schema/cancel-on.js';
import type { FlowLimits } from '../../schema/flow-limits.js';
import type { SearchableMember } from '../../schema/search.js';
import { compileUserSchema } from '../../schema/user-schema.js';
import { unavailable } from '../../src/base/errors.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { valueFor } from '../../src/base/quota/last-used.js';
import {
  type CollectingMembers,
  type CollectingPlan,
  compileCollecting,
} from '../../src/core/collecting.js';
import { type CompiledPlan, compilePlan, type Plan } from '../../src/core/plan.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Messages, Room } from '../runtime/room.js';
import { UnknownId } from '../runtime/unknown-id.js';
import type { CatalogLoads, SequenceRow } from './loads.js';

export interface StoredSequence {
  readonly id: string;
  readonly tenantId: string;
  readonly namespace: string;
  readonly name: string;
  readonly plan: Plan;
  /** Validates context.data by `input_schema`; undefined when the sequence has none. */
  readonly checkInput: ((data: JsonValue) => string | undefined) | undefined;
  /** Undefined: each creation starts its own instance. */
  readonly collecting: CollectingPlan | undefined;
}

/** Lookups from before more deletions than this are repeated. */
const DELETED_IDS_MAX = 1_000;

export class Plans implements Room {
  readonly #loader: Pick<CatalogLoads, 'sequence'>;
  readonly #cache = new LRUCache<string, StoredSequence>({ maxSize: LIMITS.planCacheBytes });
  readonly #loading = new Map<string, Promise<StoredSequence | undefined>>();
  readonly #blocked = new Set<string>();
  readonly #unknownId = new UnknownId();
  /** Reads for sequences of other tenants; concurrent callers share one. */
  readonly #foreign = new Map<string, Promise<unknown>>();
  /** The number of deletions so far; see `checkUsable`. */
  deletions = 0;
  /** The latest deleted ids, newest last. */
  readonly #deleted: string[] = [];

  constructor(loader: Pick<CatalogLoads, 'sequence'>) {
    this.#loader = loader;
  }

  get(sequenceId: string): StoredSequence | undefined {
    return this.#cache.get(sequenceId);
  }

  isBlocked(sequenceId: string): boolean {
    return this.#blocked.has(sequenceId);
  }

  block(sequenceId: string): void {
    this.#blocked.add(sequenceId);
  }

  /** The sequence may have been deleted, so its row is read again on demand. */
  unblock(sequenceId: string): void {
    if (this.isBlocked(sequenceId)) this.sequenceEvicted(sequenceId);
  }

  sequenceEvicted(sequenceId: string): void {
    this.#cache.delete(sequenceId);
    this.#blocked.delete(sequenceId);
    this.deletions += 1;
    this.#deleted.push(sequenceId);
    if (this.#deleted.length > DELETED_IDS_MAX) this.#deleted.shift();
  }

  /** Evicts the plans of a tenant that is admitted again, because they may be stale. */
  tenantComes(tenant: string): void {
    for (const [id, { tenantId }] of this.#cache.entries()) {
      if (tenantId === tenant) this.sequenceEvicted(id);
    }
  }

  /**
   * Call it in the turn that creates an instance, so that the count before a deletion does not miss it.
   * @param deletions the count when the sequence was looked up
   * @throws EngineError 503 when the sequence is being deleted, or may have been deleted since the lookup
   */
  checkUsable(sequenceId: string, deletions = this.deletions): void {
    if (!this.isBlocked(sequenceId) && !this.#mayBeDeleted(sequenceId, deletions)) return;
    throw unavailable('ENG_OVERLOADED', `sequence ${sequenceId} is being deleted`);
  }

  #mayBeDeleted(sequenceId: string, deletions: number): boolean {
    const later = this.deletions - deletions;
    if (later === 0) return false;
    return later > this.#deleted.length || this.#deleted.slice(-later).includes(sequenceId);
  }

  /** @returns undefined for an unknown sequence; rejects when the rows cannot be read */
  load(sequenceId: string): Promise<StoredSequence | undefined> {
    const cached = this.#cache.get(sequenceId);
    if (cached !== undefined) return Promise.resolve(cached);
    const running = this.#loading.get(sequenceId);
    if (running !== undefined) return running;
    const loading = this.#read(sequenceId).finally(() => this.#loading.delete(sequenceId));
    this.#loading.set(sequenceId, loading);
    return loading;
  }

  /** As `load`, but a sequence of another tenant takes a read, like an unknown one. The caller checks the owner. */
  async seek(sequenceId: string, tenantId: string): Promise<StoredSequence | undefined> {
    const cached = this.#cache.get(sequenceId);
    if (cached === undefined) return this.load(sequenceId);
    if (cached.tenantId !== tenantId) {
      const read = () => this.#loader.sequence(this.#unknownId.next());
      const done = () => void this.#foreign.delete(sequenceId);
      await valueFor(this.#foreign, sequenceId, () => read().finally(done));
    }
    return cached;
  }

  /**
   * The plan of an instance with injected blocks, which is not cached because few instances have such blocks.
   * @returns undefined for an unknown sequence; `ok: false` when the blocks are not compatible
   */
  async compile(sequenceId: string, injected: readonly Block[]): Promise<CompiledPlan | undefined> {
    if (injected.length === 0) {
      const stored = await this.load(sequenceId);
      return stored && { ok: true, plan: stored.plan };
    }
    const row = await this.#loader.sequence(sequenceId);
    if (row === undefined) return undefined;
    return compiledPlan(row, definitionOf(row), injected);
  }

  async #read(sequenceId: string): Promise<StoredSequence | undefined> {
    const deletions = this.deletions;
    const row = await this.#loader.sequence(sequenceId);
    if (row === undefined) return undefined;
    // The sequence may have been deleted during the read.
    if (deletions !== this.deletions) return this.#read(sequenceId);
    const definition = definitionOf(row);
    const compiled = compiledPlan(row, definition, []);
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
      collecting: compileCollecting(definition),
    };
    this.#cache.set(sequenceId, stored, { size: Math.max(1, row.definition.length) });
    return stored;
  }
}

interface StoredDefinition
  extends Hooks,
    FlowLimits,
    CancelOnMember,
    CollectingMembers,
    SearchableMember {
  readonly blocks: readonly Block[];
  readonly input_schema?: JsonObject | null;
}

function definitionOf(row: SequenceRow): StoredDefinition {
  return JSON.parse(row.definition);
}

function compiledPlan(
  { id, name, version }: SequenceRow,
  { blocks: stored, ...others }: StoredDefinition,
  injected: readonly Block[],
): CompiledPlan {
  const blocks = [...stored, ...injected];
  return compilePlan({ ...others, id, name, version, blocks }, whenUsed);
}

/** Compiles the schema at the first use, because it takes half a millisecond. */
function whenUsed(schema: JsonObject): (value: JsonValue) => string | undefined {
  let check: ((value: JsonValue) => string | undefined) | undefined;
  return (value) => {
    check ??= compileUserSchema(schema);
    return check(value);
  };
}

export interface SequenceBlocksDeps
  extends Pick<Kernel, 'shard' | 'clock' | 'commits' | 'release' | 'schedule'> {
  readonly plans: Plans;
}

const BLOCKED_AGAIN_MS = 5_000;

export class SequenceBlocks implements Room {
  readonly #deps: SequenceBlocksDeps;
  #stopped = false;

  readonly messages = {
    'sequence.block': ({ sequence, isBlocked }) => this.#block(sequence, isBlocked),
  } satisfies Messages;

  constructor(deps: SequenceBlocksDeps) {
    this.#deps = deps;
  }

  stop(): void {
    this.#stopped = true;
  }

  #block(sequence: string, isBlocked: boolean): void {
    const { plans } = this.#deps;
    if (!isBlocked) plans.unblock(sequence);
    else if (!plans.isBlocked(sequence)) {
      plans.block(sequence);
      this.#confirm(sequence);
    }
  }

  /** Repeated while the sequence is blocked, because the message that ends the block may be lost. */
  #confirm(sequence: string): void {
    const { plans, commits, release, schedule, clock, shard } = this.#deps;
    if (this.#stopped || !plans.isBlocked(sequence)) return;
    const message = { kind: 'sequence.settled', sequence, shard } as const;
    commits.whenSettled(() => release([{ kind: 'peer', shard: 0, message }]));
    clock.setTimeout(() => schedule(() => this.#confirm(sequence)), BLOCKED_AGAIN_MS);
  }
}
