/**
 * One claimed task: heartbeats, checkpoints, log lines of its handler, and reasons to abort it. All its reports go
 * through `say`, with the epoch of the claim.
 */

import { byteLength, jsonOf } from '../client/json.js';
import { after } from '../client/time.js';
import type { WorkerTask } from '../generated/types.js';
import { type AbortReason, TaskAbortedError } from './errors.js';
import type { Task, TaskContext } from './handlers.js';
import { Lines } from './lines.js';
import { type Outcome, type Report, reportOf } from './outbox.js';

/** A result without the members that the claim adds. */
export type Said =
  | { readonly kind: 'complete'; readonly output: object }
  | { readonly kind: 'fail'; readonly message: string; readonly retryable: boolean }
  | {
      readonly kind: 'heartbeat';
      readonly checkpoint_seq?: number;
      readonly checkpoint?: object;
      /** Releases the claim. */
      readonly release?: true;
    };

/** Where reports are sent. */
export interface ReportSink {
  /** The server's limit for one result, including its log. */
  readonly resultBytesMax: number;
  say(report: Report): void;
}

const LOGS_NAME = ',"logs":';

export class Claim {
  readonly task: WorkerTask;
  /** The task as passed to handlers and hooks: always the same object. */
  readonly given: Task;
  readonly context: TaskContext;
  readonly lines = new Lines();
  readonly #sink: ReportSink;
  readonly #onAbort: (reason: TaskAbortedError) => void;
  readonly #ending = new AbortController();
  readonly #forgetLimit: (() => void) | undefined;
  readonly #claimedAt: number;
  /** The server has reported it; the signal may have been aborted earlier for another reason. */
  #isLost = false;
  #checkpointSeq: number;
  #saving: Promise<void> = Promise.resolve();
  /** Times of the latest accepted report and the latest heartbeat. */
  #heardAt: number;
  #beatAt: number;

  /** @param now of the same clock as in `beat`, in milliseconds */
  constructor(
    task: WorkerTask,
    now: number,
    sink: ReportSink,
    onAbort: (reason: TaskAbortedError) => void,
  ) {
    this.task = task;
    this.given = {
      ...task,
      params: task.params as Task['params'],
      checkpoint: task.resume_checkpoint,
    };
    this.#sink = sink;
    this.#onAbort = onAbort;
    this.#checkpointSeq = task.checkpoint_seq;
    this.#claimedAt = now;
    this.#heardAt = now;
    this.#beatAt = now;
    const { timeout_ms: timeoutMs } = task;
    if (timeoutMs !== null && timeoutMs !== undefined) {
      const end = () => this.abort('timeout', `the time limit of ${timeoutMs} ms was exceeded`);
      this.#forgetLimit = after(timeoutMs, end);
    }
    this.context = {
      signal: this.#ending.signal,
      traceparent: task.traceparent,
      log: this.lines.log,
      checkpoint: (value) => this.#checkpoint(value),
    };
  }

  /** The reason its signal was aborted; undefined if it was not. */
  get aborted(): AbortReason | undefined {
    const { signal } = this.#ending;
    return signal.aborted ? (signal.reason as TaskAbortedError).reason : undefined;
  }

  /** The claim belongs to another worker: reports no longer count. */
  get isLost(): boolean {
    return this.#isLost;
  }

  durationMs(now: number): number {
    return now - this.#claimedAt;
  }

  /** The handler has ended: its time limit no longer applies. */
  end(): void {
    this.#forgetLimit?.();
  }

  abort(reason: AbortReason, message: string): void {
    if (this.#ending.signal.aborted) return;
    const error = new TaskAbortedError(reason, message);
    this.#ending.abort(error);
    this.#onAbort(error);
  }

  /**
   * @param hasLogs includes the lines that the handler logged, as far as they fit
   * @throws TypeError if the result is not JSON
   */
  say(said: Said, { isFleeting = false, hasLogs = false } = {}): Promise<Outcome> {
    const { id, claim_epoch } = this.task;
    const bare = jsonOf({ task_id: id, claim_epoch, ...said });
    const room = this.#sink.resultBytesMax - byteLength(bare) - LOGS_NAME.length;
    const logs = hasLogs ? this.lines.json(room) : '';
    const text = logs === '' ? bare : `${bare.slice(0, -1)}${LOGS_NAME}${logs}}`;
    const { report, outcome } = reportOf(text, isFleeting);
    this.#sink.say(report);
    return outcome;
  }

  /**
   * The claim cannot have been lost before this time, since the server gave no tasks to anybody: silence counts from
   * here.
   */
  vouch(at: number): void {
    this.#heardAt = Math.max(this.#heardAt, at);
  }

  /** Sends a heartbeat if it is due, and aborts the task if the lease may have expired. */
  async beat(now: number, heartbeatMs: number, leaseMs: number): Promise<void> {
    if (now - this.#heardAt >= leaseMs) {
      this.abort('silent', `no heartbeat was acknowledged for ${leaseMs} ms`);
    }
    if (this.#isLost || now - this.#beatAt < heartbeatMs) return;
    this.#beatAt = now;
    const { status } = await this.say({ kind: 'heartbeat' }, { isFleeting: true });
    if (status === 200) this.#heardAt = Math.max(this.#heardAt, now);
    else if (isLoss(status)) this.#lose();
  }

  /** One after the other, since each is numbered by the answer to the previous one. */
  #checkpoint(value: object): Promise<void> {
    const saved = this.#saving.then(() => this.#save(value));
    // A caller that does not wait for it learns of a lost claim by the signal.
    this.#saving = saved.catch(() => undefined);
    return saved;
  }

  async #save(checkpoint: object): Promise<void> {
    for (;;) {
      if (this.#isLost) throw this.#ending.signal.reason;
      const checkpoint_seq = this.#checkpointSeq;
      const said = await this.say({ kind: 'heartbeat', checkpoint_seq, checkpoint });
      if (said.status === 200) {
        this.#checkpointSeq = said.checkpoint_seq ?? checkpoint_seq + 1;
        return;
      }
      if (!isLoss(said.status)) throw new Error(`the checkpoint was rejected: ${said.error}`);
      // Either the claim is lost, or an answer was and the checkpoint is stored: a plain heartbeat tells which.
      const { status, checkpoint_seq: stored = checkpoint_seq } = await this.say({
        kind: 'heartbeat',
      });
      if (status !== 200 || stored === checkpoint_seq) this.#lose();
      this.#checkpointSeq = stored;
      if (said.isRepeated && stored === checkpoint_seq + 1) return;
    }
  }

  #lose(): void {
    this.#isLost = true;
    this.abort(
      'lost',
      'the claim was lost: the instance was cancelled, or another worker has the task',
    );
  }
}

export const isLoss = (status: number) => status === 404 || status === 409;
