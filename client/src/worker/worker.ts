/**
 * A worker: claims tasks of its handlers, as many at once as it has slots, and reports the result of each
 * (docs/workers.md).
 */

import type { Client } from '../client/client.js';
import { EngineError } from '../client/errors.js';
import { after, every, expectNumbers } from '../client/time.js';
import type { WorkerTask } from '../generated/types.js';
import { adviceFor } from './advice.js';
import { Exchanges } from './exchanges.js';
import { failureMessage, isRefusal } from './failure-messages.js';
import type { Handler, Named } from './handlers.js';
import type { WorkerOptions } from './options.js';
import { Reporter } from './reporter.js';
import { handlersOf } from './run-handler.js';
import { interrupted, newWorkerId, watchUncaught } from './surroundings.js';
import { Tasks } from './tasks.js';
import { memberOf, textOf } from './texts.js';
import { sendExchangesBy } from './wire.js';

const CONCURRENCY = 100;
const LEASE_MS = 60_000;
const POLL_WAIT_MS = 20_000;
const STOP_TIMEOUT_MS = 20_000;
const COMPLAIN_AFTER_MS = 60_000;
/** How long aborted handlers of a stopping worker may take to end. */
const ABORTED_MS = 1_000;
/** How long a stopping worker tries to send its last results. */
const LAST_WORDS_MS = 5_000;
/** Maximum number of handler and queue pairs in a poll. */
const PAIRS_MAX = 100;

/**
 * ```ts
 * const worker = new Worker(client, { handlers: { charge: async (task) => ({ paid: task.params.amount }) } });
 * await worker.run();
 * ```
 */
export class Worker<P extends Named = Named, O = object> {
  readonly id: string;
  readonly #client: Client;
  readonly #options: WorkerOptions<P, O>;
  readonly #handlers: ReadonlyMap<string, Handler>;
  readonly #reporter: Reporter;
  readonly #tasks: Tasks;
  readonly #exchanges: Exchanges;
  readonly #heartbeatMs: number;
  /** Handlers and queues that have received a task. */
  readonly #fed = { handlers: new Set<string>(), queues: new Set<string>() };
  readonly #met = deferred();
  readonly #end = deferred();
  #isStarted = false;
  #isMet = false;
  #isReachable = true;
  #stopping: Promise<void> | undefined;
  /** The process is ending because of an uncaught error. */
  #isEnding = false;
  /** Functions that stop its timers and its process listeners. */
  readonly #ends: (() => void)[] = [];
  /** Aborts background requests. */
  readonly #closing = new AbortController();

  /** @throws TypeError for invalid options */
  constructor(client: Client, options: WorkerOptions<P, O>) {
    const { concurrency = CONCURRENCY, leaseMs = LEASE_MS, heartbeatMs = leaseMs / 4 } = options;
    this.#client = client;
    this.#options = options;
    this.#heartbeatMs = heartbeatMs;
    this.#handlers = handlersOf(options.handlers);
    expectSound(options, [...this.#handlers.keys()], { concurrency, leaseMs, heartbeatMs });
    this.id = options.workerId ?? newWorkerId();
    this.#reporter = new Reporter(this.id, options.hooks, options.logger);
    this.#exchanges = this.#conversation();
    this.#tasks = new Tasks(
      { handlers: this.#handlers, concurrency, leaseMs, heartbeatMs },
      this.#reporter,
      this.#exchanges,
      () => this.#exchanges.schedule(),
    );
  }

  #conversation(): Exchanges {
    const reporter = this.#reporter;
    const send = sendExchangesBy(this.#client, () =>
      reporter.info('the server has no exchange route: each result is sent in its own request'),
    );
    const { version, queues, pollWaitMs = POLL_WAIT_MS } = this.#options;
    const handlers = [...this.#handlers.keys()];
    return new Exchanges(
      send,
      { workerId: this.id, version, handlers, queues, pollWaitMs },
      {
        freePlaces: () => this.#tasks.freePlaces,
        onTasks: (tasks) => this.#begin(tasks),
        onPoll: (limit, tasks, durationMs) => reporter.emit('onPoll', { limit, tasks, durationMs }),
        onReport: (results, refused, durationMs) =>
          reporter.emit('onReport', { results, refused, durationMs }),
        onAnswer: () => this.#answered(),
        onAway: (sentAt) => this.#tasks.vouch(sentAt),
        onFailure: (error, failures) => this.#failed(error, failures),
      },
    );
  }

  /**
   * Resolves when the server has answered the first poll. Retries as long as the server cannot be reached.
   *
   * @throws EngineError if the server rejects the worker; the message suggests the cause
   */
  start(): Promise<void> {
    if (!this.#isStarted && this.#stopping === undefined) {
      this.#isStarted = true;
      const { handleSignals = false, complainAfterMs = COMPLAIN_AFTER_MS } = this.#options;
      if (handleSignals) interrupted(this.#end.promise, () => void this.stop());
      this.#ends.push(
        every(this.#heartbeatMs / 4, () => this.#tasks.beat()),
        watchUncaught({
          onRejection: (reason) => this.#rejected(reason),
          beforeExit: (error) => this.#handBack(error),
        }),
      );
      if (complainAfterMs > 0) {
        this.#ends.push(after(complainAfterMs, () => void this.#advise()));
      }
      this.#exchanges.startPolling();
    }
    return this.#met.promise;
  }

  /** Starts the worker if necessary, and resolves when it has stopped. @throws EngineError as `start` */
  async run(): Promise<void> {
    await this.start();
    await this.#end.promise;
  }

  /**
   * Stops claiming tasks, and resolves when all claimed tasks are done and reported. Tasks that take longer than
   * `stopTimeoutMs` are aborted; a handler that does not end within a second after that is given up, and its task is
   * offered again when its lease expires.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#exchanges.stopPolling();
    const done = this.#finished();
    if (!(await within(this.#options.stopTimeoutMs ?? STOP_TIMEOUT_MS, done))) {
      this.#tasks.abortAll();
      await within(ABORTED_MS, done);
      this.#tasks.giveUpAll();
    }
    await within(LAST_WORDS_MS, this.#exchanges.quiet());
    this.#close();
    this.#met.resolve();
    this.#end.resolve();
  }

  async #finished(): Promise<void> {
    await this.#tasks.done();
    await this.#exchanges.quiet();
  }

  #close(): void {
    this.#exchanges.close();
    this.#closing.abort();
    for (const end of this.#ends.splice(0)) end();
  }

  /** Most likely from a handler that did not await something. */
  #rejected(error: unknown): void {
    this.#reporter.warn(`unhandled rejection: ${traceOf(error)}`);
    this.#reporter.emit('onError', { error });
  }

  /** The process is about to exit: other workers may claim the tasks at once. */
  async #handBack(error: unknown): Promise<void> {
    this.#reporter.warn(`the process exits because of an uncaught error: ${traceOf(error)}`);
    this.#isEnding = true;
    this.#exchanges.stopPolling();
    this.#tasks.giveBackAll();
    await within(LAST_WORDS_MS, this.#exchanges.quiet());
  }

  #begin(tasks: readonly WorkerTask[]): void {
    for (const task of tasks) {
      // An open poll might claim the tasks that were just released.
      if (this.#stopping !== undefined || this.#isEnding) {
        this.#tasks.decline(task);
        continue;
      }
      this.#fed.handlers.add(task.handler_name);
      if (task.queue_name !== undefined) this.#fed.queues.add(task.queue_name);
      this.#tasks.begin(task);
    }
  }

  #answered(): void {
    this.#isMet = true;
    this.#met.resolve();
    if (!this.#isReachable) this.#reporter.info('the server is reachable again');
    this.#isReachable = true;
  }

  #failed(error: unknown, failures: number): void {
    const sentence = failureMessage(error);
    this.#reporter.emit('onError', { error });
    if (failures === 1) this.#reporter.warn(sentence);
    this.#isReachable = false;
    if (this.#isMet || !isRefusal(error)) return;
    const { status, code, field, requestId, body } = error;
    const message = sentence;
    const refusal = new EngineError({
      status,
      code,
      message,
      field,
      requestId,
      body,
      cause: error,
    });
    this.#stopping ??= Promise.resolve();
    this.#close();
    this.#met.reject(refusal);
    this.#end.reject(refusal);
  }

  async #advise(): Promise<void> {
    const { handlers, queues } = this.#fed;
    const idle = [...this.#handlers.keys()].filter((name) => !handlers.has(name));
    const empty = (this.#options.queues ?? []).filter((name) => !queues.has(name));
    if (idle.length + empty.length === 0) return;
    try {
      const { signal } = this.#closing;
      const sentences = await adviceFor(this.#client, idle, empty, signal);
      for (const sentence of sentences) this.#reporter.warn(sentence);
    } catch {
      // The worker has stopped, or polls report what is wrong with the server.
    }
  }
}

interface Numbers {
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
}

function expectSound(
  {
    queues,
    pollWaitMs,
    stopTimeoutMs,
    complainAfterMs,
  }: Omit<WorkerOptions<Named, object>, 'handlers'>,
  handlers: readonly string[],
  { concurrency, leaseMs, heartbeatMs }: Numbers,
): void {
  expectNumbers({ leaseMs, heartbeatMs, pollWaitMs, stopTimeoutMs, complainAfterMs });
  if (handlers.length === 0) throw new TypeError('a worker needs at least one handler');
  if (queues?.length === 0) throw new TypeError('queues is empty; omit it to serve all queues');
  if (handlers.length * (queues?.length ?? 1) > PAIRS_MAX) {
    throw new TypeError(`more than ${PAIRS_MAX} combinations of a handler and a queue`);
  }
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new TypeError(`concurrency must be an integer of at least 1, not ${concurrency}`);
  }
  if (!(heartbeatMs > 0 && heartbeatMs <= leaseMs / 2 && leaseMs < Number.POSITIVE_INFINITY)) {
    throw new TypeError('heartbeatMs must be greater than 0 and at most half of leaseMs');
  }
}

const traceOf = (error: unknown) => textOf(memberOf(error, 'stack') ?? error);

/** A promise with its settling functions, which need not be awaited. */
function deferred() {
  let resolve!: () => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<void>((...settle) => {
    [resolve, reject] = settle;
  });
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}

/** @returns whether it was settled in time */
async function within(ms: number, what: Promise<void>): Promise<boolean> {
  let forget = () => {};
  const late = new Promise<boolean>((resolve) => {
    forget = after(ms, () => resolve(false));
  });
  const isDone = await Promise.race([what.then(() => true), late]);
  forget();
  return isDone;
}
