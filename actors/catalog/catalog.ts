/**
 * The owner of the sequences. Definitions are immutable: created, deprecated, and deleted when no
 * instance needs them. Deletion is a barrier over all shards:
 *
 * 1. every shard blocks the sequence, so that no new instance of it is created,
 * 2. and answers when the units it made before are durable;
 * 3. then its instances are counted, and releases that name it: one that needs it lifts the block and
 *    refuses the deletion;
 * 4. otherwise its row gives way to a tombstone in one unit, and every shard forgets what it holds.
 *
 * Where names lead is known by heart on every shard: who stores or deprecates a version is answered when
 * all of them have forgotten it (`names.ts`).
 *
 * The tombstone stays until the front thread (`actors/instance/front/sequence-removal.ts`) has had the instances removed.
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
import { conflict, DATABASE_AWAY, EngineError, invalid, notFound } from '../../src/base/errors.js';
import { checkTenant, isForeign } from '../../src/base/tenancy.js';
import { isoTime } from '../../src/base/time.js';
import { judgeDefinition, judgementOf } from '../../src/http/definition.js';
import type { HostDeps } from '../runtime/host.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call } from '../runtime/operation.js';
import { Publisher } from '../runtime/publisher.js';
import type { Messages, Room } from '../runtime/room.js';
import { Service } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import type { CatalogLoads, InstanceCounts, SequenceRow } from './loads.js';
import { EVERY_NAME, wordOf } from './names.js';
import { SEQUENCE, TOMBSTONE } from './tables.js';

/** A release that needs a sequence. */
type NeedingRelease = { readonly id: string; readonly state: string };

/** Of the releases, what needs a sequence. */
export type CatalogNeededLoads = CatalogLoads & {
  readonly releaseNaming: (sequence: string) => Promise<NeedingRelease | undefined>;
};

export interface CatalogDeps
  extends HostDeps,
    Pick<Kernel<CatalogNeededLoads>, 'loader' | 'clock' | 'now' | 'newId' | 'shards'> {
  /** Resolves when no release leads to the sequence any more, which is deprecated. */
  readonly deprecated: (sequence: string) => Promise<void>;
  /** Definitions that ask for more are warned of. */
  readonly stepTimeoutMaxMs: number;
}

/** Of its units. */
const KEY = 'catalog';

/** Which of the two it was, the refusal of the database does not tell. */
const existsAlready = ({ id, namespace, name, version }: CreateSequence) =>
  `version ${version} of sequence ${name} in namespace ${namespace}` +
  `${id === undefined ? '' : `, or a sequence with the id ${id},`} exists already or is being removed; ` +
  'what is stored never changes: store another version';

/** Its instances, and a release that needs it. */
type UsesOfSequence = readonly [InstanceCounts, NeedingRelease | undefined];

/** A deletion on its way. */
interface Deletion {
  readonly request: number;
  /** Whose sequence it is. */
  readonly tenant: string;
  /** Failed instances go with it. */
  readonly isCascading: boolean;
  /** The shards that have not answered yet. */
  readonly unsettled: Set<number>;
  /** The unit that deletes the rows is under way. */
  isDecided: boolean;
}

export class Catalog implements Room {
  readonly #service: Service;
  readonly #deps: CatalogDeps;
  readonly #deletions = new Map<string, Deletion>();
  /** Has every shard forget where the names led. */
  readonly #publisher: Publisher<string>;

  readonly messages = {
    'sequence.settled': ({ sequence, shard }) => this.blocked(sequence, shard),
    'names.settled': ({ version, shard }) => this.namesSettled(version, shard),
  } satisfies Messages;

  constructor(deps: CatalogDeps) {
    this.#deps = deps;
    this.#service = new Service(KEY, deps);
    this.#publisher = new Publisher<string>(deps, (version, names) => ({
      kind: 'names.forget',
      version,
      names,
    }));
  }

  /** What an earlier life committed last may not have been told to every shard. */
  start(): void {
    void this.#publisher.publish(EVERY_NAME);
  }

  stop(): void {
    this.#publisher.stop();
  }

  /** A shard has forgotten what it was told to. */
  namesSettled(version: number, shard: number): void {
    this.#publisher.settled(version, shard);
  }

  create(call: Call<CreateSequence>, query: SequenceCheckQuery): void {
    const { request, tenant, body } = call;
    const owner = ownerOf(tenant, body);
    const warnings = warningsOf('sequences.create', call, query, this.#deps.stepTimeoutMaxMs);
    const turn = new Turn(owner);
    const answer = this.#put(turn, owner, body, warnings);
    const name = wordOf(owner, body.namespace, body.name);
    const publish = () => this.#publisher.publish(name);
    this.#service.answer(request, 201, undefined, async () => {
      await this.#service.commit(turn, { publish, exists: existsAlready(body) });
      return answer;
    });
  }

  /** What `create` would answer, but for what is stored already. @throws EngineError that is the answer */
  validate(call: Call<CreateSequence>, query: SequenceCheckQuery): void {
    const { request, tenant, body } = call;
    ownerOf(tenant, body);
    const warnings = warningsOf('sequences.validate', call, query, this.#deps.stepTimeoutMaxMs);
    const answer: SequenceValidated = { valid: true, warnings };
    const reply = { kind: 'reply', request, status: 200, body: JSON.stringify(answer) } as const;
    this.#deps.release([reply]);
  }

  /** @returns what the creator is told */
  #put(turn: Turn, tenant: string, body: CreateSequence, warnings: Finding[]): SequenceCreated {
    const id = body.id ?? this.#deps.newId();
    const definition = {
      blocks: body.blocks,
      ...(body.input_schema == null ? {} : { input_schema: body.input_schema }),
      ...(body.on_failure == null ? {} : { on_failure: body.on_failure }),
      ...(body.on_cancel == null ? {} : { on_cancel: body.on_cancel }),
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

  deprecate(request: number, tenant: string, id: string): void {
    this.#change(
      request,
      tenant,
      id,
      (turn) => turn.put(SEQUENCE.update, id, { id, deprecated: true }),
      () => this.#deps.deprecated(id),
    );
  }

  /** Names may lead to it from the answer on. */
  update({ request, tenant, target: id, body: { hold } }: Call<UpdateSequence>): void {
    this.#change(request, tenant, id, (turn) => turn.put(SEQUENCE.hold, id, { id, hold }));
  }

  /** Of what names lead to. @param told does what is left before the answer */
  #change(
    request: number,
    tenant: string,
    id: string,
    put: (turn: Turn) => void,
    told: () => Promise<void> = async () => undefined,
  ): void {
    this.#withSequence(request, tenant, id, ({ tenant_id, namespace, name }) => {
      const turn = new Turn(tenant_id);
      put(turn);
      const publish = async () => {
        await this.#publisher.publish(wordOf(tenant_id, namespace, name));
        await told();
      };
      this.#service.answer(request, 204, undefined, async () => {
        await this.#service.commit(turn, { publish });
        return undefined;
      });
    });
  }

  delete(request: number, tenant: string, id: string, query: SequenceDeleteQuery): void {
    const isCascading = query.cascade;
    this.#withSequence(request, tenant, id, ({ tenant_id }) => {
      if (query.dry_run) {
        this.#foresee(request, id, isCascading);
        return;
      }
      if (this.#deletions.has(id)) {
        this.#service.fail(request, conflict(`sequence ${id} is being deleted already`));
        return;
      }
      const unsettled = new Set(Array.from({ length: this.#deps.shards }, (_, shard) => shard));
      const deletion = { request, tenant: tenant_id, isCascading, unsettled, isDecided: false };
      this.#deletions.set(id, deletion);
      this.#blockEverywhere(id, true);
    });
  }

  /** What a deletion would find by the rows as they are; nothing is blocked for it. */
  #foresee(request: number, id: string, isCascading: boolean): void {
    this.#count(id, (found) => {
      if (found instanceof EngineError) {
        this.#service.fail(request, found);
        return;
      }
      const [{ ended, failed }] = found;
      const refusal = needOf(id, isCascading, ...found);
      const body = JSON.stringify({ count: ended + failed, ended, failed, dry_run: true });
      if (refusal !== undefined) this.#service.fail(request, refusal);
      else this.#deps.release([{ kind: 'reply', request, status: 200, body }]);
    });
  }

  /**
   * A shard has blocked the sequence, and what it created of it before is durable. It says so again
   * for as long as it is blocked, since a word to it or to another shard may be lost.
   */
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
    this.#deps.whenWriterKnown(() => this.#look(id, deletion));
  }

  #look(id: string, deletion: Deletion): void {
    this.#count(id, (found) => {
      if (found instanceof EngineError) {
        this.#decide(id, deletion, found);
        return;
      }
      const [{ ended, failed }] = found;
      const refusal = needOf(id, deletion.isCascading, ...found);
      this.#decide(id, deletion, refusal ?? ended + failed > 0);
    });
  }

  /** Tells what there is of the sequence, or that the database cannot say. */
  #count(id: string, then: (found: UsesOfSequence | EngineError) => void): void {
    const { loader, schedule } = this.#deps;
    Promise.all([loader.instanceCounts(id), loader.releaseNaming(id)]).then(
      (found) => schedule(() => then(found)),
      () => schedule(() => then(DATABASE_AWAY)),
    );
  }

  /** Its successor, which is yet to come, will know of no block. */
  peerLost(shard: number): void {
    for (const [id, deletion] of this.#deletions) {
      if (deletion.isDecided) continue;
      // In place of the old one: a count that is on its way knows nothing of what that shard makes.
      this.#deletions.set(id, {
        ...deletion,
        unsettled: new Set([...deletion.unsettled, shard]),
      });
    }
  }

  /** The successor can be told. */
  peerBack(shard: number): void {
    this.#publisher.shardBack(shard);
    for (const id of this.#deletions.keys()) this.#block(id, true, shard);
  }

  /** @param found why it is refused, or whether there are instances to be removed */
  #decide(id: string, deletion: Deletion, found: EngineError | boolean): void {
    const { request, tenant } = deletion;
    // A shard died since then: its answer leads here again.
    if (this.#deletions.get(id) !== deletion) return;
    if (found instanceof EngineError) {
      this.#giveUp(id, request, found);
      return;
    }
    const turn = new Turn(tenant);
    turn.put(SEQUENCE.delete, id, { id });
    if (found) turn.put(TOMBSTONE.set, id, { id, created_at: isoTime(this.#deps.now()) });
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

  /** The instances of a deleted sequence are removed. */
  forget(request: number, id: string): void {
    this.#service.serve(request, (turn) => {
      turn.put(TOMBSTONE.clear, id, { id });
      turn.reply(request, 204, '');
    });
  }

  #giveUp(id: string, request: number, error: EngineError): void {
    this.#deletions.delete(id);
    this.#blockEverywhere(id, false);
    this.#service.fail(request, error);
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
          if (row === undefined || isForeign(row, tenant)) {
            this.#service.fail(request, notFound(`sequence ${id}`));
          } else then(row);
        }),
      () => this.#deps.schedule(() => this.#service.fail(request, DATABASE_AWAY)),
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

/** What keeps the sequence from being deleted. */
function needOf(
  id: string,
  isCascading: boolean,
  { live, failed }: InstanceCounts,
  release: NeedingRelease | undefined,
): EngineError | undefined {
  if (live > 0 || (failed > 0 && !isCascading)) {
    const way = live === 0 ? '; cascade=true takes the failed ones along' : '';
    return conflict(`sequence ${id} has ${live} live and ${failed} failed instances${way}`);
  }
  if (release === undefined) return undefined;
  return conflict(`sequence ${id} is part of release ${release.id}, which is ${release.state}`);
}
