/** The client of one engine: its operations by name, made of the table that is generated from the server's. */

import { OPERATIONS, type Operations } from '../generated/operations.js';
import { UnsendableError } from './errors.js';
import { eventsOf, type Reading } from './events.js';
import {
  type Change,
  type FollowChangesOptions,
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
  /** Of the engine, with or without `/api/v1`. */
  readonly url: string;
  /** Left out where the engine asks for none. */
  readonly apiKey?: string | undefined;
  /** Sent in `x-tenant-id`, and in bodies that name a tenant. Most operations need one. */
  readonly tenant?: string | undefined;
  /** For bodies that leave it out. Default: `default`. */
  readonly namespace?: string | undefined;
  /** How long one try may take, in milliseconds. Default: 30,000. Polls may take their `wait_ms` longer. */
  readonly timeoutMs?: number | undefined;
  /** How long all tries of a call may take with the waits between them, in milliseconds. Default: no limit. */
  readonly totalTimeoutMs?: number | undefined;
  /** How often a call is tried again at most. Default: 4. */
  readonly retries?: number | undefined;
  /** In place of the global one: for proxies, certificates, tests. */
  readonly fetch?: Fetch | undefined;
}

const TIMEOUT_MS = 30_000;
const RETRIES = 4;

/** What there is beside the operations of the server that begin with `instances`. */
interface InstanceHelpers {
  /**
   * Creates an instance and waits for its end.
   *
   * @param sequence its name, or what the builder made of it, which knows the types
   * @param input `context.data` of the instance
   * @throws InstanceFailedError when it failed or was cancelled; EngineError with the code `CLIENT_TIMEOUT` when it did
   *   not end within `timeout`
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
  /** Waits for the end of an instance that is there. @throws as `run` does */
  wait<Results extends object = Outputs>(
    id: string,
    options?: WaitOptions,
  ): Promise<RunResult<Results>>;
  /** States and outputs from the beginning until the instance has ended, over as many connections as it takes. */
  follow(id: string, options?: FollowOptions): AsyncIterable<InstanceEvent>;
}

interface ChangeHelpers {
  /** Every change of the tenant's instances, without end, over as many connections as it takes. */
  follow(options?: FollowChangesOptions): AsyncIterable<Change>;
}

/**
 * The operations of the server by their names, such as `client.instances.create(body, options)`: the parameters of
 * the path, then the body or the query, then the options. All of them reject with an EngineError.
 */
export interface Client extends Omit<Operations, 'instances' | 'changes'> {
  readonly instances: Operations['instances'] & InstanceHelpers;
  readonly changes: Operations['changes'] & ChangeHelpers;
}

// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the constructor makes what the table names
export class Client {
  readonly #settings: Settings;
  readonly #fetch: Fetch;

  /** @throws TypeError for a URL that is none, a time that is no number, and a tenant that no header can name */
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
    // Called as a function of its own: some platforms refuse it as a method of something else.
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
    // Taken apart when it is sent: what is wrong with a call rejects, and throws nowhere.
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

  /** One connection of a row that answers by events. */
  #opening(row: OperationRow, path: readonly string[], options: FollowOptions): OpenEvents {
    return (query, reading) => {
      // A stream that is opened again has retries of its own.
      const given = [...path, query, { ...options, retries: undefined }];
      return this.#events(row, () => callOf(row, given, this.#settings), reading);
    };
  }

  #helpers(): {
    instances: Record<keyof InstanceHelpers, unknown>;
    changes: Record<'follow', unknown>;
  } {
    const followOne = (id: string, options: FollowOptions = {}) =>
      followInstance(this.#opening(OPERATIONS['instances.stream'], [id], options), options);
    const create: Running['create'] = (body, options) => this.instances.create(body, options);
    const sequenceOf: Running['sequenceOf'] = async (id, options) => {
      const { sequence_id } = await this.instances.get(id, options);
      return this.sequences.get(sequence_id, options);
    };
    const running = { create, follow: followOne, sequenceOf };
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

/** @throws TypeError when it is no address of HTTP */
function baseOf(url: string): string {
  if (!/^https?:$/.test(new URL(url).protocol)) {
    throw new UnsendableError(`${url} is no address that begins with http:// or https://`);
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
