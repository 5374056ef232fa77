/**
 * The tasks in hand: runs their handlers, keeps their claims alive, and reports what came of them. A place is free as
 * soon as a handler has ended; what is still to be said of its task takes none.
 */

import { after } from '../client/time.js';
import type { WorkerTask } from '../generated/types.js';
import { Claim, isLoss, type ReportSink, type Said } from './claim.js';
import { FatalError } from './errors.js';
import { failureOf, messageOf } from './failure.js';
import type { Handler, Task } from './handlers.js';
import type { TaskEnding } from './options.js';
import type { Outcome } from './outbox.js';
import { conforming, type Schema } from './schemas.js';
import type { Telling } from './telling.js';
import { textOf } from './texts.js';

export interface TasksSettings {
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
}

/** How it ended, and what is said of it; undefined: nothing. */
interface Ended {
  readonly ending: TaskEnding;
  readonly said: Said | undefined;
  readonly error?: unknown;
  readonly retryAfterMs?: number;
}

/** Its handler has ended since the worker stops: somebody else may have the task at once. */
const GIVEN_BACK = { kind: 'heartbeat', release: true } as const;

/** Of a result that is sent again: the claim was ended by it before. */
const TAKEN = 'ENG_RESULT_REPEATED';

export class Tasks {
  readonly #settings: TasksSettings;
  readonly #telling: Telling;
  readonly #sink: ReportSink;
  readonly #onFree: () => void;
  /** Those that have to be kept alive: of running handlers, and of failures that are held back. */
  readonly #claims = new Set<Claim>();
  /** By the claims whose failures are held back: what reports one at once. */
  readonly #held = new Map<Claim, () => void>();
  /** What goes on until all of a claim is said. */
  readonly #work = new Set<Promise<void>>();
  #running = 0;
  #isStopping = false;

  /** @param onFree a handler has ended */
  constructor(settings: TasksSettings, telling: Telling, sink: ReportSink, onFree: () => void) {
    this.#settings = settings;
    this.#telling = telling;
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
      if (reason !== 'stopping') this.#telling.warn(`${nameOf(task)} is aborted: ${message}`);
    });
    this.#claims.add(claim);
    this.#running += 1;
    const work = this.#do(claim).finally(() => {
      this.#work.delete(work);
      this.#claims.delete(claim);
    });
    this.#work.add(work);
  }

  /** The worker stops: others may have it at once. */
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

  /** See `Claim.vouch`: of the clock of `beat`. */
  vouch(at: number): void {
    for (const claim of this.#claims) claim.vouch(at);
  }

  /** Resolves when all of them are done and reported. From now on nothing is held back. */
  async done(): Promise<void> {
    this.#isStopping = true;
    for (const release of this.#held.values()) release();
    // More may come meanwhile, of a poll that was answered already.
    while (this.#work.size > 0) await Promise.all(this.#work);
  }

  abortAll(): void {
    for (const claim of this.#claims) claim.abort('stopping', 'the worker stops');
  }

  /** Their handlers may go on, but nobody listens to them any more. */
  giveUpAll(): void {
    for (const claim of this.#claims) this.#end(claim, { ending: 'given_up', said: undefined });
  }

  /** As `giveUpAll`, and others may have them at once. */
  giveBackAll(): void {
    for (const claim of this.#claims) {
      if (!claim.isLost) void claim.say(GIVEN_BACK);
      this.#end(claim, { ending: 'given_up', said: undefined });
    }
  }

  async #do(claim: Claim): Promise<void> {
    const { given: task } = claim;
    this.#telling.tell('onTaskStart', { task });
    const ended = await this.#handle(claim, task);
    this.#running -= 1;
    this.#onFree();
    // It may have been given up meanwhile.
    if (!this.#claims.has(claim)) return;
    if (ended.retryAfterMs) await this.#holdBack(claim, ended.retryAfterMs);
    this.#end(claim, ended);
    if (ended.said !== undefined) await this.#report(claim, ended.said);
  }

  async #handle(claim: Claim, task: Task): Promise<Ended> {
    try {
      const output = await run(this.#settings.handlers.get(task.handler_name), task, claim);
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
    this.#telling.tell('onTaskEnd', {
      task: claim.given,
      ending,
      durationMs: claim.durationMs(performance.now()),
      ...(error === undefined ? {} : { error }),
      ...(said?.kind === 'fail' ? { retryable: said.retryable } : {}),
    });
  }

  /** Not more than it can do at once: else it would claim what other workers could do. */
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
   * What is refused for its claim is dropped, unless it was sent twice and taken the first time. What is refused for
   * what it says is sent without its log, which is worth less than the result; then an output is a failure.
   */
  async #report(claim: Claim, said: Said, hasLogs = true): Promise<void> {
    if (claim.isLost) return;
    const { status, error = '', code } = await outcomeOf(claim, said, hasLogs);
    if (status === 200 || status === 0 || said.kind === 'heartbeat') return;
    const name = nameOf(claim.task);
    if (isLoss(status)) {
      if (code !== TAKEN) {
        this.#telling.warn(`the result of ${name} is dropped: its claim is lost (${status})`);
      }
      return;
    }
    this.#telling.warn(`the result of ${name} was refused: ${error}`);
    this.#telling.tell('onError', { error: new Error(error), task: claim.given });
    if (hasLogs && !claim.lines.isEmpty) await this.#report(claim, said, false);
    else if (said.kind === 'complete') {
      const message = messageOf(`the output was refused: ${error}`);
      await this.#report(claim, { kind: 'fail', message, retryable: false });
    }
  }
}

/** @throws whatever the handler throws; what does not conform is no error that another try would mend */
async function run(handler: Handler | undefined, task: Task, claim: Claim): Promise<object> {
  if (handler === undefined) throw new Error(`this worker has no handler ${task.handler_name}`);
  const { params, output } = handler;
  const given =
    params === undefined
      ? task
      : { ...task, params: await checked(params, task.params, 'the params') };
  const returned = (await handler.run(given as Task, claim.context)) ?? {};
  const value = output === undefined ? returned : await checked(output, returned, 'the output');
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new FatalError(`the output must be an object, not ${textOf(value)}`);
}

async function checked(schema: Schema<unknown>, value: unknown, what: string): Promise<unknown> {
  try {
    return await conforming(schema, value);
  } catch (cause) {
    throw new FatalError(`${what} cannot be taken: ${textOf(cause)}`, { cause });
  }
}

async function outcomeOf(claim: Claim, said: Said, hasLogs: boolean): Promise<Outcome> {
  const isOfHandler = said.kind !== 'heartbeat';
  try {
    return await claim.say(said, { hasLogs: hasLogs && isOfHandler });
  } catch (error) {
    // It is no JSON: a bigint, or something that contains itself.
    return { status: 400, error: textOf(error), isRepeated: false };
  }
}

const nameOf = ({ id, handler_name }: WorkerTask) => `task ${id} of "${handler_name}"`;
