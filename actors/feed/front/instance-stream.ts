/**
 * `GET /instances/{id}/stream`: states and outputs of one instance as server-sent events until it ends
 * (docs/changes.md). The instance's shard reports commits, and then new outputs are read; changes within one interval
 * are batched. A stream waits while its shard or the database is unavailable, and then continues. A client that does
 * not read delays its own stream only, which buffers one batch of outputs at most.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { Failure } from '../../../schema/failure.js';
import { type InstanceState, isEnded } from '../../../schema/states.js';
import { EngineError, unavailable } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type {
  Call,
  FrontDeps,
  FrontOperations,
  StreamOperation,
} from '../../../src/http/operation.js';
import { outputsAfter } from '../../instance/front/output-reads.js';
import type { ListedOutput } from '../../instance/loads.js';
import type { Shards } from '../../runtime/shards.js';
import type { feedOperations } from '../operations.js';
import { type EventStream, OpenStreams } from './event-stream.js';

const PACE_MS_MIN = 100;
const PACE_MS_MAX = 5_000;

export interface InstanceStreamsDeps {
  readonly client: Pick<Shards<typeof feedOperations>, 'ask' | 'shardOf'>;
  readonly log: Logger;
}

export class InstanceStreams {
  readonly #deps: InstanceStreamsDeps;
  readonly #streams: OpenStreams;

  constructor(deps: InstanceStreamsDeps) {
    this.#deps = deps;
    this.#streams = new OpenStreams({
      tooMany: (message) => unavailable('ENG_OVERLOADED', message),
      log: deps.log,
    });
  }

  /** Rejects with an EngineError: 400, 404, or 429 and 503 when too many are open. */
  readonly #open: StreamOperation<'instances.stream'> = async (front, call) => {
    const { query } = call;
    const paceMs = Math.min(Math.max(query.poll_ms, PACE_MS_MIN), PACE_MS_MAX);
    return this.#streams.open(call, async (signal) => {
      const follower = new Follower(this.#deps.client, front, call, paceMs, signal);
      const first = await follower.look();
      return (events) => follower.follow(first, events);
    });
  };

  readonly operations = { 'instances.stream': this.#open } satisfies Partial<FrontOperations>;

  get openCount(): number {
    return this.#streams.count;
  }

  close(): void {
    this.#streams.close();
  }
}

/** The shard's report on an instance; see `actors/feed/watchers.ts` for its versions. */
interface Seen {
  readonly state: InstanceState;
  readonly updated_at: string;
  readonly failure: Failure | null;
  readonly version: number;
}

/** One instance, and the position of its stream. Everything rejects once the signal is aborted. */
class Follower {
  readonly #client: InstanceStreamsDeps['client'];
  readonly #front: FrontDeps;
  readonly #id: string;
  readonly #tenant: string;
  readonly #paceMs: number;
  readonly #signal: AbortSignal;
  /** Undefined: none, so that a look is answered at once. */
  #version: number | undefined;
  #state: InstanceState | undefined;
  #lastOutput: ListedOutput | undefined;

  constructor(
    client: InstanceStreamsDeps['client'],
    front: FrontDeps,
    call: Call<'instances.stream'>,
    paceMs: number,
    signal: AbortSignal,
  ) {
    this.#client = client;
    this.#front = front;
    this.#id = call.params.id;
    this.#tenant = call.tenant;
    this.#paceMs = paceMs;
    this.#signal = signal;
  }

  /** Resolves when the instance has changed since the known version, or after some time. */
  async look(): Promise<Seen> {
    const shard = this.#client.shardOf(this.#id);
    const reply = await this.#client.ask(
      shard,
      'instances.watch',
      this.#tenant,
      this.#id,
      this.#version,
      this.#signal,
    );
    return JSON.parse(reply.body) as Seen;
  }

  /** Streams until the instance has ended or its row is gone. */
  async follow(first: Seen, events: EventStream): Promise<void> {
    let seen: Seen | undefined = first;
    for (;;) {
      try {
        seen ??= await this.look();
        if (await this.#write(seen, events)) return;
      } catch (error) {
        this.#signal.throwIfAborted();
        if (!(error instanceof EngineError)) throw error;
        if (error.code === 'ENG_NOT_FOUND') {
          await events.send('error', [JSON.stringify({ error: error.message })]);
          return;
        }
        this.#version = undefined;
      }
      seen = undefined;
      await pause(this.#paceMs, undefined, { signal: this.#signal });
    }
  }

  /** @returns whether the instance has ended */
  async #write(
    { state, updated_at, failure, version }: Seen,
    events: EventStream,
  ): Promise<boolean> {
    if (version === this.#version) return false;
    const why = failure === null ? {} : { failure };
    if (state !== this.#state) {
      const change = { instance_id: this.#id, state, updated_at, ...why };
      await events.send('state', [JSON.stringify(change)]);
      this.#state = state;
    }
    for (let isMore = true; isMore; ) {
      const batch = await this.#front.reads.batch(outputsAfter(this.#id, this.#lastOutput));
      await events.send('output', batch.texts);
      this.#lastOutput = batch.last ?? this.#lastOutput;
      isMore = batch.isCut;
    }
    this.#version = version;
    if (!isEnded(state)) return false;
    await events.send('done', [JSON.stringify({ state, ...why })]);
    return true;
  }
}
