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
import { outputsAfter } from '../../instance/front/outputs.js';
import type { ListedOutput } from '../../instance/loads.js';
import type { Shards } from '../../runtime/shards.js';
import type { feedOperations } from '../room.js';
import { type EventStream, OpenStreams } from './event-stream.js';

const PACE_MS_MIN = 100;
const PACE_MS_MAX = 5_000;

export interface InstanceStreamsDeps {
  readonly client: Pick<Shards<typeof feedOperations>, 'ask' | 'shardOf'>;
  readonly log: Logger;
}

export function openInstanceStreams({ client, log }: InstanceStreamsDeps) {
  const streams = new OpenStreams({
    tooMany: (message) => unavailable('ENG_OVERLOADED', message),
    log,
  });
  /** Rejects with an EngineError: 400, 404, or 429 and 503 when too many are open. */
  const open: StreamOperation<'instances.stream'> = (front, call) =>
    streams.open(call, async (signal) => {
      const follower = new Follower(client, front, call, signal);
      const first = await follower.look();
      return (events) => follower.follow(first, events);
    });
  return { streams, operations: { 'instances.stream': open } satisfies Partial<FrontOperations> };
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
  readonly #call: Call<'instances.stream'>;
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
    signal: AbortSignal,
  ) {
    this.#client = client;
    this.#front = front;
    this.#call = call;
    this.#paceMs = Math.min(Math.max(call.query.poll_ms, PACE_MS_MIN), PACE_MS_MAX);
    this.#signal = signal;
  }

  get #id(): string {
    return this.#call.params.id;
  }

  /** Resolves when the instance has changed since the known version, or after some time. */
  async look(): Promise<Seen> {
    const shard = this.#client.shardOf(this.#id);
    const reply = await this.#client.ask(
      shard,
      'instances.watch',
      this.#call.tenant,
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
