/**
 * The owner of the sequences, whose definitions are immutable. Every shard caches names (`names.ts`), so a new or
 * deprecated version is answered after all shards have invalidated the name. Deletion is a barrier over all shards:
 *
 * 1. Every shard blocks new instances of the sequence, and confirms when its earlier units are durable.
 * 2. If instances or releases need the sequence, the block is lifted and the deletion refused.
 * 3. Otherwise a tombstone replaces the row in one unit, and every shard evicts the sequence. The tombstone stays until
 *    the front thread has removed the instances (`actors/instance/front/removal.ts`).
 */

import type { Finding } from '../../schema/finding.js';
import {
  type CreateSequence,
  hasLists,
  type SequenceCheckQuery,
  type SequenceCreated,
  type SequenceDeleteQuery,
  type SequenceValidated,
  type UpdateSequence,
} from '../../schema/sequence.js';
import { conflict, EngineError, invalid } from '../../src/base/errors.js';
import { checkTenant, owned } from '../../src/base/tenancy.js';
import { isoTime } from '../../src/base/time.js';
import { judgeDefinition, judgementOf } from '../../src/http/definition.js';
import type { HostDeps } from '../runtime/host.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call, Operations, RouteOperations } from '../runtime/operation.js';
import { Publisher } from '../runtime/publisher.js';
import type { Messages, Room } from '../runtime/room.js';
import { Service } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import type { CatalogLoads, InstanceCounts, SequenceRow } from './loads.js';
import { EVERY_NAME, wordOf } from './names.js';
import { SEQUENCE, TOMBSTONE } from './tables.js';

type NeedingRelease = { readonly id: string; readonly state: string };

export type CatalogNeededLoads = CatalogLoads & {
  readonly releaseNaming: (sequence: string) => Promise<NeedingRelease | undefined>;
};

export interface CatalogDeps
  extends HostDeps,
    Pick<Kernel<CatalogNeededLoads>, 'loader' | 'clock' | 'now' | 'newId' | 'shards'> {
  /** Resolves when no release routes to the deprecated sequence any more. */
  readonly deprecated: (sequence: string) => Promise<void>;
  /** Definitions with longer step timeouts get a warning. */
  readonly stepTimeoutMaxMs: number;
}

const KEY = 'catalog';

/** Names both unique keys, because the violated one is unknown. */
const existsAlready = ({ id, namespace, name, version }: CreateSequence) =>
  `version ${version} of sequence ${name} in namespace ${namespace}` +
  `${id === undefined ? '' : `, or a sequence with the id ${id},`} exists already or is being removed; ` +
  'what is stored never changes: store another version';

interface Deletion {
  readonly request: number;
  readonly tenant: string;
  readonly row: SequenceRow;
  /** Failed instances are deleted with the sequence. */
  readonly isCascading: boolean;
  /** The shards that have not confirmed yet. */
  readonly unsettled: Set<number>;
  /** The unit that deletes the rows is in progress. */
  isDecided: boolean;
}

export class Catalog implements Room {
  readonly #service: Service;
  readonly #deps: CatalogDeps;
  readonly #deletions = new Map<string, Deletion>();
  readonly #publisher: Publisher<string>;

  readonly messages = {
    'sequence.settled': ({ sequence, shard }) => this.blocked(sequence, shard),
    'names.settled': ({ version, shard }) => this.#publisher.settled(version, shard),
  } satisfies Messages;
  readonly #routes = {
    'sequences.create': {
      isLookedThrough: true,
      serve: (call, query) => this.#create(call, query),
    },
    'sequences.validate': {
      isRead: true,
      isLookedThrough: true,
      serve: (call, query) => this.#validate(call, query),
    },
    'sequences.update': { serve: (call) => this.#update(call) },
    'sequences.deprecate': { serve: (call) => this.#deprecate(call) },
  } satisfies RouteOperations;
  /** The front deletes a sequence, and ends its deletion (`actors/instance/front/removal.ts`). */
  readonly operations = {
    ...this.#routes,
    'catalog.delete': {
      serve: ({ request, tenant, target, body }: Call<SequenceDeleteQuery>) =>
        this.delete(request, tenant, target, body),
    },
    'catalog.forget': {
      serve: ({ request, target }: Call<undefined>) => this.forget(request, target),
    },
  } satisfies Operations;

  constructor(deps: CatalogDeps) {
    this.#deps = deps;
    this.#service = new Service(KEY, deps);
    const message = (version: number, names: readonly string[]) =>
      ({ kind: 'names.forget', version, names }) as const;
    this.#publisher = new Publisher<string>(deps, EVERY_NAME, message);
  }

  get parts() {
    return [this.#publisher];
  }

  #create(call: Call<CreateSequence>, query: SequenceCheckQuery): void {
    const { request, tenant, body } = call;
    const owner = ownerOf(tenant, body);
    const warnings = warningsOf('sequences.create', call, query, this.#deps.stepTimeoutMaxMs);
    const turn = new Turn(owner, request);
    const answer = this.#put(turn, owner, body, warnings);
    const name = wordOf(owner, body.namespace, body.name);
    const publish = () => this.#publisher.publish(name);
    this.#service.answer(request, 201, undefined, async () => {
      await this.#service.commit(turn, { publish, exists: existsAlready(body) });
      return answer;
    });
  }

  /** Answers as a creation would, regardless of stored sequences. @throws EngineError */
  #validate(call: Call<CreateSequence>, query: SequenceCheckQuery): void {
    const { request, tenant, body } = call;
    ownerOf(tenant, body);
    const warnings = warningsOf('sequences.validate', call, query, this.#deps.stepTimeoutMaxMs);
    const answer: SequenceValidated = { valid: true, warnings };
    const reply = { kind: 'reply', request, status: 200, body: JSON.stringify(answer) } as const;
    this.#deps.release([reply]);
  }

  #put(turn: Turn, tenant: string, body: CreateSequence, warnings: Finding[]): SequenceCreated {
    const id = body.id ?? this.#deps.newId();
    const definition = {
      blocks: body.blocks,
      ...(body.input_schema == null ? {} : { input_schema: body.input_schema }),
      ...(body.on_failure == null ? {} : { on_failure: body.on_failure }),
      ...(body.on_cancel == null ? {} : { on_cancel: body.on_cancel }),
      ...(body.concurrency == null ? {} : { concurrency: body.concurrency }),
      ...(body.throttle == null ? {} : { throttle: body.throttle }),
      ...(body.cancel_on == null ? {} : { cancel_on: body.cancel_on }),
      ...(body.debounce == null ? {} : { debounce: body.debounce }),
      ...(body.batch == null ? {} : { batch: body.batch }),
      ...(body.searchable == null ? {} : { searchable: body.searchable }),
    };
    turn.gate = 'exists';
    turn.put(SEQUENCE.insert, id, {
      id,
      tenant_id: tenant,
      namespace: body.namespace,
      name: body.name,
      version: body.version,
      deprecated: body.deprecated ?? false,
      hold: body.hold ?? false,
      status: body.status ?? 'production',
      definition,
      created_at: body.created_at ?? isoTime(this.#deps.now()),
    });
    return warnings.length === 0 ? { id } : { id, warnings };
  }

  #deprecate({ request, tenant, target: id }: Call): void {
    this.#change(
      request,
      tenant,
      id,
      (turn) => turn.put(SEQUENCE.update, id, { id, deprecated: true }),
      () => this.#deps.deprecated(id),
    );
  }

  /** Names resolve to the sequence, or no longer do, before the response. */
  #update({ request, tenant, target: id, body: { hold } }: Call<UpdateSequence>): void {
    this.#change(request, tenant, id, (turn) => turn.put(SEQUENCE.hold, id, { id, hold }));
  }

  /** Changes whether names resolve to a sequence. @param then runs before the response */
  #change(
    request: number,
    tenant: string,
    id: string,
    put: (turn: Turn) => void,
    then: () => Promise<void> = async () => undefined,
  ): void {
    this.#service.answer(request, 204, undefined, async () => {
      const { tenant_id, namespace, name } = await this.#own(tenant, id);
      const turn = new Turn(tenant_id, request);
      put(turn);
      const publish = async () => {
        await this.#publisher.publish(wordOf(tenant_id, namespace, name));
        await then();
      };
      await this.#service.commit(turn, { publish });
      return undefined;
    });
  }

  delete(request: number, tenant: string, id: string, query: SequenceDeleteQuery): void {
    const { cascade: isCascading } = query;
    if (query.dry_run) {
      this.#service.answer(request, 200, undefined, async () => {
        await this.#own(tenant, id);
        const { ended, failed } = await this.#countUnneeded(id, isCascading);
        return { count: ended + failed, ended, failed, dry_run: true };
      });
      return;
    }
    this.#inTurn(
      this.#own(tenant, id),
      (row) => this.#begin(request, row, isCascading),
      (error) => this.#service.fail(request, error),
    );
  }

  #begin(request: number, row: SequenceRow, isCascading: boolean): void {
    const { id, tenant_id: tenant } = row;
    if (this.#deletions.has(id)) {
      this.#service.fail(request, conflict(`sequence ${id} is being deleted already`));
      return;
    }
    const unsettled = new Set(Array.from({ length: this.#deps.shards }, (_, shard) => shard));
    this.#deletions.set(id, { request, tenant, row, isCascading, unsettled, isDecided: false });
    this.#blockEverywhere(id, true);
  }

  /** A shard confirms its block, repeatedly while it lasts, because messages may be lost. */
  blocked(id: string, shard: number): void {
    const deletion = this.#deletions.get(id);
    if (deletion === undefined) {
      this.#block(id, false, shard);
      return;
    }
    const { unsettled } = deletion;
    if (!unsettled.delete(shard)) {
      for (const other of unsettled) this.#block(id, true, other);
      return;
    }
    if (unsettled.size > 0) return;
    this.#inTurn(
      this.#countUnneeded(id, deletion.isCascading),
      ({ ended, failed }) => this.#decide(id, deletion, ended + failed > 0),
      (error) => this.#decide(id, deletion, error),
    );
  }

  /** Counts the instances. @throws EngineError 409 when instances or a release need the sequence */
  async #countUnneeded(id: string, isCascading: boolean): Promise<InstanceCounts> {
    const { loader } = this.#deps;
    const [counts, release] = await this.#service.read(() =>
      Promise.all([loader.instanceCounts(id), loader.releaseNaming(id)]),
    );
    const { live, failed } = counts;
    if (live > 0 || (failed > 0 && !isCascading)) {
      const way = live === 0 ? '; cascade=true takes the failed ones along' : '';
      throw conflict(`sequence ${id} has ${live} live and ${failed} failed instances${way}`);
    }
    if (release === undefined) return counts;
    throw conflict(`sequence ${id} is part of release ${release.id}, which is ${release.state}`);
  }

  /** The restarted shard has no block yet. */
  peerLost(shard: number): void {
    for (const [id, deletion] of this.#deletions) {
      if (deletion.isDecided) continue;
      // A new object voids a count in progress, which misses later instances of the shard.
      this.#deletions.set(id, { ...deletion, unsettled: new Set([...deletion.unsettled, shard]) });
    }
  }

  peerBack(shard: number): void {
    for (const id of this.#deletions.keys()) this.#block(id, true, shard);
  }

  /** @param found the refusal, or whether there are instances to remove */
  #decide(id: string, deletion: Deletion, found: EngineError | boolean): void {
    const { request, tenant, row } = deletion;
    // A shard has restarted since the count; its confirmation starts another count.
    if (this.#deletions.get(id) !== deletion) return;
    if (found instanceof EngineError) {
      this.#deletions.delete(id);
      this.#blockEverywhere(id, false);
      this.#service.fail(request, found);
      return;
    }
    const turn = new Turn(tenant);
    turn.put(SEQUENCE.delete, id, { id });
    if (found) turn.put(TOMBSTONE.set, id, { id, created_at: isoTime(this.#deps.now()) });
    turn.actionDetails = { namespace: row.namespace, name: row.name, version: row.version };
    turn.reply(request, 204, '');
    for (let shard = 0; shard < this.#deps.shards; shard++) {
      turn.effects.push({ kind: 'peer', shard, message: { kind: 'sequence.evict', sequence: id } });
    }
    deletion.isDecided = true;
    this.#service.commitNow(turn, {
      settled: (error) => {
        this.#deletions.delete(id);
        if (error !== undefined) this.#blockEverywhere(id, false);
      },
    });
  }

  /** Deletes the tombstone after the instances were removed. */
  forget(request: number, id: string): void {
    this.#service.serve(request, (turn) => {
      turn.put(TOMBSTONE.clear, id, { id });
      turn.reply(request, 204, '');
    });
  }

  /** @throws EngineError 404 */
  async #own(tenant: string, id: string): Promise<SequenceRow> {
    const row = await this.#service.read(() => this.#deps.loader.sequence(id));
    return owned(row, tenant, `sequence ${id}`);
  }

  #inTurn<T>(work: Promise<T>, then: (result: T) => void, fail: (error: EngineError) => void) {
    const { schedule } = this.#deps;
    work.then(
      (result) => schedule(() => then(result)),
      (error: unknown) => schedule(() => fail(this.#service.errorOf(error))),
    );
  }

  #blockEverywhere(sequence: string, isBlocked: boolean): void {
    for (let shard = 0; shard < this.#deps.shards; shard++) this.#block(sequence, isBlocked, shard);
  }

  #block(sequence: string, isBlocked: boolean, shard: number): void {
    const message = { kind: 'sequence.block', sequence, isBlocked } as const;
    this.#deps.release([{ kind: 'peer', shard, message }]);
  }
}

/** @throws EngineError 400, 403 */
function ownerOf(tenant: string, body: CreateSequence): string {
  const owner = body.tenant_id.trim() === '' ? tenant : body.tenant_id;
  if (owner === '') throw invalid('tenant_id must not be blank');
  checkTenant(tenant, owner);
  return owner;
}

/** @throws EngineError 400 for errors, and for warnings when the caller is strict */
function warningsOf(
  operation: 'sequences.create' | 'sequences.validate',
  { body, findings }: Call<CreateSequence>,
  query: SequenceCheckQuery,
  callMsMax: number,
): Finding[] {
  const isListed = hasLists(operation, query);
  const judged =
    findings === undefined
      ? judgeDefinition(operation, body, { isListed, callMsMax })
      : judgementOf(findings, isListed);
  const { errors, warnings } = judged;
  if (errors.length > 0 || (query.strict && warnings.length > 0)) throw judged.refusal();
  return [...warnings];
}
