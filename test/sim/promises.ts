/**
 * What an answer promises, held against the rows at the moment at which it leaves the engine, and
 * what all answers of a run promise together.
 */

import type { JsonValue } from '../../src/base/json.js';
import { isoTime } from '../../src/base/time.js';
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

export class Promises {
  readonly #tables: MemoryTables;
  readonly #observer: Observer;
  readonly #counts: Counts;
  readonly #newest: () => SimEngine;
  readonly #releases: ReleasePromises;
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
  before({ target }: Call, now: number): Mark {
    const row = this.#tables.row('instances', target);
    const births = this.#observer.birthsOf(target);
    const release = this.#releases.before(target);
    return { row, births, at: isoTime(Math.floor(now)), release };
  }

  /**
   * Whoever looks from now on may have seen the change: no answer from before it is given any more.
   * @throws Violation
   */
  committed(changes: readonly Change[], { client }: SimEngine): void {
    for (const { table, key, before } of changes) {
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
    if (status === 404 && wasThere && this.#isPresent(target)) {
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
        this.#created(call, body as { id: string; deduplicated: boolean });
        this.#checkKept(call.tenant, (body as { id: string }).id, engine);
        return;
      case 'instances.createBatch':
        this.#batchCreated(call);
        return;
      case 'instances.signal':
        this.#signalled(call, (body as { signal_id: string }).signal_id);
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

  #created(call: Call, { id, deduplicated }: { id: string; deduplicated: boolean }): void {
    const { idempotency_key: key } = call.body as { idempotency_key?: string };
    // Its sequence may have been deleted, with all of its instances, before the answer came.
    if (!this.#observer.versions.has(id)) throw new Violation('201 before the commit', id);
    if (key === undefined) {
      if (deduplicated) throw new Violation('deduplicated without a key', id);
      return;
    }
    const name = `${call.tenant}: ${key}`;
    const known = entryOf(this.#keys, name, () => ({ id, fresh: 0 }));
    if (known.id !== id) throw new Violation(`key ${name} stands for ${known.id}, too`, id);
    if (!deduplicated) known.fresh += 1;
    if (known.fresh > this.#observer.birthsOf(id)) {
      throw new Violation(`key ${name} was new ${known.fresh} times`, id);
    }
  }

  #batchCreated(call: Call): void {
    const { instances } = call.body as { instances: { metadata: { token: string } }[] };
    for (const { metadata } of instances) {
      if (!this.#observer.tokens.has(metadata.token)) {
        throw new Violation(`201 for a batch without ${metadata.token}`);
      }
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

interface ContextBody {
  readonly context: { readonly config: { readonly mark: string } };
}
