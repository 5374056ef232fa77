/**
 * The connection of one lane of the writer: reconnects for ever, with a bounded back-off, and determines
 * after each loss which flush was the last to be committed. Also checks on a flush without an answer, since
 * a half-open connection never breaks by itself.
 */

import type pg from 'pg';
import type { Clock, TimerHandle } from '../../src/base/clock.js';
import { doubtPrimary } from '../../src/db/primary.js';
import { type DatabaseTrouble, databaseTrouble, troubleOf } from '../../src/db/trouble.js';
import {
  type Answer,
  type BackendId,
  type BackendState,
  backendState,
  type Command,
  destroyClient,
  WriterSession,
} from '../../src/db/writer-session.js';
import type { Writer } from './writer.js';

/** Thrown to leave the loops of a closed link; never leaves the writer. */
class LinkClosed extends Error {}

/** A flush without an answer for this long is checked over a second connection. */
const SILENCE_MS = 1_500;
/** Timeout of the first check; it doubles each time, for slow networks. */
const PROBE_MS = 1_000;
const PROBE_MS_MAX = 8_000;
const SILENT = databaseTrouble(undefined, 'the database does not answer');
const UNCONFIRMED: DatabaseTrouble = { kind: 'replica', message: 'a commit waits for a replica' };

const TROUBLE_OF: Readonly<
  Record<Exclude<BackendState, 'gone'> | 'unreachable', DatabaseTrouble | undefined>
> = { working: undefined, 'waits for a replica': UNCONFIRMED, unreachable: SILENT };

/** The first reconnection is immediate; before the second this pause, which then doubles. */
const BACKOFF_MS = 50;
const BACKOFF_MS_MAX = 2_000;

export class LaneLink {
  /** The last committed flush; undefined until first connected. */
  committed: number | undefined;
  /** The flush that was sent and not rolled back; otherwise `committed`. */
  sent: number | undefined;
  readonly #lane: number;
  readonly #writer: Writer;
  #session: WriterSession | undefined;
  #connecting: Promise<WriterSession> | undefined;
  #client: pg.Client | undefined;
  /** The backend that must have ended before the lane's row is reliable. */
  #predecessor: BackendId | undefined;
  #failures = 0;
  #isClosed = false;
  readonly #sleepers = new Set<() => void>();

  constructor(lane: number, writer: Writer) {
    this.#lane = lane;
    this.#writer = writer;
  }

  /** The current session, or a promise of one, however long it takes. @throws LinkClosed */
  session(): WriterSession | Promise<WriterSession> {
    return this.#session ?? this.#connected();
  }

  adopt(flush: number): void {
    this.committed = flush;
    this.#writer.options.ledger.settle(this.#lane, flush);
  }

  rolledBack(): void {
    this.sent = this.committed;
  }

  /** A flush was answered: the database is available. */
  proven(): void {
    this.#failures = 0;
    this.#writer.troubled(this.#lane, undefined);
  }

  /** The session is unusable: the outcome of its last exchange is unknown. */
  drop(session: WriterSession, trouble: DatabaseTrouble): void {
    session.destroy();
    if (this.#session !== session) return;
    this.#session = undefined;
    this.#writer.troubled(this.#lane, trouble);
  }

  /** Drops the session under a flush; pauses unless it is the first time. @throws LinkClosed */
  async retreat(session: WriterSession, trouble: DatabaseTrouble): Promise<void> {
    this.drop(session, trouble);
    if (this.#failures > 0) await this.pause();
    else this.#failures = 1;
  }

  /** Waits before a retry, longer each time. @throws LinkClosed */
  async pause(): Promise<void> {
    const { clock } = this.#writer.options;
    const ms = Math.min(BACKOFF_MS * 2 ** this.#failures, BACKOFF_MS_MAX);
    if (!this.#isClosed) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          clock.clearTimeout(timer);
          this.#sleepers.delete(wake);
          resolve();
        };
        const timer = clock.setTimeout(wake, ms);
        this.#sleepers.add(wake);
      });
    }
    if (this.#isClosed) throw new LinkClosed();
    this.#failures += 1;
  }

  async send(session: WriterSession, commands: readonly Command[]): Promise<Answer> {
    const stopWatching = this.#watch(session);
    const answer = await session.exchange(commands);
    stopWatching();
    return answer;
  }

  refuse(): void {
    this.#isClosed = true;
    for (const wake of this.#sleepers) wake();
  }

  /** Closes any connection; an exchange in flight is answered `lost`. */
  close(): void {
    this.refuse();
    this.#session?.destroy();
    this.#session = undefined;
    if (this.#client !== undefined) destroyClient(this.#client);
  }

  #connected(): Promise<WriterSession> {
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async #connect(): Promise<WriterSession> {
    for (;;) {
      if (this.#isClosed) throw new LinkClosed();
      try {
        const session = await this.#open();
        // If a flush is in flight, only its answer proves that the database is available.
        if (this.sent === this.committed) this.proven();
        return session;
      } catch (error) {
        if (error instanceof LinkClosed) throw error;
        this.#writer.troubled(this.#lane, troubleOf(error));
        await this.pause();
      }
    }
  }

  /**
   * Connects and settles what the predecessor may have left behind:
   * 1. its backend is terminated and gone, so that it can commit nothing any more;
   * 2. the lane's row then has the number of the last flush, and the owner of the lane.
   */
  async #open(): Promise<WriterSession> {
    const { connect, store } = this.#writer.options;
    const client = connect();
    this.#client = client;
    let session: WriterSession | undefined;
    try {
      const opening = WriterSession.open(client, store.statements, (error) =>
        this.#lost(session, error),
      );
      session = await this.#writer.within(client, opening);
      const predecessor = this.#predecessor;
      if (predecessor !== undefined) {
        while (!(await this.#writer.within(client, session.terminate(predecessor))));
      }
      // This backend may send something from here on.
      this.#predecessor = session.backend;
      const row = await this.#writer.within(client, session.settledLane(this.#lane));
      if (this.#isClosed) throw new LinkClosed();
      this.#adoptRow(row);
      this.#session = session;
      return session;
    } catch (error) {
      if (session !== undefined) doubtPrimary(client);
      destroyClient(client);
      throw error;
    } finally {
      this.#client = undefined;
    }
  }

  #adoptRow(row: { readonly epoch: number; readonly batch: number } | undefined): void {
    const { epoch, ledger, log } = this.#writer.options;
    // The ledger may have later commits from the previous writer.
    const isOurs =
      row?.epoch === epoch &&
      !ledger.isBehind(this.#lane, row.batch) &&
      (this.committed === undefined || row.batch === this.committed || row.batch === this.sent);
    if (!isOurs) {
      const facts = { lane: this.#lane, epoch, committed: this.committed, sent: this.sent, row };
      const isOlder =
        row !== undefined &&
        row.epoch <= epoch &&
        (row.batch <= (this.committed ?? 0) || ledger.isBehind(this.#lane, row.batch));
      if (isOlder) log.error(facts, 'the database has lost commits that it had acknowledged');
      else log.error(facts, 'the lane belongs to another owner');
      this.#writer.fenced();
      throw new LinkClosed();
    }
    this.adopt(row.batch);
    this.sent ??= row.batch;
  }

  /** An idle connection broke: reconnects now, so that readiness is correct. */
  #lost(session: WriterSession | undefined, error: Error): void {
    if (session === undefined || this.#session !== session || this.#isClosed) return;
    this.drop(session, troubleOf(error));
    // Callers that need the session get the same promise.
    this.#connected().catch(ignoreClosed);
  }

  /**
   * A slow database must not be cut off, or a long statement would be sent again for ever. So the state of
   * a silent backend is read over another connection, and its own is closed only if it is not working.
   * @returns stops watching
   */
  #watch(session: WriterSession): () => void {
    const { clock } = this.#writer.options;
    let isOver = false;
    let timer: TimerHandle;
    const look = async (tries: number): Promise<void> => {
      const verdict = await this.#probe(session, Math.min(PROBE_MS * 2 ** tries, PROBE_MS_MAX));
      if (isOver) return;
      if (verdict === 'gone') {
        session.destroy();
        return;
      }
      this.#writer.troubled(this.#lane, TROUBLE_OF[verdict]);
      // The replicas may follow another primary by now: the next check finds it.
      if (verdict === 'waits for a replica') session.doubt();
      const isReached = verdict !== 'unreachable';
      timer = clock.setTimeout(() => void look(isReached ? 0 : tries + 1), SILENCE_MS);
    };
    timer = clock.setTimeout(() => void look(0), SILENCE_MS);
    return () => {
      isOver = true;
      clock.clearTimeout(timer);
    };
  }

  async #probe(session: WriterSession, ms: number): Promise<BackendState | 'unreachable'> {
    const { clock, connect } = this.#writer.options;
    const client = connect();
    try {
      return await cutAfter(clock, ms, client, backendState(client, session.backend));
    } catch {
      // The state of the backend is unknown.
      return 'unreachable';
    }
  }
}

/** @throws Error after `ms`, when it closes the connection of the client */
export function cutAfter<T>(
  clock: Clock,
  ms: number,
  client: pg.Client,
  work: Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimeout(() => {
      destroyClient(client);
      reject(new Error(SILENT.message));
    }, ms);
    const settle = () => clock.clearTimeout(timer);
    work.then(resolve, reject).finally(settle);
  });
}

export function ignoreClosed(error: unknown): void {
  if (!(error instanceof LinkClosed)) throw error;
}
