/**
 * Follows what the server tells by events, over connections that come and go: an instance until it ends, and the
 * changes of a tenant for ever. Nothing is told twice, and nothing is left out.
 */

import type { AuditEntry, BlockOutput, Failure, InstanceState } from '../generated/types.js';
import { EngineError, UnsendableError } from './errors.js';
import type { Reading } from './events.js';
import type { CallOptions, StreamEvent } from './operation.js';
import { backoffMs, sleep } from './transport.js';

export interface FollowOptions extends Omit<CallOptions, 'totalTimeoutMs'> {
  /** Told when the stream is there, when it is lost, and when it is there again. */
  readonly onConnection?: ((isConnected: boolean) => void) | undefined;
}

export interface FollowChangesOptions extends FollowOptions {
  /** Where to begin: the `cursor` of an earlier change, or a time, also as text in RFC 3339. Absent: the present. */
  readonly since?: string | Date | undefined;
}

/** What is told of an instance that is followed. */
export type InstanceEvent =
  | {
      readonly type: 'state';
      readonly state: InstanceState;
      /** When it came into it, or was changed in it last; an older server does not say. */
      readonly updated_at?: string;
      /** Of a failed one. */
      readonly failure?: Failure;
    }
  | { readonly type: 'output'; readonly output: BlockOutput }
  | {
      /** The last one. */
      readonly type: 'done';
      readonly state: 'completed' | 'failed' | 'cancelled';
      readonly failure?: Failure;
    };

/** An entry of the audit, with the place behind it. */
export interface Change extends AuditEntry {
  /** To be kept, and given as `since` by whoever goes on later. */
  readonly cursor: string;
}

/** Opens one connection; the query says where to begin. */
export type OpenEvents = (query: object, reading: Reading) => AsyncIterable<StreamEvent>;

/**
 * Ends behind `done`, or by the signal. A stream that is opened again tells everything from the beginning, of which
 * what was told is left out.
 *
 * @throws EngineError when the server refuses, or the instance was removed
 */
export async function* followInstance(
  open: OpenEvents,
  options: FollowOptions,
): AsyncGenerator<InstanceEvent> {
  const told = new Set<string>();
  let state: string | undefined;
  const connect = (reading: Reading) => open({ poll_ms: PACE_MS }, reading);
  for await (const { event, data } of reconnecting(connect, options)) {
    const parsed = JSON.parse(data);
    if (event === 'error') throw gone(parsed.error);
    if (event === 'state' && parsed.state !== state) {
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

/** As soon as the server tells anything. */
const PACE_MS = 100;

function gone(message: string): EngineError {
  return new EngineError({ status: 404, code: 'ENG_NOT_FOUND', message });
}

/**
 * Ends by the signal only.
 * @throws EngineError when the server refuses
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

/** No cursor looks so. */
const TIME = /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:\d\d)$/i;

/** The place before everything of that time, in the form of the server's own (docs/changes.md). */
function cursorAt(time: Date): string {
  if (Number.isNaN(time.getTime())) throw new UnsendableError('since is no time');
  const before = new Date(Math.max(time.getTime() - 1, 0)).toISOString();
  const id = time.getTime() === 0 ? FIRST_ID : LAST_ID;
  const text = btoa(JSON.stringify({ created_at: before, id }));
  return text.replace(/=+$/, '');
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * The events of one connection after the other. The first one is opened as any request is; once it was there, it is
 * opened again for as long as it takes, or as often in a row as `retries` says.
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

/** A server that stops ends its streams in the orderly way; so does a proxy that does not like them. */
function ended(): EngineError {
  const message = 'the stream ended, again and again';
  return new EngineError({ status: 0, code: 'CLIENT_NETWORK', message });
}

/** What comes to an end by itself: an engine that is away, or has too much to do. */
function isPassing(error: unknown): error is EngineError {
  if (!(error instanceof EngineError)) return false;
  return error.status === 0 || error.status === 429 || error.status >= 500;
}
