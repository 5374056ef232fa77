/**
 * `GET /instances/{id}/stream`: states and outputs of one instance as server-sent events until it
 * ends (docs/changes.md). The shard reports commits, then new outputs are read, unless the client asked for states only;
 * changes within an interval are batched. A stream waits while its shard or the database is unavailable.
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
      const follower = new Follower({ client, front, call, signal });
      const first = await follower.look();
      return (events) => follower.follow(first, events);
    });
  return { streams, operations: { 'instances.stream': open } satisfies Partial<FrontOperations> };
}

/** The report of the shard (`actors/feed/watchers.ts`). */
interface Seen {
  readonly state: InstanceState;
  readonly updated_at: string;
  readonly failure: Failure | null;
  readonly version: number;
}

interface FollowerDeps extends Pick<InstanceStreamsDeps, 'client'> {
  readonly front: FrontDeps;
  readonly call: Call<'instances.stream'>;
  readonly signal: AbortSignal;
}

/** The position of one stream. All methods reject once the signal is aborted. */
class Follower {
  readonly #deps: FollowerDeps;
  readonly #paceMs: number;
  /** Undefined: the next look is answered at once. */
  #version: number | undefined;
  #state: InstanceState | undefined;
  #lastOutput: ListedOutput | undefined;

  constructor(deps: FollowerDeps) {
    this.#deps = deps;
    this.#paceMs = Math.min(Math.max(deps.call.query.poll_ms, PACE_MS_MIN), PACE_MS_MAX);
  }

  get #id(): string {
    return this.#deps.call.params.id;
  }

  /** Resolves on a change since the known version, or after some seconds. */
  async look(): Promise<Seen> {
    const id = this.#id;
    const { client, call, signal } = this.#deps;
    const watch = [call.tenant, id, this.#version, { signal }] as const;
    const reply = await client.ask(client.shardOf(id), 'instances.watch', ...watch);
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
        this.#deps.signal.throwIfAborted();
        if (!(error instanceof EngineError)) throw error;
        if (error.code === 'ENG_NOT_FOUND') {
          await events.send('error', [JSON.stringify({ error: error.message })]);
          return;
        }
        this.#version = undefined;
      }
      seen = undefined;
      await pause(this.#paceMs, undefined, { signal: this.#deps.signal });
    }
  }

  /** @returns whether the instance has ended */
  async #write(seen: Seen, events: EventStream): Promise<boolean> {
    const { state, updated_at, failure, version } = seen;
    if (version === this.#version) return false;
    const { include_outputs: hasOutputs } = this.#deps.call.query;
    const why = failure === null ? {} : { failure };
    if (state !== this.#state || !hasOutputs) {
      const change = { instance_id: this.#id, state, updated_at, ...why };
      await events.send('state', [JSON.stringify(change)]);
      this.#state = state;
    }
    for (let isMore = hasOutputs; isMore; ) {
      const batch = await this.#deps.front.reads.batch(outputsAfter(this.#id, this.#lastOutput));
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
