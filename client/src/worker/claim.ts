/**
 * One claimed task: its heartbeats, its checkpoints, the lines that its handler logs, and what ends it before its
 * handler does. Every word about it goes through `say`, with the epoch of the claim.
 */

import { byteLength, jsonOf } from '../client/json.js';
import { after } from '../client/time.js';
import type { WorkerTask } from '../generated/types.js';
import { type AbortReason, TaskAbortedError } from './errors.js';
import type { Task, TaskContext } from './handlers.js';
import { Lines } from './lines.js';
import { type Outcome, type Report, reportOf } from './outbox.js';

/** A result without what the claim adds to it. */
export type Said =
  | { readonly kind: 'complete'; readonly output: object }
  | { readonly kind: 'fail'; readonly message: string; readonly retryable: boolean }
  | {
      readonly kind: 'heartbeat';
      readonly checkpoint_seq?: number;
      readonly checkpoint?: object;
      /** Gives the claim back. */
      readonly release?: true;
    };

/** Where reports go: the conversation with the server. */
export interface ReportSink {
  /** What the server accepts of one result, logs included. */
  readonly resultBytesMax: number;
  say(report: Report): void;
}

const LOGS_NAME = ',"logs":';

export class Claim {
  readonly task: WorkerTask;
  /** As handlers and hooks get it: one and the same, so that they can keep things by it. */
  readonly given: Task;
  readonly context: TaskContext;
  readonly lines = new Lines();
  readonly #sink: ReportSink;
  readonly #onAbort: (reason: TaskAbortedError) => void;
  readonly #ending = new AbortController();
  readonly #forgetLimit: (() => void) | undefined;
  readonly #claimedAt: number;
  /** The server has said so; the signal may have been aborted before, for another reason. */
  #isLost = false;
  #checkpointSeq: number;
  #saving: Promise<void> = Promise.resolve();
  /** When the last word was sent that the server took, and when the last heartbeat was sent. */
  #heardAt: number;
  #beatAt: number;

  /** @param now of the same clock as that of `beat`, in milliseconds */
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
      const end = () => this.abort('timeout', `the time limit of ${timeoutMs} ms has passed`);
      this.#forgetLimit = after(timeoutMs, end);
    }
    this.context = {
      signal: this.#ending.signal,
      traceparent: task.traceparent,
      log: this.lines.log,
      checkpoint: (value) => this.#checkpoint(value),
    };
  }

  /** Why its signal was aborted; undefined: it was not. */
  get aborted(): AbortReason | undefined {
    const { signal } = this.#ending;
    return signal.aborted ? (signal.reason as TaskAbortedError).reason : undefined;
  }

  /** Somebody else's by now: nothing that is said of it counts. */
  get isLost(): boolean {
    return this.#isLost;
  }

  durationMs(now: number): number {
    return now - this.#claimedAt;
  }

  /** The handler has ended: nobody looks at the clock any more. */
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
   * @param hasLogs with the lines that the handler logged, as far as there is room for them
   * @throws TypeError when it has something that is no JSON
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

  /** The claim cannot have been lost by then: nobody is given a task, and behind that silence counts anew. */
  vouch(at: number): void {
    this.#heardAt = Math.max(this.#heardAt, at);
  }

  /** A heartbeat if it is time for one; and nobody works on a lease that nobody vouches for. */
  async beat(now: number, heartbeatMs: number, leaseMs: number): Promise<void> {
    if (now - this.#heardAt >= leaseMs) {
      this.abort('silent', `no heartbeat was answered for ${leaseMs} ms`);
    }
    if (this.#isLost || now - this.#beatAt < heartbeatMs) return;
    this.#beatAt = now;
    const { status } = await this.say({ kind: 'heartbeat' }, { isFleeting: true });
    if (status === 200) this.#heardAt = Math.max(this.#heardAt, now);
    else if (isLoss(status)) this.#lose();
  }

  /** One behind the other, since each is numbered by the answer to the one before. */
  #checkpoint(value: object): Promise<void> {
    const saved = this.#saving.then(() => this.#save(value));
    // Whoever does not wait for it learns of a lost claim by the signal.
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
      if (!isLoss(said.status)) throw new Error(`the checkpoint was refused: ${said.error}`);
      // Either the claim is lost, or an answer was, and the checkpoint is there: a plain heartbeat tells.
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
      'the claim is lost: the instance was cancelled, or another worker has the task',
    );
  }
}

export const isLoss = (status: number) => status === 404 || status === 409;
