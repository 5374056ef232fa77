/** Starts an instance and waits for its result. */

import type {
  CreateInstance,
  InstanceCreated,
  InstanceResult,
  InstancesCreateQuery,
  JsonValue,
  PendingStart,
} from '../generated/types.js';
import { EngineError, InstanceFailedError } from './errors.js';
import { type FollowOptions, type InstanceEvent, isPassing } from './follow.js';
import type { CallOptions, CreationOptions } from './operation.js';
import { after, expectNumbers } from './time.js';
import { backoffMs, sleep } from './transport.js';

/** Outputs of an instance by block id. */
export type Outputs = Readonly<Record<string, JsonValue>>;

/** A published sequence with the types of its input and outputs, as made by the builder. */
export interface SequenceRef<Input = unknown, Results extends object = Outputs> {
  readonly name: string;
  readonly namespace?: string | undefined;
  /** Never set at run time, like the next one: they carry the types. */
  readonly inputs?: Input | undefined;
  readonly outputs?: Results | undefined;
}

/** Options of the creation, and how long to wait for the end. */
export interface RunOptions
  extends CreationOptions,
    Omit<CreateInstance, 'sequence' | 'sequence_id' | 'tenant_id' | 'context' | 'idempotency_key'> {
  /** How long to wait for the end, in milliseconds; the instance continues after that. Default: no limit. */
  readonly timeout?: number | undefined;
  /** Available as `{{ config }}`. */
  readonly config?: object | undefined;
}

export interface WaitOptions extends FollowOptions {
  /** In milliseconds. Default: no limit. */
  readonly timeout?: number | undefined;
}

/** The result of a completed instance. */
export interface RunResult<Results extends object = Outputs> {
  readonly id: string;
  /** The last output of each block that has one, by block id. */
  readonly outputs: Results;
}

export interface Running {
  create(
    body: CreateInstance,
    options: CreationOptions & { readonly query?: InstancesCreateQuery },
  ): Promise<InstanceCreated | InstanceResult>;
  follow(id: string, options: FollowOptions): AsyncIterable<InstanceEvent>;
  /** The sequence of an instance. */
  sequenceOf(id: string, options: CallOptions): Promise<{ name: string; namespace: string }>;
  /** Undefined once the instance has started, or was dropped. */
  pendingStart(id: string, options: CallOptions): Promise<PendingStart | undefined>;
}

/**
 * @throws InstanceFailedError if it failed or was cancelled; EngineError 409 if the creation was skipped (`when_full`); EngineError with the code `CLIENT_TIMEOUT` if it did not
 * end in time; the reason of the signal if it is aborted
 */
export async function run<Results extends object>(
  client: Running,
  sequence: string | SequenceRef,
  input: object,
  options: RunOptions,
): Promise<RunResult<Results>> {
  const { signal, timeoutMs, totalTimeoutMs, retries, tenant, headers, idempotencyKey, ...fields } =
    options;
  const { timeout, config, ...more } = fields;
  expectNumbers({ timeout });
  const call = { signal, timeoutMs, retries, tenant, headers };
  const ref = typeof sequence === 'string' ? { name: sequence } : sequence;
  const body: CreateInstance = {
    ...more,
    namespace: more.namespace ?? ref.namespace,
    sequence: ref.name,
    context: { data: input, config },
  };
  const startedAt = performance.now();
  // The timeout for the end also limits the creation.
  const creation = { ...call, totalTimeoutMs: totalTimeoutMs ?? timeout, idempotencyKey };
  const created = await createAndWait(client, body, creation);
  const { id, deduplicated, skipped } = created;
  if (skipped) throw isSkipped(ref, id);
  const leftMs = () =>
    timeout === undefined ? undefined : Math.max(0, timeout - (performance.now() - startedAt));
  if (created.collected) await untilStarted(client, created, { ...call, timeout: leftMs() });
  if (deduplicated) {
    const late = () => notInTime(id, 'it continues');
    const ask = (within: AbortSignal) => client.sequenceOf(id, { ...call, signal: within });
    expectSame(id, ref, await inTime({ signal, timeout: leftMs() }, late, ask));
  }
  if ('outputs' in created) {
    const { state, outputs, failure } = created;
    if (state === 'completed') return { id, outputs: outputs as Results };
    if (state === 'failed' || state === 'cancelled') {
      throw new InstanceFailedError(id, state, failure ?? undefined);
    }
  }
  return wait<Results>(client, id, { ...call, timeout: leftMs() });
}

function isSkipped({ name }: SequenceRef, holder: string): EngineError {
  const message = `the creation of ${name} was skipped: instance ${holder} holds its key`;
  return new EngineError({ status: 409, code: 'ENG_CONFLICT', message });
}

/** Between looks at a pending start: a full batch starts before its time. */
const LOOK_MS = 2_000;

/**
 * A collected creation starts an instance later, with the same id (docs/concurrency.md).
 *
 * @throws EngineError with the code `CLIENT_TIMEOUT` if it has not started in time
 */
async function untilStarted(
  client: Pick<Running, 'pendingStart'>,
  { id, starts_at }: Pick<InstanceCreated, 'id' | 'starts_at'>,
  { timeout, signal, ...call }: WaitOptions,
): Promise<void> {
  let startsAt = starts_at;
  const late = () => notInTime(id, `it starts at ${startsAt}`);
  await inTime({ timeout, signal }, late, async (within) => {
    for (let looks = 0; startsAt !== undefined; ) {
      const dueMs = Date.parse(startsAt) - Date.now();
      await sleep(dueMs > 0 ? Math.min(dueMs, LOOK_MS) : backoffMs(looks++), within);
      startsAt = (await client.pendingStart(id, { ...call, signal: within }))?.starts_at;
    }
    return true;
  });
}

/**
 * Ends the requests of `ask` when the time is over. They do not get the rest of the time as their own limit: which of
 * the two ends first would decide which error the caller gets.
 *
 * @throws what `late` returns if the time is over before there is a result; the reason of the signal if it is aborted
 */
async function inTime<T>(
  { timeout, signal }: Pick<WaitOptions, 'timeout' | 'signal'>,
  late: () => EngineError,
  ask: (within: AbortSignal) => Promise<T | undefined>,
): Promise<T> {
  const ending = new AbortController();
  const leave = () => ending.abort(signal?.reason);
  signal?.throwIfAborted();
  signal?.addEventListener('abort', leave, { once: true });
  const forget = timeout === undefined ? () => {} : after(timeout, () => ending.abort(TIME_OVER));
  try {
    const result = await ask(ending.signal);
    if (result !== undefined) return result;
  } catch (error) {
    if (ending.signal.reason !== TIME_OVER) throw error;
  } finally {
    forget();
    signal?.removeEventListener('abort', leave);
  }
  signal?.throwIfAborted();
  throw late();
}

const TIME_OVER = new Error('the time is over');

/** Below the time after which proxies commonly cut a request. */
const WAIT_MS = 20_000;
/** What is left of the time limit to receive the response. */
const SPARE_MS = 1_000;

/**
 * Many instances end soon: the response to the creation then has the result. A creation whose response was lost, for
 * example because a proxy cut the wait, is repeated without one.
 */
async function createAndWait(
  client: Running,
  body: CreateInstance,
  options: CreationOptions,
): Promise<InstanceCreated | InstanceResult> {
  const { metadata } = body as { metadata?: { cohort_key?: unknown } | null };
  const wait_ms = Math.min(WAIT_MS, (options.totalTimeoutMs ?? WAIT_MS + SPARE_MS) - SPARE_MS);
  // Without an idempotency key a lost response could not be asked for again (`keyed` of request.ts).
  const isKeyed = options.idempotencyKey !== undefined || metadata?.cohort_key === undefined;
  if (!isKeyed || wait_ms <= 0) return client.create(body, options);
  const { idempotencyKey = crypto.randomUUID(), retries } = options;
  const keyed = { ...options, idempotencyKey };
  const startedAt = performance.now();
  try {
    return await client.create(body, { ...keyed, retries: 0, query: { wait_ms } });
  } catch (error) {
    options.signal?.throwIfAborted();
    if (retries === 0 || !isPassing(error)) throw error;
    if (options.totalTimeoutMs === undefined) return client.create(body, keyed);
    const totalTimeoutMs = options.totalTimeoutMs - (performance.now() - startedAt);
    if (totalTimeoutMs < SPARE_MS) throw error;
    return client.create(body, { ...keyed, totalTimeoutMs });
  }
}

/** @throws EngineError if the idempotency key belongs to an instance of another sequence */
function expectSame(id: string, asked: SequenceRef, found: SequenceRef): void {
  const isOther = asked.namespace !== undefined && asked.namespace !== found.namespace;
  if (asked.name === found.name && !isOther) return;
  const message = `the idempotency key belongs to instance ${id} of another sequence: ${found.namespace}/${found.name}`;
  throw new EngineError({ status: 409, code: 'ENG_CONFLICT', message });
}

/** Like `run`, for an existing instance. */
export async function wait<Results extends object>(
  client: Pick<Running, 'follow'>,
  id: string,
  { timeout, signal, ...options }: WaitOptions,
): Promise<RunResult<Results>> {
  expectNumbers({ timeout });
  const outputs: Record<string, JsonValue> = {};
  const late = () => notInTime(id, 'it continues');
  const end = await inTime({ timeout, signal }, late, async (within) => {
    for await (const event of client.follow(id, { ...options, signal: within })) {
      if (event.type === 'output') outputs[event.output.block_id] = event.output.output;
      if (event.type === 'done') return event;
    }
    return undefined;
  });
  if (end.state === 'completed') return { id, outputs: outputs as Results };
  throw new InstanceFailedError(id, end.state, end.failure);
}

function notInTime(id: string, outlook: string): EngineError {
  const message = `instance ${id} did not end in time; ${outlook}`;
  return new EngineError({ status: 0, code: 'CLIENT_TIMEOUT', message });
}
