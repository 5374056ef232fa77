/** Starts an instance and waits for its result. */

import type { CreateInstance, InstanceCreated, JsonValue } from '../generated/types.js';
import { EngineError, InstanceFailedError } from './errors.js';
import type { FollowOptions, InstanceEvent } from './follow.js';
import type { CallOptions, CreationOptions } from './operation.js';
import { after, expectNumbers } from './time.js';

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
  create(body: CreateInstance, options: CreationOptions): Promise<InstanceCreated>;
  follow(id: string, options: FollowOptions): AsyncIterable<InstanceEvent>;
  /** The sequence of an instance. */
  sequenceOf(id: string, options: CallOptions): Promise<{ name: string; namespace: string }>;
}

/**
 * @throws InstanceFailedError if it failed or was cancelled; EngineError with the code `CLIENT_TIMEOUT` if it did not
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
  const { id, deduplicated } = await client.create(body, creation);
  if (deduplicated) expectSame(id, ref, await client.sequenceOf(id, call));
  const left =
    timeout === undefined ? undefined : Math.max(0, timeout - (performance.now() - startedAt));
  return wait<Results>(client, id, { ...call, timeout: left });
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
  const ending = new AbortController();
  const leave = () => ending.abort();
  signal?.throwIfAborted();
  signal?.addEventListener('abort', leave, { once: true });
  const forget = timeout === undefined ? () => {} : after(timeout, leave);
  const outputs: Record<string, JsonValue> = {};
  try {
    for await (const event of client.follow(id, { ...options, signal: ending.signal })) {
      if (event.type === 'output') outputs[event.output.block_id] = event.output.output;
      if (event.type !== 'done') continue;
      if (event.state === 'completed') return { id, outputs: outputs as Results };
      throw new InstanceFailedError(id, event.state, event.failure);
    }
  } finally {
    forget();
    signal?.removeEventListener('abort', leave);
  }
  signal?.throwIfAborted();
  const message = `instance ${id} did not end in time; it continues`;
  throw new EngineError({ status: 0, code: 'CLIENT_TIMEOUT', message });
}
