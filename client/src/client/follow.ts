/**
 * Follows event streams across reconnects: an instance until it ends, and the changes of a tenant without end. No event
 * is delivered twice, and none is lost.
 */

import type { AuditEntry, BlockOutput, Failure, InstanceState } from '../generated/types.js';
import { EngineError, UnsendableError } from './errors.js';
import type { Reading } from './events.js';
import type { CallOptions, StreamEvent } from './operation.js';
import { backoffMs, sleep } from './transport.js';

export interface FollowOptions extends Omit<CallOptions, 'totalTimeoutMs'> {
  /** Called when the stream is connected, lost, and connected again. */
  readonly onConnection?: ((isConnected: boolean) => void) | undefined;
}

export interface FollowInstanceOptions extends FollowOptions {
  /** False: no outputs, and a `state` event for each change of the instance, also within a state. Default: true. */
  readonly includeOutputs?: boolean | undefined;
}

export interface FollowChangesOptions extends FollowOptions {
  /** Where to start: the `cursor` of an earlier change, or a time, also as RFC 3339 text. Default: now. */
  readonly since?: string | Date | undefined;
}

/** The events of an instance. */
export type InstanceEvent =
  | {
      readonly type: 'state';
      readonly state: InstanceState;
      /** When it entered this state or was last changed in it; older servers do not send it. */
      readonly updated_at?: string;
      /** Set for a failed instance. */
      readonly failure?: Failure;
    }
  | { readonly type: 'output'; readonly output: BlockOutput }
  | {
      /** The last event. */
      readonly type: 'done';
      readonly state: 'completed' | 'failed' | 'cancelled';
      readonly failure?: Failure;
    };

/** An entry of the audit log, with its position. */
export interface Change extends AuditEntry {
  /** Store it and pass it as `since` to continue later. */
  readonly cursor: string;
}

/** Opens one connection; the query selects where to start. */
export type OpenEvents = (query: object, reading: Reading) => AsyncIterable<StreamEvent>;

/**
 * Ends after `done`, or when the signal is aborted. A reopened stream starts from the beginning; events that were
 * already delivered are skipped.
 *
 * @throws EngineError if the server refuses, or the instance was deleted
 */
export async function* followInstance(
  open: OpenEvents,
  { includeOutputs = true, ...options }: FollowInstanceOptions,
): AsyncGenerator<InstanceEvent> {
  const told = new Set<string>();
  let state: string | undefined;
  const query = { poll_ms: PACE_MS, ...(!includeOutputs && { include_outputs: false }) };
  const connect = (reading: Reading) => open(query, reading);
  for await (const { event, data } of reconnecting(connect, options)) {
    const parsed = JSON.parse(data);
    if (event === 'error') throw gone(parsed.error);
    if (event === 'state' && (parsed.state !== state || !includeOutputs)) {
      state = parsed.state;
      const { updated_at, failure } = parsed;
      yield {
        type: 'state',
        state: parsed.state,
        ...(updated_at && { updated_at }),
        ...(failure && { failure }),
      };
    }
    if (event === 'output' && !told.has(parsed.id)) {
      told.add(parsed.id);
      yield { type: 'output', output: parsed };
    }
    if (event === 'done') {
      yield { type: 'done', ...parsed };
      return;
    }
  }
}

/** As soon as the server has anything to send. */
const PACE_MS = 100;

function gone(message: string): EngineError {
  return new EngineError({ status: 404, code: 'ENG_NOT_FOUND', message });
}

/**
 * Ends only when the signal is aborted.
 * @throws EngineError if the server refuses
 */
export async function* followChanges(
  open: OpenEvents,
  { since, ...options }: FollowChangesOptions,
): AsyncGenerator<Change> {
  const time = typeof since === 'string' && TIME.test(since) ? new Date(since) : since;
  let cursor = time instanceof Date ? cursorAt(time) : time;
  const onId = (id: string) => {
    cursor = id;
  };
  const connect = (reading: Reading) => open({ cursor }, { ...reading, onId });
  for await (const { data, id } of reconnecting(connect, options)) {
    yield { ...(JSON.parse(data) as AuditEntry), cursor: id };
  }
}

/** Cursors do not have this form. */
const TIME = /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:\d\d)$/i;

/** The cursor before everything at that time, in the server's format (docs/changes.md). */
function cursorAt(time: Date): string {
  if (Number.isNaN(time.getTime())) throw new UnsendableError('since is not a valid time');
  const before = new Date(Math.max(time.getTime() - 1, 0)).toISOString();
  const id = time.getTime() === 0 ? FIRST_ID : LAST_ID;
  const text = btoa(JSON.stringify({ created_at: before, id }));
  return text.replace(/=+$/, '');
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * The events of consecutive connections. A failure of the first connection rejects like any request; once connected, it
 * reconnects without limit, or at most `retries` times in a row.
 */
async function* reconnecting(
  connect: (reading: Reading) => AsyncIterable<StreamEvent>,
  { signal, retries = Number.POSITIVE_INFINITY, onConnection }: FollowOptions,
): AsyncGenerator<StreamEvent> {
  let hasBeenThere = false;
  for (let tries = 0; ; tries++) {
    let waitMs: number | undefined;
    try {
      const onOpen = () => {
        hasBeenThere = true;
        onConnection?.(true);
      };
      for await (const event of connect({ signal, onOpen })) {
        tries = 0;
        yield event;
      }
      if (!signal?.aborted && tries >= retries) throw ended();
    } catch (error) {
      if (signal?.aborted) return;
      if (!hasBeenThere || !isPassing(error) || tries >= retries) throw error;
      waitMs = error.retryAfterMs;
    }
    onConnection?.(false);
    try {
      await sleep(backoffMs(tries, waitMs), signal);
    } catch {
      // Only the signal ends the wait.
      return;
    }
  }
}

/** A stopping server closes its streams; some proxies close them, too. */
function ended(): EngineError {
  const message = 'the stream ended repeatedly';
  return new EngineError({ status: 0, code: 'CLIENT_NETWORK', message });
}

/** Temporary errors: the engine is unavailable or overloaded. */
export function isPassing(error: unknown): error is EngineError {
  if (!(error instanceof EngineError)) return false;
  return error.status === 0 || error.status === 429 || error.status >= 500;
}
