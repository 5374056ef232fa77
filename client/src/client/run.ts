/** Starts an instance and waits for what comes of it. */

import type { CreateInstance, InstanceCreated, JsonValue } from '../generated/types.js';
import { EngineError, InstanceFailedError } from './errors.js';
import type { FollowOptions, InstanceEvent } from './follow.js';
import type { CallOptions, CreationOptions } from './operation.js';
import { after, expectNumbers } from './time.js';

/** Outputs of an instance by the ids of its blocks. */
export type Outputs = Readonly<Record<string, JsonValue>>;

/** A stored sequence with the types of what it takes and gives, such as the builder makes them. */
export interface SequenceRef<Input = unknown, Results extends object = Outputs> {
  readonly name: string;
  readonly namespace?: string | undefined;
  /** Never there, as the next: they carry the types. */
  readonly inputs?: Input | undefined;
  readonly outputs?: Results | undefined;
}

/** What of a creation goes along, and for how long its end is waited for. */
export interface RunOptions
  extends CreationOptions,
    Omit<CreateInstance, 'sequence' | 'sequence_id' | 'tenant_id' | 'context' | 'idempotency_key'> {
  /** How long to wait for the end, in milliseconds; the instance goes on all the same. Absent: for ever. */
  readonly timeout?: number | undefined;
  /** What `{{ config }}` gives. */
  readonly config?: object | undefined;
}

export interface WaitOptions extends FollowOptions {
  /** In milliseconds. Absent: for ever. */
  readonly timeout?: number | undefined;
}

/** An instance that completed. */
export interface RunResult<Results extends object = Outputs> {
  readonly id: string;
  /** The last output of each block that had one, by its id. */
  readonly outputs: Results;
}

export interface Running {
  create(body: CreateInstance, options: CreationOptions): Promise<InstanceCreated>;
  follow(id: string, options: FollowOptions): AsyncIterable<InstanceEvent>;
  /** That of an instance. */
  sequenceOf(id: string, options: CallOptions): Promise<{ name: string; namespace: string }>;
}

/**
 * @throws InstanceFailedError when it failed or was cancelled; EngineError, with the code `CLIENT_TIMEOUT` when the
 *   end did not come in time; the reason of the signal once that is aborted
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
  // Who waits for a minute for the end does not wait longer for the beginning.
  const creation = { ...call, totalTimeoutMs: totalTimeoutMs ?? timeout, idempotencyKey };
  const { id, deduplicated } = await client.create(body, creation);
  if (deduplicated) expectSame(id, ref, await client.sequenceOf(id, call));
  const left =
    timeout === undefined ? undefined : Math.max(0, timeout - (performance.now() - startedAt));
  return wait<Results>(client, id, { ...call, timeout: left });
}

/** @throws EngineError where the key led to an instance of something else, whose outputs nobody asked for */
function expectSame(id: string, asked: SequenceRef, found: SequenceRef): void {
  const isOther = asked.namespace !== undefined && asked.namespace !== found.namespace;
  if (asked.name === found.name && !isOther) return;
  const message = `the idempotency key is that of the instance ${id} of another sequence: ${found.namespace}/${found.name}`;
  throw new EngineError({ status: 409, code: 'ENG_CONFLICT', message });
}

/** The same for an instance that is there already. */
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
  const message = `the instance ${id} had not ended in time; it goes on`;
  throw new EngineError({ status: 0, code: 'CLIENT_TIMEOUT', message });
}
