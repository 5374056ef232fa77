/** The client of one engine, with a method for each operation of the generated table. */

import { OPERATIONS, type Operations } from '../generated/operations.js';
import { EngineError, UnsendableError } from './errors.js';
import { eventsOf, type Reading } from './events.js';
import {
  type Change,
  type FollowChangesOptions,
  type FollowInstanceOptions,
  type FollowOptions,
  followChanges,
  followInstance,
  type InstanceEvent,
  type OpenEvents,
} from './follow.js';
import { listOf, type PageAnswer } from './list.js';
import type { EventStream, OperationRow } from './operation.js';
import {
  type Call,
  callerHeaders,
  callOf,
  type Query,
  type Settings,
  sendingOf,
} from './request.js';
import {
  type Outputs,
  type Running,
  type RunOptions,
  type RunResult,
  run,
  type SequenceRef,
  type WaitOptions,
  wait,
} from './run.js';
import { expectNumbers } from './time.js';
import { type Fetch, send } from './transport.js';

export interface ClientOptions {
  /** URL of the engine, with or without `/api/v1`. */
  readonly url: string;
  /** Omit if the engine requires no key. */
  readonly apiKey?: string | undefined;
  /** Sent in `x-tenant-id`, and in bodies that have a tenant. Most operations need one. */
  readonly tenant?: string | undefined;
  /** Used for bodies that omit it. Default: `default`. */
  readonly namespace?: string | undefined;
  /** Time limit of one attempt, in milliseconds. Default: 30,000. Requests with `wait_ms` may take as much longer. */
  readonly timeoutMs?: number | undefined;
  /** Time limit of a call with all attempts and the waits between them, in milliseconds. Default: no limit. */
  readonly totalTimeoutMs?: number | undefined;
  /** Maximum number of retries of a call. Default: 4. */
  readonly retries?: number | undefined;
  /** Replaces the global `fetch`: for proxies, certificates and tests. */
  readonly fetch?: Fetch | undefined;
}

const TIMEOUT_MS = 30_000;
const RETRIES = 4;

/** Methods in addition to the server's operations on `instances`. */
interface InstanceHelpers {
  /**
   * Creates an instance and waits until it ends.
   *
   * @param sequence the name, or a sequence of the builder, which has the types
   * @param input `context.data` of the instance
   * @throws InstanceFailedError if it failed or was cancelled; EngineError with the code `CLIENT_TIMEOUT` if it did not
   * end within `timeout`
   */
  run<Input, Results extends object>(
    sequence: SequenceRef<Input, Results>,
    input: Input,
    options?: RunOptions,
  ): Promise<RunResult<Results>>;
  run<Results extends object = Outputs>(
    sequence: string,
    input?: object,
    options?: RunOptions,
  ): Promise<RunResult<Results>>;
  /** Waits until an existing instance ends. @throws as `run` does */
  wait<Results extends object = Outputs>(
    id: string,
    options?: WaitOptions,
  ): Promise<RunResult<Results>>;
  /** States and outputs from the beginning until the instance ends. Reconnects when the connection is lost. */
  follow(id: string, options?: FollowInstanceOptions): AsyncIterable<InstanceEvent>;
}

interface ChangeHelpers {
  /** All changes of the tenant's instances, without end. Reconnects when the connection is lost. */
  follow(options?: FollowChangesOptions): AsyncIterable<Change>;
}

/**
 * The operations of the server by name, such as `client.instances.create(body, options)`: path parameters first, then
 * the body or the query, then the options. All of them reject with an EngineError.
 */
export interface Client extends Omit<Operations, 'instances' | 'changes'> {
  readonly instances: Operations['instances'] & InstanceHelpers;
  readonly changes: Operations['changes'] & ChangeHelpers;
}

// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the constructor makes what the table names
export class Client {
  readonly #settings: Settings;
  readonly #fetch: Fetch;

  /** @throws TypeError for an invalid URL, a time that is not a number, or a tenant that a header cannot contain */
  constructor(options: ClientOptions) {
    const { timeoutMs = TIMEOUT_MS, totalTimeoutMs, retries = RETRIES } = options;
    expectNumbers({ timeoutMs, totalTimeoutMs, retries });
    callerHeaders(options);
    this.#settings = {
      base: baseOf(options.url),
      apiKey: options.apiKey,
      tenant: options.tenant,
      namespace: options.namespace ?? 'default',
      timeoutMs,
      totalTimeoutMs,
      retries,
    };
    // Called as a plain function: some platforms reject it as a method of another object.
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init));
    const resources: Record<string, Record<string, unknown>> = { ...this.#helpers() };
    for (const [id, row] of Object.entries<OperationRow>(OPERATIONS)) {
      const [resource = '', name] = id.split('.');
      const operation = (...given: unknown[]) => this.#call(row, given);
      if (name === undefined) Object.assign(this, { [resource]: operation });
      else resources[resource] = { ...resources[resource], [name]: operation };
    }
    Object.assign(this, resources);
  }

  #call(row: OperationRow, given: readonly unknown[]): unknown {
    // Evaluated on sending, so that an invalid call rejects instead of throwing.
    const call = () => callOf(row, given, this.#settings);
    if (row.pages !== undefined) {
      const queryOf = () => call().query ?? {};
      return listOf(row, queryOf, (query) => this.#send(row, call(), query, pageOf));
    }
    if (row.answers === 'events') return this.#events(row, call);
    return this.#once(row, call);
  }

  async #once(row: OperationRow, asked: () => Call): Promise<unknown> {
    const call = asked();
    return this.#send(row, call, call.query, row.answers === 'text' ? textOf : jsonOf);
  }

  async #send<T>(
    row: OperationRow,
    call: Call,
    query: Query | undefined,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    return send(this.#fetch, sendingOf(row, call, query, this.#settings), read);
  }

  async *#events(row: OperationRow, asked: () => Call, reading?: Reading): EventStream {
    const call = asked();
    const body = await this.#send(row, call, call.query, async (response) => response.body);
    if (body !== null) yield* eventsOf(body, reading ?? { signal: call.options.signal });
  }

  /** One connection of an operation that streams events. */
  #opening(row: OperationRow, path: readonly string[], options: FollowOptions): OpenEvents {
    return (query, reading) => {
      // Retries are handled by the caller, which reopens the stream.
      const given = [...path, query, { ...options, retries: undefined }];
      return this.#events(row, () => callOf(row, given, this.#settings), reading);
    };
  }

  #helpers(): {
    instances: Record<keyof InstanceHelpers, unknown>;
    changes: Record<'follow', unknown>;
  } {
    const followOne = (id: string, options: FollowInstanceOptions = {}) =>
      followInstance(this.#opening(OPERATIONS['instances.stream'], [id], options), options);
    const create: Running['create'] = (body, options) => this.instances.create(body, options);
    const sequenceOf: Running['sequenceOf'] = async (id, options) => {
      const { sequence_id } = await this.instances.get(id, options);
      return this.sequences.get(sequence_id, options);
    };
    const pendingStart: Running['pendingStart'] = async (id, options) => {
      try {
        return await this.pendingStarts.get(id, options);
      } catch (error) {
        if (error instanceof EngineError && error.status === 404) return undefined;
        throw error;
      }
    };
    const running = { create, follow: followOne, sequenceOf, pendingStart };
    return {
      instances: {
        run: (sequence: string | SequenceRef, input: object = {}, options: RunOptions = {}) =>
          run(running, sequence, input, options),
        wait: (id: string, options: WaitOptions = {}) => wait(running, id, options),
        follow: followOne,
      },
      changes: {
        follow: (options: FollowChangesOptions = {}) =>
          followChanges(this.#opening(OPERATIONS['changes.stream'], [], options), options),
      },
    };
  }
}

/** @throws TypeError unless it is an HTTP URL */
function baseOf(url: string): string {
  if (!/^https?:$/.test(new URL(url).protocol)) {
    throw new UnsendableError(`${url} is not a URL that starts with http:// or https://`);
  }
  return `${url.replace(/\/+$/, '').replace(/\/api\/v1$/, '')}/api/v1`;
}

const textOf = (response: Response) => response.text();

async function jsonOf(response: Response): Promise<unknown> {
  const text = await response.text();
  return text === '' ? undefined : JSON.parse(text);
}

async function pageOf(response: Response): Promise<PageAnswer> {
  const { headers } = response;
  const cursor = headers.get('x-next-cursor') ?? undefined;
  return { body: await response.json(), cursor, link: headers.get('link') ?? '' };
}
