/**
 * The exchange of a worker with its server: sends reports and polls for tasks.
 *
 * 1. While no tasks are waiting, one long poll is open, and reports are sent beside it at once.
 * 2. Under load, results and the next poll share a request. Reports made while requests are in flight go with the next
 *    one, so batches grow with the load.
 * 3. A poll asks for no more than the free slots that no other poll asks for.
 * 4. A long poll carries no results, since their outcomes would wait with it.
 * 5. Unanswered reports are resent unchanged until they are answered. The epoch of the claim makes that harmless.
 * 6. After a failure that a report may have caused, the reports of that request are sent apart, the smallest first,
 *    beside newer ones: one that never arrives does not block the others.
 * 7. No request exceeds the limit that the server announces in its responses.
 */

import type { EngineError } from '../client/errors.js';
import { byteLength } from '../client/json.js';
import { after } from '../client/time.js';
import { backoffMs } from '../client/transport.js';
import type { TasksExchanged, WorkerTask } from '../generated/types.js';
import { Outbox, type Report } from './outbox.js';

/** Sends an exchange once. */
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

/** Callbacks to the worker. */
export interface ExchangesOwner {
  /** The number of free slots. */
  freePlaces(): number;
  onTasks(tasks: readonly WorkerTask[]): void;
  onPoll(limit: number, tasks: number, durationMs: number): void;
  onReport(results: number, refused: number, durationMs: number): void;
  onAnswer(): void;
  /**
   * The database of the server is unavailable, so the server gives tasks to nobody; it answered this to a request sent
   * at that time.
   */
  onAway(sentAt: number): void;
  /** @param failures consecutive failures, including this one */
  onFailure(error: unknown, failures: number): void;
}

interface Poll {
  readonly limit: number;
  readonly waitMs: number;
  /** Set for a long poll. */
  readonly ending?: AbortController;
}

/** Concurrent requests with results: the next batch is built while the server handles the previous one. */
const SENDING_MAX = 2;
/** Size limit for the results of one request, far below the server's. A larger result is sent alone. */
const BATCH_BYTES_MAX = 2_000_000;
/** Default for servers that do not announce their limit. */
const BODY_BYTES_MAX = 10_485_760;
/** How long ending a long poll may take. */
const POLL_END_MS = 1_000;
/** The server's limit for a long poll. */
const POLL_WAIT_MS_MAX = 60_000;
/** Time limit of a response, in addition to the wait of a poll. */
const ANSWER_MS = 30_000;
const BACKOFF_MS_MAX = 5_000;
/** Backoff limit for errors that the operator has to fix. */
const DENIED_MS_MAX = 30_000;
/** The report is invalid or too large: resending it would not help. */
export const REFUSED: ReadonlySet<number> = new Set([400, 413, 422]);
/** Nothing in the request took effect. */
const UNDONE: ReadonlySet<number> = new Set([401, 403, 404, 405, 429]);
const DENIED: ReadonlySet<number> = new Set([400, 401, 403, 404]);
/** The code of an engine whose database is unavailable. */
const AWAY = 'ENG_DATABASE_DOWN';

export class Exchanges {
  readonly #send: SendExchange;
  readonly #settings: ExchangesSettings;
  readonly #owner: ExchangesOwner;
  readonly #outbox = new Outbox();
  /** The beginning of a request without results, and the bytes left for results. */
  readonly #head: string;
  #resultBytesMax = 0;
  readonly #closing = new AbortController();
  #isPolling = false;
  /**
   * A response has arrived: before that polls do not wait, so that a server that rejects the worker says so at once.
   */
  #hasMet = false;
  /** Requests with results in flight. */
  #sending = 0;
  /** Slots that polls in flight ask for. */
  #asked = 0;
  #waiting: AbortController | undefined;
  /** The latest poll returned as many tasks as it asked for: there may be more. */
  #isBusy = false;
  #isScheduled = false;
  #failures = 0;
  #pause: (() => void) | undefined;
  #isSendingAside = false;
  /** Delays reports that have failed alone. */
  #asidePause: (() => void) | undefined;
  #pollEnd: (() => void) | undefined;
  #quiet: (() => void)[] = [];

  constructor(send: SendExchange, settings: ExchangesSettings, owner: ExchangesOwner) {
    this.#send = send;
    this.#settings = settings;
    this.#owner = owner;
    const { workerId: worker_id, version } = settings;
    this.#head = JSON.stringify({ worker_id, version }).slice(0, -1);
    this.#accepted(BODY_BYTES_MAX);
  }

  /** The server's limit for one result, including its log. */
  get resultBytesMax(): number {
    return this.#resultBytesMax;
  }

  #accepted(bodyBytesMax: number): void {
    this.#resultBytesMax = bodyBytesMax - byteLength(`${this.#head},"results":[]}`);
  }

  startPolling(): void {
    this.#isPolling = true;
    this.schedule();
  }

  /**
   * Asks the server to answer the long poll, since a poll that is aborted may already have been given tasks. If the
   * server does not answer soon, the poll is aborted and the server reclaims the tasks.
   */
  stopPolling(): void {
    this.#isPolling = false;
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    const leave = () => waiting.abort();
    const options = { signal: this.#closing.signal, timeoutMs: POLL_END_MS };
    this.#send(`${this.#head},"end_polls":true}`, options).then(
      () => {
        this.#pollEnd = after(POLL_END_MS, leave);
      },
      // The server does not support it, or is unavailable.
      leave,
    );
  }

  say(report: Report): void {
    const { bytes, settle } = report;
    if (this.#closing.signal.aborted) this.#giveUp([report]);
    else if (bytes > this.#resultBytesMax) {
      const error = `${bytes} bytes exceed the server's limit of ${this.#resultBytesMax}`;
      settle({ status: 413, error, isRepeated: false });
    } else this.#outbox.add(report);
    this.schedule();
  }

  /** Sends what is due after the current events are handled, so that results that finish together are sent together. */
  schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    defer(() => {
      this.#isScheduled = false;
      this.#pump();
    });
  }

  /** Resolves when all reports are answered. */
  quiet(): Promise<void> {
    return new Promise((resolve) => {
      this.#quiet.push(resolve);
      this.schedule();
    });
  }

  /** Sends nothing more; pending outcomes are resolved as unanswered. */
  close(): void {
    this.#isPolling = false;
    this.#waiting?.abort();
    this.#closing.abort();
    for (const forget of [this.#pause, this.#asidePause, this.#pollEnd]) forget?.();
    this.#giveUp(this.#outbox.empty());
  }

  #free(): number {
    return Math.max(0, this.#owner.freePlaces() - this.#asked);
  }

  #pump(): void {
    const outbox = this.#outbox;
    if (outbox.isEmpty && this.#sending === 0 && (this.#isPolling || !this.#waiting)) {
      for (const resolve of this.#quiet.splice(0)) resolve();
    }
    if (this.#closing.signal.aborted || this.#pause !== undefined) return;
    while (outbox.hasNext && this.#sending < SENDING_MAX) {
      const limit = this.#isPolling && this.#isBusy ? this.#free() : 0;
      const poll = limit > 0 ? { limit, waitMs: 0 } : undefined;
      void this.#exchange(outbox.take(this.#batchBytes(poll)), poll);
    }
    if (!this.#isSendingAside && outbox.hasAside(this.#asidePause !== undefined)) {
      void this.#exchangeAside();
    }
    const limit = this.#free();
    if (!this.#isPolling || this.#waiting !== undefined || limit === 0) return;
    this.#waiting = new AbortController();
    const waitMs = this.#hasMet ? Math.min(this.#settings.pollWaitMs, POLL_WAIT_MS_MAX) : 0;
    void this.#exchange([], { limit, waitMs, ending: this.#waiting });
  }

  /** Sends the requests with reports that were set aside, one at a time. */
  async #exchangeAside(): Promise<void> {
    this.#isSendingAside = true;
    const isReceived = await this.#exchange(this.#outbox.takeAside(this.#batchBytes(undefined)));
    this.#isSendingAside = false;
    if (isReceived) this.#outbox.received();
  }

  #batchBytes(poll: Poll | undefined): number {
    return Math.min(BATCH_BYTES_MAX, this.#resultBytesMax - byteLength(this.#pollText(poll)));
  }

  /** @returns whether it was answered */
  async #exchange(reports: readonly Report[], asked?: Poll): Promise<boolean> {
    // A report that leaves no room for a poll is sent without one.
    const bytes = reports.reduce((sum, report) => sum + report.bytes + 1, 0);
    const poll = reports.length === 0 || bytes <= this.#batchBytes(asked) ? asked : undefined;
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
    return 'value' in answer;
  }

  #textOf(reports: readonly Report[], poll: Poll | undefined): string {
    const results = reports.map(({ text }) => text).join(',');
    const listed = reports.length === 0 ? '' : `,"results":[${results}]`;
    return `${this.#head}${this.#pollText(poll)}${listed}}`;
  }

  #pollText(poll: Poll | undefined): string {
    if (poll === undefined) return '';
    const { handlers, queues } = this.#settings;
    const asked = { handlers, queues, limit: poll.limit, wait_ms: poll.waitMs };
    return `,"poll":${JSON.stringify(asked)}`;
  }

  #take(
    { outcomes, tasks, max_body_bytes: bodyBytesMax }: TasksExchanged,
    reports: readonly Report[],
    poll: Poll | undefined,
    sentAt: number,
  ): void {
    const durationMs = performance.now() - sentAt;
    this.#failures = 0;
    this.#hasMet = true;
    if (bodyBytesMax !== undefined) this.#accepted(bodyBytesMax);
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
    // If other reports were judged, the server is healthy, and only these are delayed.
    if (unknown.length === reports.length && unknown.length > 0) {
      this.#putBack(unknown, true);
      this.#pauseFor(backoffMs(0));
    } else for (const report of unknown) this.#setAside([report]);
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
    const { status = 0, code = '', retryAfterMs = 0, message } = error as Partial<EngineError>;
    if (code === AWAY) this.#owner.onAway(sentAt);
    const [first] = reports;
    if (first !== undefined && REFUSED.has(status)) {
      const isAlone = reports.length === 1;
      if (isAlone && poll === undefined) {
        first.settle({ status, error: message, code, isRepeated: first.isRepeated });
      } else this.#outbox.setAside(reports, isAlone);
      return;
    }
    const meaning = meaningOf(status, code);
    const { failedAlone = 0 } = first ?? {};
    if (meaning === 'unclear') this.#setAside(reports);
    else this.#putBack(reports, meaning === 'away');
    if (meaning === 'unclear' && failedAlone > 0) {
      // A repeated failure of this report says nothing about the server.
      this.#owner.onFailure(error, failedAlone + 1);
      return;
    }
    this.#failures += 1;
    this.#owner.onFailure(error, this.#failures);
    if (meaning === 'unclear' && reports.length === 1 && this.#failures === 1) return;
    const longestMs = DENIED.has(status) ? DENIED_MS_MAX : BACKOFF_MS_MAX;
    this.#pauseFor(backoffMs(this.#failures - 1, retryAfterMs, longestMs));
  }

  /** Sends nothing for a while. */
  #pauseFor(waitMs: number): void {
    if (this.#closing.signal.aborted) return;
    this.#pause?.();
    this.#pause = after(waitMs, () => {
      this.#pause = undefined;
      this.#pump();
    });
  }

  /** They are resent before all others. */
  #putBack(reports: readonly Report[], mayHaveArrived: boolean): void {
    this.#outbox.putBack(this.#lasting(reports, mayHaveArrived));
  }

  /** They are resent apart. */
  #setAside(reports: readonly Report[]): void {
    const lasting = this.#lasting(reports, true);
    const isAlone = reports.length === 1;
    this.#outbox.setAside(lasting, isAlone);
    if (!isAlone || lasting[0] === undefined) return;
    this.#asidePause?.();
    this.#asidePause = after(backoffMs(lasting[0].failedAlone - 1, 0, BACKOFF_MS_MAX), () => {
      this.#asidePause = undefined;
      this.#pump();
    });
  }

  /** The reports to resend; the others are given up. */
  #lasting(reports: readonly Report[], mayHaveArrived: boolean): readonly Report[] {
    const isClosed = this.#closing.signal.aborted;
    this.#giveUp(reports.filter(({ isFleeting }) => isClosed || isFleeting));
    if (isClosed) return [];
    const lasting = reports.filter(({ isFleeting }) => !isFleeting);
    for (const report of lasting) report.isRepeated ||= mayHaveArrived;
    return lasting;
  }

  #giveUp(reports: readonly Report[]): void {
    for (const { settle, isRepeated } of reports) settle({ status: 0, isRepeated });
  }
}

/**
 * What a failure means. `undone`: the server reports that nothing took effect. `away`: the server is unavailable, and
 * the outcome is unknown. `unclear`: there was no response or a foreign one, and a report may be the cause.
 */
function meaningOf(status: number, code: string): 'undone' | 'away' | 'unclear' {
  if (code === 'CLIENT_UNREACHABLE' || status === 429) return 'undone';
  if (!code.startsWith('ENG_')) return 'unclear';
  if (UNDONE.has(status)) return 'undone';
  return status === 503 ? 'away' : 'unclear';
}

/** After the promises that are settled now. Some runtimes only have a timer of a millisecond for that. */
const defer: (run: () => void) => void =
  typeof setImmediate === 'function' ? setImmediate : (run) => setTimeout(run, 0);
