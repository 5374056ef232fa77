/**
 * The conversation of a worker with its server: takes what is to be said of tasks, and asks for new ones.
 *
 * 1. While nobody has work to give, one poll waits at the server, and what is to be said goes beside it at once.
 * 2. While there is more work than places, results and the next poll are one request. What comes up while requests are
 *    under way goes with the next, so that batches grow with the load by themselves.
 * 3. A poll never asks for more than the places that are free and that no other poll asks for.
 * 4. A poll that waits carries no results: their outcomes would wait with it.
 * 5. What was not answered is sent again as it was, until it is. The epoch of the claim makes that harmless.
 */

import type { EngineError } from '../client/errors.js';
import { backoffMs } from '../client/transport.js';
import type { TasksExchanged, WorkerTask } from '../generated/types.js';
import { Outbox, type Report } from './outbox.js';

/** Sends the text of an exchange once. */
export type SendExchange = (
  text: string,
  options: { readonly signal: AbortSignal | undefined; readonly timeoutMs: number },
) => Promise<TasksExchanged>;

export interface ExchangesSettings {
  readonly workerId: string;
  readonly version: string | undefined;
  readonly handlers: readonly string[];
  readonly queues: readonly string[] | undefined;
  readonly pollWaitMs: number;
}

/** What the worker is asked and told. */
export interface ExchangesOwner {
  /** Places for tasks that are free. */
  freePlaces(): number;
  onTasks(tasks: readonly WorkerTask[]): void;
  onPoll(limit: number, tasks: number, durationMs: number): void;
  onReport(results: number, refused: number, durationMs: number): void;
  onAnswer(): void;
  /** The database of the server is away, so that it gives nobody a task: it said so to what was sent then. */
  onAway(sentAt: number): void;
  /** @param failures in a row, this one included */
  onFailure(error: unknown, failures: number): void;
}

interface Poll {
  readonly limit: number;
  readonly waitMs: number;
  /** Of one that waits. */
  readonly ending?: AbortController;
}

/** Requests with results under way at once: the next batch is made while the server works on the one before. */
const SENDING_MAX = 2;
/** How long an answer may take, beside the wait of a poll. */
const ANSWER_MS = 30_000;
const BACKOFF_MS_MAX = 5_000;
/** Where asking again soon does not help, since somebody has to act. */
const DENIED_MS_MAX = 30_000;
/** What is said is wrong or too large: sending it again would not help. */
const REFUSED: ReadonlySet<number> = new Set([400, 413, 422]);
/** Nothing of the request was done. */
const UNDONE: ReadonlySet<number> = new Set([401, 403, 404, 405, 429]);
const DENIED: ReadonlySet<number> = new Set([400, 401, 403, 404]);
/** Of an engine whose database is away. */
const AWAY = 'ENG_DATABASE_DOWN';

export class Exchanges {
  readonly #send: SendExchange;
  readonly #settings: ExchangesSettings;
  readonly #owner: ExchangesOwner;
  readonly #outbox = new Outbox();
  readonly #closing = new AbortController();
  #isPolling = false;
  /** An answer came: before that no poll waits, so that a server that refuses the worker says so at once. */
  #hasMet = false;
  /** Requests with results under way. */
  #sending = 0;
  /** Places that polls under way ask for. */
  #asked = 0;
  #waiting: AbortController | undefined;
  /** The last poll got all that it asked for: there may be more. */
  #isBusy = false;
  #isScheduled = false;
  #failures = 0;
  #pause: ReturnType<typeof setTimeout> | undefined;
  #quiet: (() => void)[] = [];

  constructor(send: SendExchange, settings: ExchangesSettings, owner: ExchangesOwner) {
    this.#send = send;
    this.#settings = settings;
    this.#owner = owner;
  }

  startPolling(): void {
    this.#isPolling = true;
    this.schedule();
  }

  /** A poll that waits is ended: the server takes back what it would have given. */
  stopPolling(): void {
    this.#isPolling = false;
    this.#waiting?.abort();
  }

  say(report: Report): void {
    if (this.#closing.signal.aborted) report.settle({ status: 0, isRepeated: false });
    else this.#outbox.add(report);
    this.schedule();
  }

  /** Looks for what there is to do, behind what happens at this moment: what ends together is said together. */
  schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    defer(() => {
      this.#isScheduled = false;
      this.#pump();
    });
  }

  /** Resolves when all is said and answered. */
  quiet(): Promise<void> {
    return new Promise((resolve) => {
      this.#quiet.push(resolve);
      this.schedule();
    });
  }

  /** Says nothing any more; whoever waits for an outcome is told that there is none. */
  close(): void {
    this.stopPolling();
    this.#closing.abort();
    clearTimeout(this.#pause);
    while (!this.#outbox.isEmpty) this.#giveUp(this.#outbox.take());
  }

  #free(): number {
    return Math.max(0, this.#owner.freePlaces() - this.#asked);
  }

  #pump(): void {
    if (this.#outbox.isEmpty && this.#sending === 0) {
      for (const resolve of this.#quiet.splice(0)) resolve();
    }
    if (this.#closing.signal.aborted || this.#pause !== undefined) return;
    while (!this.#outbox.isEmpty && this.#sending < SENDING_MAX) {
      const limit = this.#isPolling && this.#isBusy ? this.#free() : 0;
      const poll = limit > 0 ? { limit, waitMs: 0 } : undefined;
      void this.#exchange(this.#outbox.take(), poll);
    }
    const limit = this.#free();
    if (!this.#isPolling || this.#waiting !== undefined || limit === 0) return;
    this.#waiting = new AbortController();
    const waitMs = this.#hasMet ? this.#settings.pollWaitMs : 0;
    void this.#exchange([], { limit, waitMs, ending: this.#waiting });
  }

  async #exchange(reports: readonly Report[], poll: Poll | undefined): Promise<void> {
    const { limit = 0, waitMs = 0, ending = this.#closing } = poll ?? {};
    const sentAt = performance.now();
    if (reports.length > 0) this.#sending += 1;
    this.#asked += limit;
    const answer = await this.#send(this.#textOf(reports, poll), {
      signal: ending.signal,
      timeoutMs: ANSWER_MS + waitMs,
    }).then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    if (reports.length > 0) this.#sending -= 1;
    this.#asked -= limit;
    if (ending === this.#waiting) this.#waiting = undefined;
    if ('value' in answer) this.#take(answer.value, reports, poll, sentAt);
    else if (ending.signal.aborted) this.#giveUp(reports);
    else this.#failed(answer.error, reports, poll, sentAt);
    this.schedule();
  }

  #textOf(reports: readonly Report[], poll: Poll | undefined): string {
    const { workerId: worker_id, version, handlers, queues } = this.#settings;
    const asked = poll && { handlers, queues, limit: poll.limit, wait_ms: poll.waitMs };
    const text = JSON.stringify({ worker_id, version, poll: asked });
    if (reports.length === 0) return text;
    return `${text.slice(0, -1)},"results":[${reports.map((report) => report.text).join(',')}]}`;
  }

  #take(
    { outcomes, tasks }: TasksExchanged,
    reports: readonly Report[],
    poll: Poll | undefined,
    sentAt: number,
  ): void {
    const durationMs = performance.now() - sentAt;
    this.#failures = 0;
    this.#hasMet = true;
    this.#owner.onAnswer();
    const unknown: Report[] = [];
    let refused = 0;
    reports.forEach((report, at) => {
      const { status, checkpoint_seq, error, code } = outcomes[at] ?? { status: 503 };
      if (status >= 500 || status === 429) {
        if (code === AWAY) this.#owner.onAway(sentAt);
        unknown.push(report);
        return;
      }
      if (status !== 200) refused += 1;
      const { isRepeated } = report;
      report.settle({ status, checkpoint_seq, error, code, isRepeated });
    });
    if (reports.length > 0) this.#owner.onReport(reports.length, refused, durationMs);
    if (unknown.length > 0) this.#again(unknown, true, backoffMs(0));
    if (poll === undefined) return;
    this.#isBusy = tasks.length >= poll.limit;
    this.#owner.onPoll(poll.limit, tasks.length, durationMs);
    this.#owner.onTasks(tasks);
  }

  #failed(
    error: unknown,
    reports: readonly Report[],
    poll: Poll | undefined,
    sentAt: number,
  ): void {
    const { status = 0, code, retryAfterMs = 0, message } = error as Partial<EngineError>;
    if (code === AWAY) this.#owner.onAway(sentAt);
    if (REFUSED.has(status) && reports.length > 0) {
      void this.#refused(reports, poll !== undefined, status, message);
      return;
    }
    this.#failures += 1;
    this.#owner.onFailure(error, this.#failures);
    const longestMs = DENIED.has(status) ? DENIED_MS_MAX : BACKOFF_MS_MAX;
    const waitMs = backoffMs(this.#failures - 1, retryAfterMs, longestMs);
    this.#again(reports, !UNDONE.has(status), waitMs);
  }

  /**
   * One of them is to blame for the whole, or the poll that went with them: without it each half is sent by itself.
   */
  async #refused(
    reports: readonly Report[],
    hadPoll: boolean,
    status: number,
    error: string | undefined,
  ): Promise<void> {
    const [first, ...others] = reports;
    if (first !== undefined && others.length === 0 && !hadPoll) {
      first.settle({ status, error, isRepeated: first.isRepeated });
      return;
    }
    const half = Math.ceil(reports.length / 2);
    await this.#exchange(reports.slice(0, half), undefined);
    if (half < reports.length) await this.#exchange(reports.slice(half), undefined);
  }

  #again(reports: readonly Report[], mayHaveArrived: boolean, waitMs: number): void {
    const isClosed = this.#closing.signal.aborted;
    this.#giveUp(reports.filter(({ isFleeting }) => isClosed || isFleeting));
    if (isClosed) return;
    const lasting = reports.filter(({ isFleeting }) => !isFleeting);
    for (const report of lasting) report.isRepeated ||= mayHaveArrived;
    this.#outbox.putBack(lasting);
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      this.#pump();
    }, waitMs);
  }

  #giveUp(reports: readonly Report[]): void {
    for (const { settle, isRepeated } of reports) settle({ status: 0, isRepeated });
  }
}

/** Behind the promises that are settled now. Not every runtime has the one that does not wait a millisecond. */
const defer: (run: () => void) => void =
  typeof setImmediate === 'function' ? setImmediate : (run) => setTimeout(run, 0);
