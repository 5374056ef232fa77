/**
 * The workers of a run: they poll, and then do with a task whatever the seed says, also what no good
 * worker does: answer late, twice, with an old claim, or never. When the faults are over they are
 * good ones, so that everything can end.
 */

import type { ApiReply } from './api.js';
import { TOKEN } from './blocks-observer.js';
import { POISON } from './memory-backend.js';
import type { Parts } from './parts.js';
import { HANDLERS, QUEUE } from './shapes.js';

interface Task {
  readonly id: string;
  readonly block_id: string;
  readonly claim_epoch: number;
  readonly checkpoint_seq: number;
}

interface Exchanged {
  readonly outcomes: readonly { readonly status: number }[];
  readonly tasks: readonly Task[];
}

interface WorkerDeps extends Pick<Parts, 'world' | 'api' | 'faults' | 'random'> {
  readonly tenants: readonly string[];
}

/** What a worker does with a task, by weight. */
const MANNERS = {
  complete: 10,
  fail: 2,
  'fail for good': 1,
  heartbeat: 3,
  silent: 1,
  late: 1,
  twice: 1,
  stale: 1,
} as const;

export class SimWorker {
  readonly #name: string;
  readonly #deps: WorkerDeps;
  #tokens = 0;
  /** Tasks that it went silent about; it comes back to one of them later. */
  readonly #old: Task[] = [];
  /** Results that wait for its next exchange, and who wants to know what becomes of each. */
  readonly #mail: { readonly result: object; readonly tell: (reply: ApiReply) => void }[] = [];

  constructor(name: string, deps: WorkerDeps) {
    this.#name = name;
    this.#deps = deps;
  }

  /** Never resolves: the run ends before. */
  async work(): Promise<void> {
    const { world, api, random, faults, tenants } = this.#deps;
    for (;;) {
      await world.sleep(world.latency(1, faults.isOver ? 200 : 600));
      if (random.chance(0.4)) {
        await this.#exchange(random.chance(0.7) ? '' : random.pick(tenants));
        continue;
      }
      const handler_name = random.pick(HANDLERS);
      const isOfQueue = random.chance(0.2);
      const { status, body } = await api.call(
        isOfQueue ? 'workers.pollQueue' : 'workers.poll',
        random.chance(0.7) ? '' : random.pick(tenants),
        '',
        {
          handler_name,
          worker_id: this.#name,
          limit: random.integer(1, 3),
          wait_ms: faults.isOver || random.chance(0.5) ? random.integer(0, 3_000) : 0,
          ...(isOfQueue ? { queue_name: QUEUE } : {}),
        },
      );
      if (status !== 200) continue;
      // Nobody waits for the others: a worker does its tasks side by side.
      for (const task of body as Task[]) void this.#handle(task);
    }
  }

  /** Takes what it has to say along; what it has to say of others' tenants stays. */
  async #exchange(tenant: string): Promise<void> {
    const { api, random, faults } = this.#deps;
    const mail = tenant === '' ? this.#mail.splice(0) : [];
    const handlers = HANDLERS.filter(() => random.chance(0.6));
    const poll = {
      handlers: handlers.length === 0 ? [random.pick(HANDLERS)] : handlers,
      ...(random.chance(0.2) ? { queues: [QUEUE] } : {}),
      limit: random.integer(1, 5),
      wait_ms: faults.isOver || random.chance(0.5) ? random.integer(0, 3_000) : 0,
    };
    const { status, body } = await api.call('workers.exchange', tenant, '', {
      worker_id: this.#name,
      results: mail.map(({ result }) => result),
      ...(mail.length > 0 && random.chance(0.3) ? {} : { poll }),
    });
    const { outcomes, tasks } = (status === 200 ? body : {}) as Partial<Exchanged>;
    mail.forEach(({ tell }, at) => {
      const outcome = outcomes?.[at];
      tell({ status: outcome?.status ?? status, body: outcome });
    });
    for (const task of tasks ?? []) void this.#handle(task);
  }

  async #handle(task: Task): Promise<void> {
    const { world, random, faults } = this.#deps;
    await world.sleep(world.latency(1, faults.isOver ? 20 : 1_500));
    const manner = faults.isOver ? 'complete' : random.weighted(MANNERS);
    if (task.claim_epoch > 1 && random.chance(0.5)) {
      // The claim before this one may have been its own, too.
      const old = { ...task, claim_epoch: task.claim_epoch - 1 };
      await this.#ask('complete', old, { output: this.#outputOf(task, 'old') }, 1);
    }
    if (manner === 'silent') {
      this.#old.push(task);
      return;
    }
    if (manner.startsWith('fail')) {
      await this.#ask('fail', task, { message: 'simulated', retryable: manner === 'fail' });
      return;
    }
    if (manner === 'heartbeat') await this.#beat(task);
    if (manner === 'late') await world.sleep(random.integer(3_000, 15_000));
    if (manner === 'twice') await Promise.all([this.#complete(task), this.#complete(task)]);
    else await this.#complete(task);
    if (manner !== 'stale') return;
    await this.#complete({ ...task, claim_epoch: Math.max(0, task.claim_epoch - 1) });
    for (const old of this.#old.splice(0)) await this.#complete(old);
  }

  async #beat(task: Task): Promise<void> {
    const { world, random } = this.#deps;
    let seq = task.checkpoint_seq;
    for (let beats = random.integer(1, 3); beats > 0; beats--) {
      const checkpoint = random.chance(0.5) ? { checkpoint: { at: seq }, checkpoint_seq: seq } : {};
      const { status, body } = await this.#ask('heartbeat', task, checkpoint);
      if (status === 200) seq = (body as { checkpoint_seq: number }).checkpoint_seq;
      await world.sleep(world.latency(10, 2_000));
    }
  }

  /** Asks again while it does not know whether it was heard. */
  async #complete(task: Task): Promise<void> {
    const { world, faults } = this.#deps;
    const isPoisoned = faults.hits('poison');
    const output = this.#outputOf(task, 'done');
    for (let tries = 0; tries < 20; tries++) {
      const text = isPoisoned && tries === 0 ? POISON : output.text;
      const { status } = await this.#ask('complete', task, { output: { ...output, text } });
      const isAgain = status === 0 || status === 503 || (status === 400 && text === POISON);
      if (!isAgain) return;
      await world.sleep(world.latency(50, 1_000));
    }
  }

  #outputOf({ block_id }: Task, text: string) {
    this.#tokens += 1;
    return { text, by: this.#name, [TOKEN + block_id]: `${this.#name}/${this.#tokens}` };
  }

  #ask(
    what: 'complete' | 'fail' | 'heartbeat',
    task: Task,
    more: object,
    sure = 0.9,
  ): Promise<ApiReply> {
    const { api, random } = this.#deps;
    const epoch = random.chance(sure) ? { claim_epoch: task.claim_epoch } : {};
    if (random.chance(0.4)) {
      return new Promise<ApiReply>((tell) => {
        this.#mail.push({ result: { kind: what, task_id: task.id, ...epoch, ...more }, tell });
      });
    }
    const body = { worker_id: this.#name, ...epoch, ...more };
    return api.call(`workers.${what}`, '', task.id, body);
  }
}
