/**
 * The owner of the sequences. Definitions are immutable: created, deprecated, and deleted when no
 * live instance needs them. Deletion is a barrier over all shards:
 *
 * 1. every shard blocks the sequence, so that no new instance of it is created,
 * 2. and answers when the units it made before are durable;
 * 3. then live instances are counted, and releases that name it: any one lifts the block and refuses
 *    the deletion;
 * 4. otherwise the rows are deleted in one unit, and every shard forgets what it holds of them.
 */

import type { CreateSequence } from '../schema/sequence.js';
import { compilePlan } from '../src/core/plan.js';
import { isoTime, type UnixMs } from '../src/core/time.js';
import {
  conflict,
  DATABASE_AWAY,
  EngineError,
  invalid,
  notFound,
  refusedData,
  UNKNOWN_OUTCOME,
} from '../src/errors.js';
import type { CommitLog, PendingUnit, Settlement, UnitOwner } from './commit-log.js';
import type { Rows, SequenceRow } from './loader.js';
import { whenUsed } from './plans.js';
import type { PeerMessage } from './protocol.js';
import type { ReleaseStateRow } from './release-reads.js';
import { type Effect, Turn } from './turn.js';

export interface CatalogDeps {
  readonly commits: CommitLog;
  readonly loader: Rows;
  readonly now: () => UnixMs;
  readonly newId: () => string;
  readonly shards: number;
  /** Runs the function when rows can be trusted: not while a dead writer's units are unsettled. */
  readonly whenWriterKnown: (then: () => void) => void;
  readonly release: (effects: readonly Effect[]) => void;
  readonly schedule: (work: () => void) => void;
}

/** A deletion on its way. */
interface Deletion {
  readonly request: number;
  /** The shards that have not answered yet. */
  readonly unsettled: Set<number>;
  /** What deletes the rows, once that is decided. */
  unit: PendingUnit | undefined;
}

export class Catalog implements UnitOwner {
  readonly key = 'catalog';
  incarnation: number;
  readonly #deps: CatalogDeps;
  readonly #deletions = new Map<string, Deletion>();

  constructor(deps: CatalogDeps) {
    this.#deps = deps;
    this.incarnation = deps.commits.nextIncarnation();
  }

  /**
   * @param tenant the header's tenant; '' when there is none
   * @param body checked for its shape
   */
  create(request: number, tenant: string, body: CreateSequence): void {
    const turn = new Turn();
    try {
      const owner = body.tenant_id.trim() === '' ? tenant : body.tenant_id;
      if (owner === '') throw invalid('tenant_id must not be blank');
      if (tenant !== '' && owner !== tenant) {
        throw new EngineError(
          'ENG_FORBIDDEN',
          'forbidden: tenant_id is not the tenant of x-tenant-id',
        );
      }
      this.#put(turn, request, owner, body);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      this.#deps.release([{ kind: 'error', request, error }]);
      return;
    }
    this.#deps.commits.append(this, turn);
  }

  #put(turn: Turn, request: number, tenant: string, body: CreateSequence): void {
    const id = body.id ?? this.#deps.newId();
    const compiled = compilePlan({ id, blocks: body.blocks }, whenUsed);
    if (!compiled.ok) throw invalid(compiled.message);
    const definition = {
      blocks: body.blocks,
      ...(body.input_schema == null ? {} : { input_schema: body.input_schema }),
    };
    turn.gate = 'exists';
    turn.put('sequence.insert', id, {
      id,
      tenant_id: tenant,
      namespace: body.namespace,
      name: body.name,
      version: body.version,
      deprecated: body.deprecated ?? false,
      status: body.status ?? 'production',
      definition,
      created_at: body.created_at ?? isoTime(this.#deps.now()),
    });
    const { warnings } = compiled.plan;
    turn.reply(request, 201, JSON.stringify(warnings.length === 0 ? { id } : { id, warnings }));
  }

  deprecate(request: number, tenant: string, id: string): void {
    this.#withSequence(request, tenant, id, () => {
      const turn = new Turn();
      turn.put('sequence.update', id, { id, deprecated: true });
      turn.reply(request, 204, '');
      this.#deps.commits.append(this, turn);
    });
  }

  delete(request: number, tenant: string, id: string): void {
    this.#withSequence(request, tenant, id, () => {
      if (this.#deletions.has(id)) {
        this.#fail(request, conflict(`sequence ${id} is being deleted already`));
        return;
      }
      const unsettled = new Set(Array.from({ length: this.#deps.shards }, (_, shard) => shard));
      this.#deletions.set(id, { request, unsettled, unit: undefined });
      this.#broadcast(['sequence.block', id, true]);
    });
  }

  /**
   * A shard has blocked the sequence, and what it created of it before is durable. It says so again
   * for as long as it is blocked, since a word to it or to another shard may be lost.
   */
  blocked(id: string, shard: number): void {
    const deletion = this.#deletions.get(id);
    if (deletion === undefined) {
      this.#tell(shard, ['sequence.block', id, false]);
      return;
    }
    const { unsettled } = deletion;
    if (!unsettled.delete(shard)) {
      for (const other of unsettled) this.#tell(other, ['sequence.block', id, true]);
      return;
    }
    if (unsettled.size > 0) return;
    this.#deps.whenWriterKnown(() => this.#look(id, deletion));
  }

  #look(id: string, deletion: Deletion): void {
    const { loader, schedule } = this.#deps;
    Promise.all([loader.hasLiveInstance(id), loader.releaseNaming(id)]).then(
      ([isLive, release]) =>
        schedule(() => this.#decide(id, deletion, needOf(id, isLive, release))),
      () => schedule(() => this.#decide(id, deletion, DATABASE_AWAY)),
    );
  }

  /** Its successor, which is yet to come, will know of no block. */
  shardDied(shard: number): void {
    for (const [id, { request, unsettled, unit }] of this.#deletions) {
      if (unit !== undefined) continue;
      // In place of the old one: a count that is on its way knows nothing of what that shard makes.
      this.#deletions.set(id, { request, unsettled: new Set([...unsettled, shard]), unit });
    }
  }

  /** The successor can be told. */
  shardBack(shard: number): void {
    for (const id of this.#deletions.keys()) this.#tell(shard, ['sequence.block', id, true]);
  }

  /** @param refusal undefined when nothing needs the sequence */
  #decide(id: string, deletion: Deletion, refusal: EngineError | undefined): void {
    const { request } = deletion;
    // A shard died since then: its answer leads here again.
    if (this.#deletions.get(id) !== deletion) return;
    if (refusal !== undefined) {
      this.#giveUp(id, request, refusal);
      return;
    }
    const turn = new Turn();
    turn.put('sequence.delete', id, { id });
    turn.reply(request, 204, '');
    for (let shard = 0; shard < this.#deps.shards; shard++) {
      turn.effects.push({ kind: 'peer', shard, message: ['sequence.evict', id] });
    }
    deletion.unit = this.#deps.commits.append(this, turn);
  }

  #giveUp(id: string, request: number, error: EngineError): void {
    this.#deletions.delete(id);
    this.#broadcast(['sequence.block', id, false]);
    this.#fail(request, error);
  }

  settled(unit: PendingUnit, ack: Settlement): void {
    const deletion = [...this.#deletions].find(([, { unit: deleting }]) => deleting === unit);
    if (ack[1] === 'committed') {
      if (deletion !== undefined) this.#deletions.delete(deletion[0]);
      this.#deps.release(unit.effects);
      return;
    }
    // The rows of sequences are independent: one that was refused says nothing about the next.
    if (ack[1] === 'refused') this.incarnation = this.#deps.commits.nextIncarnation();
    const error = refusalOf(ack);
    if (deletion !== undefined) {
      this.#giveUp(deletion[0], deletion[1].request, error);
      return;
    }
    for (const effect of unit.effects) {
      if (effect.kind === 'reply') this.#fail(effect.request, error);
    }
  }

  #withSequence(
    request: number,
    tenant: string,
    id: string,
    then: (row: SequenceRow) => void,
  ): void {
    this.#deps.loader.sequence(id).then(
      (row) =>
        this.#deps.schedule(() => {
          if (row === undefined || (tenant !== '' && row.tenant_id !== tenant)) {
            this.#fail(request, notFound(`sequence ${id}`));
          } else then(row);
        }),
      () => this.#deps.schedule(() => this.#fail(request, DATABASE_AWAY)),
    );
  }

  #tell(shard: number, message: PeerMessage): void {
    this.#deps.release([{ kind: 'peer', shard, message }]);
  }

  #broadcast(message: PeerMessage): void {
    for (let shard = 0; shard < this.#deps.shards; shard++) this.#tell(shard, message);
  }

  #fail(request: number, error: EngineError): void {
    this.#deps.release([{ kind: 'error', request, error }]);
  }
}

/** What keeps the sequence from being deleted. */
function needOf(
  id: string,
  isLive: boolean,
  release: ReleaseStateRow | undefined,
): EngineError | undefined {
  if (isLive) return conflict(`sequence ${id} has live instances`);
  if (release === undefined) return undefined;
  return conflict(`sequence ${id} is part of release ${release.id}, which is ${release.state}`);
}

function refusalOf(ack: Settlement): EngineError {
  switch (ack[1]) {
    case 'exists':
      return conflict('a sequence with this id, or with this name and version, exists already');
    case 'refused':
      return refusedData(ack[3]);
    default:
      return UNKNOWN_OUTCOME;
  }
}
