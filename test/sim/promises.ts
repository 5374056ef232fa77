/**
 * What an answer promises, held against the rows at the moment at which it leaves the engine, and
 * what all answers of a run promise together.
 */

import type { SignalAnswer } from '../../schema/signal.js';
import { type InstanceState, isEnded, isTerminal } from '../../schema/states.js';
import { isDeepEqual } from '../../src/base/bounds.js';
import { eventKeyId, eventNameId, keyedInstanceId } from '../../src/base/ids.js';
import type { JsonValue } from '../../src/base/json.js';
import { isoTime } from '../../src/base/time.js';
import { isProgressNote } from '../../src/core/loop-items.js';
import { groupBy } from '../chaos/rows.js';
import { entryOf } from '../helpers/entry.js';
import type { ApiReply, Call } from './api.js';
import type { SimEngine } from './engine.js';
import type { Counts } from './faults.js';
import type { Change, MemoryTables, Row } from './memory-tables.js';
import type { Observer } from './observer.js';
import { type ReleaseMark, ReleasePromises } from './release-promises.js';
import { Violation } from './violation.js';

/** Taken down when a request comes in, to be held against its answer. */
export interface Mark {
  /** Of the instance that it is about, if it is about one. */
  readonly row: Row | undefined;
  /** How often it was created by then. */
  readonly births: number;
  readonly at: string;
  /** Of the release that it is about. */
  readonly release: ReleaseMark;
  /** Instances that an event would cancel, by how often each was no longer to be cancelled by then. */
  readonly cancels: ReadonlyMap<string, number>;
  /** Rows of collected creations that it would take out, with their starts. */
  readonly withdraws: ReadonlyMap<string, string>;
}

interface SentEvent {
  readonly event_name: string;
  readonly correlation_key?: string;
}

const keysOf = (tenant: string, { event_name, correlation_key }: SentEvent) => [
  eventKeyId(tenant, event_name, correlation_key),
  eventNameId(tenant, event_name),
];

interface Receipt {
  readonly event_id: string;
  readonly duplicate: boolean;
  readonly cancelled?: number;
}

/** A key in the context of an instance, of that one of its births. */
interface Noted {
  readonly instance: string;
  readonly birth: number;
  readonly key: string;
}

interface TaskBody {
  readonly id: string;
  readonly instance_id: string;
  readonly block_id: string;
  readonly claim_epoch: number;
  readonly worker_id: string;
}

interface Created {
  readonly id: string;
  readonly deduplicated: boolean;
  readonly skipped?: true;
}

interface Result extends Created {
  readonly state?: InstanceState;
  readonly outputs?: Readonly<Record<string, JsonValue>>;
}

interface Creation {
  readonly idempotency_key?: string;
  readonly metadata?: { readonly token: string };
}

export class Promises {
  readonly #tables: MemoryTables;
  readonly #observer: Observer;
  readonly #counts: Counts;
  readonly #newest: () => SimEngine;
  readonly #releases: ReleasePromises;
  /** How often each instance was no longer to be cancelled by events. */
  readonly #notAwaited = new Map<string, number>();
  /** Tenant and idempotency key → its instance, and how often that was said to be new. */
  readonly #keys = new Map<string, { id: string; fresh: number }>();
  readonly #delivered = new Set<string>();
  /** Tenant and producer_event_id → the event. */
  readonly #events = new Map<string, string>();
  /** What must be found at the end: context keys of acknowledged signals. */
  readonly noted: Noted[] = [];

  constructor(tables: MemoryTables, observer: Observer, counts: Counts, newest: () => SimEngine) {
    this.#tables = tables;
    this.#counts = counts;
    this.#observer = observer;
    this.#newest = newest;
    this.#releases = new ReleasePromises(tables, observer.releases);
  }

  /** What is true when a request comes in: an answer shows nothing older. */
  before({ target, operation, tenant, body }: Call, now: number): Mark {
    const row = this.#tables.row('instances', target);
    const births = this.#observer.birthsOf(target);
    const release = this.#releases.before(target);
    const event = operation === 'events.send' ? (body as SentEvent) : undefined;
    const cancels = new Map(event && this.#awaiting(tenant, event));
    const withdraws = new Map(event && this.#collectedFor(tenant, event));
    return { row, births, at: isoTime(Math.floor(now)), release, cancels, withdraws };
  }

  /**
   * Whoever looks from now on may have seen the change: no answer from before it is given any more.
   * @throws Violation
   */
  committed(changes: readonly Change[], { client }: SimEngine): void {
    for (const { table, key, before, after } of changes) {
      if (table === 'cancel_waits' && before !== undefined && after === undefined) {
        const id = String(before.instance_id);
        this.#notAwaited.set(id, (this.#notAwaited.get(id) ?? 0) + 1);
      }
      if (table !== 'instances' || before === undefined) continue;
      const tenants = ['', String(before.tenant_id)];
      if (tenants.some((tenant) => client.kept.find(tenant, key) !== undefined)) {
        throw new Violation('the record from before a commit is still kept', key);
      }
    }
  }

  /** What a read at this moment would be answered is what is committed. */
  #checkKept(tenant: string, target: string, engine: SimEngine): void {
    if (engine !== this.#newest()) return;
    const kept = engine.client.kept.find(tenant, target);
    if (kept === undefined) return;
    this.#counts.add('record kept');
    const shown = JSON.parse(kept.body) as Row;
    const row = this.#tables.row('instances', target);
    if (row?.state === shown.state && row?.updated_at === shown.updated_at) return;
    throw new Violation(`a record of ${shown.updated_at} is kept, not ${row?.updated_at}`, target);
  }

  /** Those of a deleted sequence are gone for everyone before their rows are. */
  #isPresent(instance: string): boolean {
    const row = this.#tables.row('instances', instance);
    if (row === undefined) return false;
    return this.#tables.row('sequence_tombstones', String(row.sequence_id)) === undefined;
  }

  /** @throws Violation */
  answered(call: Call, { status, body }: ApiReply, engine: SimEngine, mark: Mark): void {
    if (status === 500) throw new Violation(`${call.operation} was answered 500`, call.target);
    const { target } = call;
    const wasThere = mark.row !== undefined && mark.births === this.#observer.birthsOf(target);
    // An instance that has started is no pending start any more.
    const isOfStart = call.operation.startsWith('pendingStarts.');
    if (status === 404 && wasThere && this.#isPresent(target) && !isOfStart) {
      throw new Violation(`${call.operation} did not find it`, target);
    }
    // An engine that was replaced and has not heard of it may say what was true before.
    if (call.operation.startsWith('releases.') && engine === this.#newest()) {
      if (status >= 300) this.#releases.refused(call, status, mark.release);
      else this.#releases.answered(call, body, mark.release);
    }
    this.#checkKept(call.tenant, target, engine);
    if (status >= 300) return;
    this.#count(call, mark.row);
    switch (call.operation) {
      case 'instances.create':
        if ((body as { collected?: true }).collected === true) {
          this.#collected(call, body as { id: string; deduplicated: boolean });
          return;
        }
        this.#created(call, body as Created);
        this.#checkKept(call.tenant, (body as { id: string }).id, engine);
        if (call.query !== undefined) this.#resulted(status, body as Result);
        return;
      case 'instances.createBatch':
        this.#batchCreated(call, (body as { skipped?: number }).skipped ?? 0);
        return;
      case 'instances.signal':
        this.#signalled(call, (body as { signal_id: string }).signal_id);
        if (call.query !== undefined) this.#replied(call, status, body as SignalAnswer);
        return;
      case 'instances.get':
        this.#read(target, body as Row, engine, mark.row);
        return;
      case 'instances.patchState':
        this.#expectVersion(target, body as Row);
        return;
      case 'instances.patchContext': {
        const { mark: written } = (call.body as ContextBody).context.config;
        // Another PATCH of the same commit may have replaced it: then the row is as new as that one.
        const updatedAt = String(this.#tables.row('instances', target)?.updated_at);
        const isReplaced = updatedAt >= mark.at;
        if (!this.#observer.marks.has(`${target} ${written}`) && !isReplaced) {
          throw new Violation(`PATCH context was answered before ${written} was there`, target);
        }
        return;
      }
      case 'instances.answer':
        this.#answeredQuestion(call);
        return;
      case 'events.send':
        this.#sent(call, (body as { event_id: string }).event_id);
        this.#checkCancels(body as Receipt, mark);
        return;
      case 'workers.poll':
      case 'workers.pollQueue':
        for (const task of body as TaskBody[]) this.#claimed(task);
        return;
      case 'workers.exchange':
        this.#exchanged(call, body as ExchangedBody);
        return;
      case 'workers.complete':
      case 'workers.fail':
        this.#ended(call);
        return;
      case 'workers.heartbeat':
        this.#beaten(target, (body as { checkpoint_seq: number }).checkpoint_seq);
        return;
      case 'sequences.create':
        this.#expect('sequences', (body as { id: string }).id);
        return;
      case 'catalog.delete':
        if (this.#tables.row('sequences', target) !== undefined) {
          throw new Violation(`sequence ${target} is there after its deletion`);
        }
        return;
      default:
    }
  }

  /** Live instances that the event has to cancel, if it comes now. */
  #awaiting(tenant: string, event: SentEvent) {
    const keys = keysOf(tenant, event);
    return [...this.#tables.rows('cancel_waits').values()]
      .filter(({ key_id }) => keys.includes(String(key_id)))
      .map(({ instance_id }) => String(instance_id))
      .map((id): [string, number] => [id, this.#notAwaited.get(id) ?? 0]);
  }

  #collectedFor(tenant: string, event: SentEvent) {
    const keys = keysOf(tenant, event);
    return [...this.#tables.rows('collected_waits')]
      .filter(([, { key_id }]) => keys.includes(String(key_id)))
      .map(([at, { pending_id }]): [string, string] => [at, String(pending_id)]);
  }

  /** Each of them has its order, unless it had ended before. @throws Violation */
  #checkCancels({ event_id, duplicate, cancelled = 0 }: Receipt, mark: Mark): void {
    const { cancels: awaiting, withdraws } = mark;
    const orders = [...this.#tables.rows('event_cancels').values()].filter(
      (row) => row.event_id === event_id,
    );
    const collected = [...this.#tables.rows('collected_cancels').values()].filter(
      (row) => row.event_id === event_id,
    );
    const all = new Set([
      ...orders.map(({ instance_id }) => String(instance_id)),
      ...collected.map(({ pending_id }) => String(pending_id)),
    ]);
    if (all.size < cancelled) {
      throw new Violation(`${event_id} cancels ${all.size} instances, not ${cancelled}`);
    }
    if (cancelled > 0) this.#counts.add('event cancels', cancelled);
    if (duplicate) return;
    for (const [at, start] of withdraws) {
      if (all.has(start) || this.#tables.row('collected_waits', at) === undefined) continue;
      throw new Violation(`the event ${event_id} was answered and does not take it out`, start);
    }
    for (const [instance, times] of awaiting) {
      if (orders.some(({ instance_id }) => instance_id === instance)) continue;
      if ((this.#notAwaited.get(instance) ?? 0) > times) continue;
      throw new Violation(`the event ${event_id} was answered and does not cancel it`, instance);
    }
  }

  /** Which requests were accepted in which states. */
  #count({ operation, body }: Call, row: Row | undefined): void {
    if (row === undefined) return;
    if (operation === 'instances.signal') {
      const { signal_type } = body as { signal_type: string };
      this.#counts.add(`signal ${signal_type} in ${row.state}`);
    } else if (operation === 'instances.patchState') {
      this.#counts.add(`patch ${row.state} to ${(body as { state: string }).state}`);
    }
  }

  // ---------------------------------------------------------------- creations

  #created(call: Call, { id, deduplicated, skipped }: Created): void {
    const { idempotency_key: key, metadata } = call.body as Creation;
    if (skipped === true) {
      this.#counts.add('creation skipped');
      const made = this.#observer.tokens.get(metadata?.token ?? '');
      if (made !== undefined && this.#isPresent(made)) {
        throw new Violation('a creation that was skipped made an instance', made);
      }
      return;
    }
    // Its sequence may have been deleted, with all of its instances, before the answer came.
    if (!this.#observer.versions.has(id)) throw new Violation('201 before the commit', id);
    if (key === undefined) {
      if (deduplicated) throw new Violation('deduplicated without a key', id);
      return;
    }
    this.#keyed(call.tenant, key, id, deduplicated, this.#observer.birthsOf(id));
  }

  #collected(call: Call, { id, deduplicated }: { id: string; deduplicated: boolean }): void {
    const { idempotency_key: key, context } = call.body as CollectedBody;
    if (!deduplicated) this.#observer.collecting.acknowledged(context.data.token, id);
    if (key === undefined) {
      if (deduplicated) throw new Violation('deduplicated without a key', id);
      return;
    }
    this.#keyed(call.tenant, key, id, deduplicated, 1);
  }

  /** A key is free again when its instance was removed, of which a late answer may still tell. */
  #keyed(tenant: string, key: string, id: string, deduplicated: boolean, births: number): void {
    const { doomed } = this.#observer;
    const name = `${tenant}: ${key}`;
    const before = this.#keys.get(name);
    const isFree = before !== undefined && before.id !== id && doomed.has(before.id);
    const known = before === undefined || isFree ? { id, fresh: 0 } : before;
    this.#keys.set(name, known);
    if (known.id !== id) {
      if (doomed.has(id)) return;
      throw new Violation(`key ${name} stands for ${known.id}, too`, id);
    }
    if (!deduplicated) known.fresh += 1;
    if (known.fresh > births) throw new Violation(`key ${name} was new ${known.fresh} times`, id);
  }

  #batchCreated(call: Call, skipped: number): void {
    const { instances } = call.body as { instances: Creation[] };
    const missing = instances.filter(({ metadata, idempotency_key: key }) => {
      if (this.#observer.tokens.has(metadata?.token ?? '')) return false;
      if (key === undefined) return true;
      const id = keyedInstanceId(call.tenant, key);
      return !this.#observer.versions.has(id) && !this.#observer.collecting.keys.has(id);
    });
    if (missing.length !== skipped) {
      throw new Violation(`201 for a batch without ${missing.length} items, ${skipped} skipped`);
    }
  }

  #expect(table: string, key: string): Row {
    const row = this.#tables.row(table, key);
    if (row === undefined) throw new Violation(`no row ${key} in ${table} after its promise`, key);
    return row;
  }

  // ---------------------------------------------------------------- instances

  #signalled(call: Call, id: string): void {
    const birth = this.#observer.signals.get(id);
    if (birth === undefined) {
      throw new Violation(`signal ${id} was acknowledged before its commit`, call.target);
    }
    const { signal_type, payload } = call.body as { signal_type: string; payload?: object };
    if (signal_type !== 'update_context' || payload === undefined) return;
    for (const key of Object.keys(payload)) this.noted.push({ instance: call.target, birth, key });
  }

  /** The end is committed, with these outputs; what is said of a living one was true. */
  #resulted(status: number, { id, state, outputs }: Result): void {
    if (state === undefined) return;
    const name = `result ${state} by ${status}`;
    this.#counts.add(name);
    if ((status === 200) !== isEnded(state)) throw new Violation(`${name}`, id);
    const versions = [...(this.#observer.versions.get(id) ?? [])];
    if (!versions.some((version) => version.startsWith(`${state} `))) {
      throw new Violation(`its result was ${state}, never committed`, id);
    }
    const row = this.#tables.row('instances', id);
    // A failed one may have been retried since, and then have other outputs.
    if (row === undefined || !isTerminal(state)) return;
    if (row.state !== state) throw new Violation(`its result was ${state}, it is ${row.state}`, id);
    const stored = groupBy(this.#outputsOf(id), ({ block_id }) => String(block_id));
    for (const [block, all] of stored) {
      const shown = outputs?.[block];
      const isShown = ({ output = null }: Row) =>
        isProgressNote(output) ? shown === undefined : isDeepEqual(output, shown ?? null);
      if (all.some(isShown)) continue;
      throw new Violation(`its result has ${JSON.stringify(shown)} of ${block}`, id);
    }
    const foreign = Object.keys(outputs ?? {}).find((block) => !stored.has(block));
    if (foreign !== undefined) throw new Violation(`its result has an output of ${foreign}`, id);
  }

  #outputsOf(instance: string): Row[] {
    const rows = [...this.#tables.rows('block_outputs').values()];
    const refs: readonly unknown[] = [null, '__error__'];
    return rows.filter((row) => row.instance_id === instance && refs.includes(row.output_ref));
  }

  /** The step has taken or refused the signal, and its reply is about no other one. */
  #replied({ target, body }: Call, status: number, answer: SignalAnswer): void {
    const { signal_id: id, taken, block_id, reply } = answer;
    const name = status === 202 ? 'kept' : taken ? 'taken' : 'refused';
    this.#counts.add(`signal ${name}, said a reply`);
    if (status === 202) return;
    const rows = [...this.#tables.rows('signals').values()];
    const row = rows.find((one) => one.id === id);
    if (row === undefined) return;
    if (row.status !== name || row.taken_by !== block_id) {
      throw new Violation(`signal ${id} is ${row.status} by ${row.taken_by}, not ${name}`, target);
    }
    const { token } = (body as { readonly payload: { readonly token?: string } }).payload;
    if (taken && (reply as { readonly heard?: string } | null)?.heard !== token) {
      throw new Violation(`the reply to ${token} was ${JSON.stringify(reply)}`, target);
    }
  }

  #read(id: string, body: Row, engine: SimEngine, before: Row | undefined): void {
    this.#expectVersion(id, body);
    if (engine !== this.#newest() || before === undefined) return;
    if (body.updated_at! < before.updated_at!) {
      throw new Violation(`GET showed ${body.updated_at}, older than ${before.updated_at}`, id);
    }
  }

  /** Of the changes that one commit made, only the last one has ever been a row. */
  #expectVersion(id: string, { state, updated_at }: Row): void {
    if (this.#observer.versions.get(id)?.has(`${state} ${updated_at}`) === true) return;
    const row = this.#tables.row('instances', id);
    if (row === undefined || row.updated_at! >= updated_at!) return;
    throw new Violation(`an answer showed ${state} of ${updated_at}, never committed`, id);
  }

  // ---------------------------------------------------------------- those outside

  /** Nobody else has answered. The instance may be gone by now. */
  #answeredQuestion({ target, body }: Call): void {
    const { approval, given } = body as AnswerBody;
    const row = this.#tables.row('approvals', approval);
    if (row === undefined && !this.#isPresent(target)) return;
    const { answer_id } = (row?.answer ?? {}) as { answer_id?: string };
    if (row?.outcome !== 'answered' || answer_id !== given.answerId) {
      throw new Violation(`${given.answerId} was told that it answered, not ${answer_id}`, target);
    }
  }

  #sent({ tenant, body }: Call, id: string): void {
    const { producer_event_id } = body as { producer_event_id: string };
    const name = `${tenant}: ${producer_event_id}`;
    const known = entryOf(this.#events, name, () => id);
    if (known !== id) throw new Violation(`the event ${name} is ${known} and ${id}`);
    if (this.#tables.row('events', id) === undefined) {
      throw new Violation(`the event ${name} was acknowledged before its commit`);
    }
  }

  // ---------------------------------------------------------------- workers

  #claimed({ id, instance_id, claim_epoch, worker_id }: TaskBody): void {
    const claim = `${id} ${claim_epoch}`;
    const worker = this.#observer.claims.get(claim);
    if (worker !== worker_id) {
      throw new Violation(`${worker_id} got task ${claim}, which ${worker} has`, instance_id);
    }
    if (this.#delivered.has(claim))
      throw new Violation(`task ${claim} was handed out twice`, instance_id);
    this.#delivered.add(claim);
  }

  /** Each outcome promises what the route of one result would have promised. */
  #exchanged(call: Call, { outcomes, tasks }: ExchangedBody): void {
    const { worker_id, results } = call.body as { worker_id: string; results: ResultBody[] };
    if (outcomes.length !== results.length) throw new Violation('an outcome is missing');
    results.forEach(({ kind, task_id: target, ...result }, at) => {
      const { status, task_id, checkpoint_seq = 0 } = outcomes[at]!;
      if (task_id !== target) throw new Violation(`the outcome of ${target} is of ${task_id}`);
      if (status === 500) throw new Violation(`a result of ${target} was answered 500`);
      this.#counts.add(`exchanged ${kind} ${status}`);
      if (status >= 300) return;
      if (kind === 'heartbeat') this.#beaten(target, checkpoint_seq);
      else
        this.#ended({
          ...call,
          operation: `workers.${kind}`,
          target,
          body: { worker_id, ...result },
        });
    });
    for (const task of tasks) this.#claimed(task);
  }

  #ended({ operation, target, body }: Call): void {
    const task = this.#tables.row('worker_tasks', target);
    if (task === undefined) return;
    const wanted = operation === 'workers.complete' ? 'completed' : 'failed';
    const instance = String(task.instance_id);
    if (task.state !== wanted) throw new Violation(`task ${target} is ${task.state}`, instance);
    const { worker_id, claim_epoch = task.claim_epoch } = body as { [key: string]: JsonValue };
    if (task.worker_id !== worker_id || task.claim_epoch !== claim_epoch) {
      throw new Violation(`task ${target} was ended by an old claim`, instance);
    }
    if (wanted === 'failed') return;
    const { output } = body as { output: object };
    if (JSON.stringify(task.output) !== JSON.stringify(output)) {
      throw new Violation(`task ${target} has another output than acknowledged`, instance);
    }
    if (!this.#observer.given.has(`${instance} ${task.block_id} ${task.iteration}`)) {
      throw new Violation(`task ${target} was acknowledged without an output`, instance);
    }
  }

  #beaten(id: string, seq: number): void {
    const task = this.#tables.row('worker_tasks', id);
    if (task !== undefined && Number(task.checkpoint_seq) < seq) {
      throw new Violation(`task ${id} was promised checkpoint ${seq}`, String(task.instance_id));
    }
  }
}

interface ResultBody {
  readonly kind: 'complete' | 'fail' | 'heartbeat';
  readonly task_id: string;
}

interface ExchangedBody {
  readonly outcomes: readonly {
    readonly task_id: string;
    readonly status: number;
    readonly checkpoint_seq?: number;
  }[];
  readonly tasks: readonly TaskBody[];
}

interface AnswerBody {
  readonly approval: string;
  readonly given: { readonly answerId: string };
}

interface CollectedBody {
  readonly idempotency_key?: string;
  readonly context: { readonly data: { readonly token: string } };
}

interface ContextBody {
  readonly context: { readonly config: { readonly mark: string } };
}
