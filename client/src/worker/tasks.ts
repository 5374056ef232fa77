/**
 * The claimed tasks: runs their handlers, keeps their claims alive and reports the results. A slot is free as soon as
 * the handler has ended, even if its result is not sent yet.
 */

import { after } from '../client/time.js';
import type { WorkerTask } from '../generated/types.js';
import { Claim, isLoss, type ReportSink, type Said } from './claim.js';
import { failureOf, messageOf } from './failure.js';
import type { Handler, Task } from './handlers.js';
import type { TaskEnding } from './options.js';
import type { Outcome } from './outbox.js';
import type { Reporter } from './reporter.js';
import { runHandler } from './run-handler.js';
import { textOf } from './texts.js';

export interface TasksSettings {
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
}

/** How a handler ended, and the report; undefined: none. */
interface Ended {
  readonly ending: TaskEnding;
  readonly said: Said | undefined;
  readonly error?: unknown;
  readonly retryAfterMs?: number;
}

/** The handler ended because the worker is stopping: another worker may claim the task at once. */
const GIVEN_BACK = { kind: 'heartbeat', release: true } as const;

/** The code for a result that was already accepted. */
const TAKEN = 'ENG_RESULT_REPEATED';

export class Tasks {
  readonly #settings: TasksSettings;
  readonly #reporter: Reporter;
  readonly #sink: ReportSink;
  readonly #onFree: () => void;
  /** Claims to keep alive: those of running handlers, and of failures that are delayed. */
  readonly #claims = new Set<Claim>();
  /** Delayed failures by claim, with the function that reports them at once. */
  readonly #held = new Map<Claim, () => void>();
  /** Pending until everything about a claim is reported. */
  readonly #work = new Set<Promise<void>>();
  #running = 0;
  #isStopping = false;

  /** @param onFree called when a handler has ended */
  constructor(settings: TasksSettings, reporter: Reporter, sink: ReportSink, onFree: () => void) {
    this.#settings = settings;
    this.#reporter = reporter;
    this.#sink = sink;
    this.#onFree = onFree;
  }

  get freePlaces(): number {
    return this.#settings.concurrency - this.#running;
  }

  get isIdle(): boolean {
    return this.#work.size === 0;
  }

  begin(task: WorkerTask): void {
    const claim = new Claim(task, performance.now(), this.#sink, ({ reason, message }) => {
      if (reason !== 'stopping') this.#reporter.warn(`${nameOf(task)} was aborted: ${message}`);
    });
    this.#claims.add(claim);
    this.#running += 1;
    const work = this.#do(claim).finally(() => {
      this.#work.delete(work);
      this.#claims.delete(claim);
    });
    this.#work.add(work);
  }

  /** Declines a task because the worker is stopping: others may claim it at once. */
  decline(task: WorkerTask): void {
    const claim = new Claim(task, performance.now(), this.#sink, () => undefined);
    claim.end();
    void claim.say(GIVEN_BACK);
  }

  beat(): void {
    const { heartbeatMs, leaseMs } = this.#settings;
    const now = performance.now();
    for (const claim of this.#claims) void claim.beat(now, heartbeatMs, leaseMs);
  }

  /** See `Claim.vouch`; same clock as `beat`. */
  vouch(at: number): void {
    for (const claim of this.#claims) claim.vouch(at);
  }

  /** Resolves when all tasks are done and reported. From now on no failure is delayed. */
  async done(): Promise<void> {
    this.#isStopping = true;
    for (const release of this.#held.values()) release();
    // A poll that was already answered may add tasks.
    while (this.#work.size > 0) await Promise.all(this.#work);
  }

  abortAll(): void {
    for (const claim of this.#claims) claim.abort('stopping', 'the worker is stopping');
  }

  /** Handlers may continue, but their results are ignored. */
  giveUpAll(): void {
    for (const claim of this.#claims) this.#end(claim, { ending: 'given_up', said: undefined });
  }

  /** Like `giveUpAll`, but other workers may claim the tasks at once. */
  giveBackAll(): void {
    for (const claim of this.#claims) {
      if (!claim.isLost) void claim.say(GIVEN_BACK);
      this.#end(claim, { ending: 'given_up', said: undefined });
    }
  }

  async #do(claim: Claim): Promise<void> {
    const { given: task } = claim;
    this.#reporter.emit('onTaskStart', { task });
    const ended = await this.#handle(claim, task);
    this.#running -= 1;
    this.#onFree();
    // It may have been given up in the meantime.
    if (!this.#claims.has(claim)) return;
    if (ended.retryAfterMs) await this.#holdBack(claim, ended.retryAfterMs);
    this.#end(claim, ended);
    if (ended.said !== undefined) await this.#report(claim, ended.said);
  }

  async #handle(claim: Claim, task: Task): Promise<Ended> {
    try {
      const output = await runHandler(
        this.#settings.handlers.get(task.handler_name),
        task,
        claim.context,
      );
      if (claim.isLost) return { ending: 'dropped', said: undefined };
      return { ending: 'completed', said: { kind: 'complete', output } };
    } catch (error) {
      const { aborted, isLost } = claim;
      if (aborted === 'stopping') return { ending: 'given_up', said: GIVEN_BACK, error };
      if (isLost || aborted === 'silent') {
        return { ending: 'dropped', said: undefined, error };
      }
      const { message, retryable, retryAfterMs, lines } = failureOf(error);
      for (const line of lines) claim.lines.add('error', line);
      const said = { kind: 'fail', message, retryable } as const;
      return { ending: 'failed', said, error, retryAfterMs: retryable ? retryAfterMs : 0 };
    } finally {
      claim.end();
    }
  }

  #end(claim: Claim, { ending, said, error }: Ended): void {
    claim.end();
    this.#claims.delete(claim);
    this.#reporter.emit('onTaskEnd', {
      task: claim.given,
      ending,
      durationMs: claim.durationMs(performance.now()),
      ...(error === undefined ? {} : { error }),
      ...(said?.kind === 'fail' ? { retryable: said.retryable } : {}),
    });
  }

  /** At most as many as it can run: otherwise it would hold claims that other workers could use. */
  #holdBack(claim: Claim, ms: number): Promise<void> {
    if (this.#isStopping || this.#held.size >= this.#settings.concurrency) return Promise.resolve();
    return new Promise((resolve) => {
      const release = () => {
        forget();
        this.#held.delete(claim);
        resolve();
      };
      const forget = after(ms, release);
      this.#held.set(claim, release);
    });
  }

  /**
   * A result rejected because its claim is lost is dropped, unless it was sent twice and accepted the first time. A
   * result rejected as invalid is sent again without its log, which matters less than the result; after that, an output
   * is reported as a failure.
   */
  async #report(claim: Claim, said: Said, hasLogs = true): Promise<void> {
    if (claim.isLost) return;
    const { status, error = '', code } = await outcomeOf(claim, said, hasLogs);
    if (status === 200 || status === 0 || said.kind === 'heartbeat') return;
    const name = nameOf(claim.task);
    if (isLoss(status)) {
      if (code !== TAKEN) {
        this.#reporter.warn(`the result of ${name} was dropped: its claim is lost (${status})`);
      }
      return;
    }
    this.#reporter.warn(`the result of ${name} was rejected: ${error}`);
    this.#reporter.emit('onError', { error: new Error(error), task: claim.given });
    if (hasLogs && !claim.lines.isEmpty) await this.#report(claim, said, false);
    else if (said.kind === 'complete') {
      const message = messageOf(`the output was rejected: ${error}`);
      await this.#report(claim, { kind: 'fail', message, retryable: false });
    }
  }
}

async function outcomeOf(claim: Claim, said: Said, hasLogs: boolean): Promise<Outcome> {
  const isOfHandler = said.kind !== 'heartbeat';
  try {
    return await claim.say(said, { hasLogs: hasLogs && isOfHandler });
  } catch (error) {
    // Not JSON: a bigint or a cyclic value.
    return { status: 400, error: textOf(error), isRepeated: false };
  }
}

const nameOf = ({ id, handler_name }: WorkerTask) => `task ${id} of "${handler_name}"`;
