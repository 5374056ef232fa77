/**
 * Stands for worker endpoints: workers that are called. What they answer, and whether a request arrives at all, is as
 * the seed says. A task is delivered only under a claim that is committed, and once under each claim.
 */

import type { PushReply, PushRequest, PushSender } from '../../src/handlers/push-sender.js';
import { TOKEN } from './blocks-observer.js';
import type { Observer } from './observer.js';
import type { Parts } from './parts.js';
import { HANDLERS } from './shapes.js';
import type { Thread } from './world.js';

/** Of so many seeds, in one there are endpoints. */
const PUSHED_EVERY = 4;
const NAME = 'called';

interface EndpointsDeps extends Pick<Parts, 'world' | 'faults' | 'random' | 'tables'> {
  readonly api: () => Parts['api'];
  readonly observer: Observer;
  readonly complain: (text: string, instance: string) => void;
  readonly count: (name: string) => void;
}

interface Task {
  readonly id: string;
  readonly instance_id: string;
  readonly block_id: string;
  readonly claim_epoch: number;
}

/** What becomes of a request, by weight, while there are faults; later ones are answered. */
const OUTCOMES = {
  output: 10,
  accepted: 3,
  'accepted, and forgotten': 1,
  failure: 2,
  'final failure': 1,
  'no JSON': 1,
  busy: 1,
  pause: 1,
  timeout: 1,
  unsent: 2,
  broken: 1,
} as const;

export class Endpoints {
  readonly isOn: boolean;
  readonly #deps: EndpointsDeps;
  readonly #delivered = new Set<string>();
  #tokens = 0;

  constructor(deps: EndpointsDeps) {
    this.#deps = deps;
    this.isOn = deps.world.seed % PUSHED_EVERY === 3;
  }

  isSet(tenant: string): boolean {
    const rows = [...this.#deps.tables.rows('worker_endpoints').values()];
    return rows.some(({ tenant_id }) => tenant_id === tenant);
  }

  /** The target and the body of its creation, or of a change. */
  settings(): readonly [target: string, body: object] {
    const { random } = this.#deps;
    const url = 'http://tasks.example/';
    const set = { concurrency: random.integer(1, 4), timeout_ms: 5_000 };
    return [NAME, { handlers: HANDLERS, url, secret: 'of the endpoint', ...set }];
  }

  senderOf(thread: Thread): PushSender {
    return {
      send: (request, signal) => {
        const { world, faults, random } = this.#deps;
        const task = JSON.parse(request.body) as Task;
        const outcome = faults.isOver ? 'output' : random.weighted(OUTCOMES);
        world.note(`${thread.name} delivers ${request.id}: ${outcome}`);
        if (outcome !== 'unsent') this.#check(request, task);
        const ms = outcome === 'timeout' ? request.timeoutMs : world.latency(1, 1_500);
        return new Promise((resolve) => {
          signal.addEventListener('abort', () => resolve({ kind: 'aborted' }), { once: true });
          world.at(world.now + ms, () => resolve(this.#replyTo(task, outcome)), thread);
        });
      },
    };
  }

  #check({ id }: PushRequest, { id: task, instance_id, claim_epoch }: Task): void {
    const { observer, complain, count } = this.#deps;
    const worker = observer.claims.get(`${task} ${claim_epoch}`);
    if (worker !== `endpoint:${NAME}`) {
      complain(`${id} was delivered, but its claim is of ${worker}`, instance_id);
    }
    if (this.#delivered.has(id)) complain(`${id} was delivered twice`, instance_id);
    this.#delivered.add(id);
    count('deliveries to endpoints');
  }

  #replyTo(task: Task, outcome: keyof typeof OUTCOMES): PushReply {
    switch (outcome) {
      case 'output':
        return answered(200, JSON.stringify(this.#outputOf(task)));
      case 'accepted':
        void this.#completeLater(task);
        return answered(202);
      case 'accepted, and forgotten':
        return answered(202);
      case 'failure':
        return answered(500, '{"message":"simulated"}');
      case 'final failure':
        return answered(422, '{"message":"simulated","retryable":false}');
      case 'no JSON':
        return answered(200, '<html>');
      case 'busy':
        return answered(429);
      case 'pause':
        return { ...answered(503), retryAfterMs: 2_000 };
      case 'timeout':
        return { kind: 'timeout' };
      case 'unsent':
      case 'broken':
        return { kind: outcome, reason: 'simulated' };
    }
  }

  /** By the API, like every worker. Asks again while it does not know whether it was heard. */
  async #completeLater(task: Task): Promise<void> {
    const { world, api } = this.#deps;
    const { claim_epoch } = task;
    const body = { worker_id: `endpoint:${NAME}`, claim_epoch, output: this.#outputOf(task) };
    for (let status = 0; status === 0 || status === 503; ) {
      await world.sleep(world.latency(10, 2_000));
      status = (await api().call('workers.complete', '', task.id, body)).status;
    }
  }

  #outputOf({ block_id }: Task) {
    this.#tokens += 1;
    return { text: 'done', by: NAME, [TOKEN + block_id]: `${NAME}/${this.#tokens}` };
  }
}

const answered = (status: number, text = '') =>
  ({ kind: 'answered', status, retryAfterMs: undefined, text, free: () => undefined }) as const;
