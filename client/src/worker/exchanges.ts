/**
 * The conversation of a worker with its server: takes what is to be said of tasks, and asks for new ones.
 *
 * 1. While nobody has work to give, one poll waits at the server, and what is to be said goes beside it at once.
 * 2. While there is more work than places, results and the next poll are one request. What comes up while requests are
 *    under way goes with the next, so that batches grow with the load by themselves.
 * 3. A poll never asks for more than the places that are free and that no other poll asks for.
 * 4. A poll that waits carries no results: their outcomes would wait with it.
 * 5. What was not answered is sent again as it was, until it is. The epoch of the claim makes that harmless.
 * 6. After a failure that a report may be to blame for, the reports of the request go apart, the smallest first, beside
 *    those that come up meanwhile: one that never arrives holds none of the others back.
 * 7. No request is larger than what the server accepts, which its answers say.
 */

import type { EngineError } from '../client/errors.js';
import { byteLength } from '../client/json.js';
import { after } from '../client/time.js';
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
/** Of the results of one request: far below what a server takes. A larger one goes alone. */
const BATCH_BYTES_MAX = 2_000_000;
/** Of a server that does not say what it accepts. */
const BODY_BYTES_MAX = 10_485_760;
/** How long the end of a poll that waits may take. */
const POLL_END_MS = 1_000;
/** No poll waits longer, whatever it asks for. */
const POLL_WAIT_MS_MAX = 60_000;
/** How long an answer may take, beside the wait of a poll. */
const ANSWER_MS = 30_000;
const BACKOFF_MS_MAX = 5_000;
/** Where asking again soon does not help, since somebody has to act. */
const DENIED_MS_MAX = 30_000;
/** What is said is wrong or too large: sending it again would not help. */
export const REFUSED: ReadonlySet<number> = new Set([400, 413, 422]);
/** Nothing of a request was done. */
const UNDONE: ReadonlySet<number> = new Set([401, 403, 404, 405, 429]);
const DENIED: ReadonlySet<number> = new Set([400, 401, 403, 404]);
/** Of an engine whose database is away. */
const AWAY = 'ENG_DATABASE_DOWN';

export class Exchanges {
  readonly #send: SendExchange;
  readonly #settings: ExchangesSettings;
  readonly #owner: ExchangesOwner;
  readonly #outbox = new Outbox();
  /** A request without results, as it begins; and the bytes that a result may have beside it. */
  readonly #head: string;
  #resultBytesMax = 0;
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
  #pause: (() => void) | undefined;
  #isSendingAside = false;
  /** Of those that have failed alone. */
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

  /** What the server accepts of one result, logs included. */
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
   * The server is asked to answer a poll that waits: one that is broken off may have been given tasks already. A
   * server that does not do so soon takes back what it would have given.
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
      // A server that does not know how, or is away.
      leave,
    );
  }

  say(report: Report): void {
    const { bytes, settle } = report;
    if (this.#closing.signal.aborted) this.#giveUp([report]);
    else if (bytes > this.#resultBytesMax) {
      const error = `${bytes} bytes are more than the ${this.#resultBytesMax} that the server accepts`;
      settle({ status: 413, error, isRepeated: false });
    } else this.#outbox.add(report);
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

  /** One request of those that are set aside, after the other. */
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
    // A report that leaves no room for a poll goes without one.
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
    // Where others were judged, the server is well, and does not wait for these.
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
      // That it fails again says nothing about the server.
      this.#owner.onFailure(error, failedAlone + 1);
      return;
    }
    this.#failures += 1;
    this.#owner.onFailure(error, this.#failures);
    if (meaning === 'unclear' && reports.length === 1 && this.#failures === 1) return;
    const longestMs = DENIED.has(status) ? DENIED_MS_MAX : BACKOFF_MS_MAX;
    this.#pauseFor(backoffMs(this.#failures - 1, retryAfterMs, longestMs));
  }

  /** Nothing is asked or said for a while. */
  #pauseFor(waitMs: number): void {
    if (this.#closing.signal.aborted) return;
    this.#pause?.();
    this.#pause = after(waitMs, () => {
      this.#pause = undefined;
      this.#pump();
    });
  }

  /** They are sent again, before all others. */
  #putBack(reports: readonly Report[], mayHaveArrived: boolean): void {
    this.#outbox.putBack(this.#lasting(reports, mayHaveArrived));
  }

  /** They are sent again, apart. */
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

  /** Those that are sent again; the others are given up. */
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
 * What a failure says: nothing was done, as the server says itself; the server is away, and nobody knows; or neither
 * is clear, since nobody answered or somebody else did, so that a report may be to blame.
 */
function meaningOf(status: number, code: string): 'undone' | 'away' | 'unclear' {
  if (code === 'CLIENT_UNREACHABLE' || status === 429) return 'undone';
  if (!code.startsWith('ENG_')) return 'unclear';
  if (UNDONE.has(status)) return 'undone';
  return status === 503 ? 'away' : 'unclear';
}

/** Behind the promises that are settled now. Not every runtime has the one that does not wait a millisecond. */
const defer: (run: () => void) => void =
  typeof setImmediate === 'function' ? setImmediate : (run) => setTimeout(run, 0);
