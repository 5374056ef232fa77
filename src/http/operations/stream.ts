/**
 * `GET /instances/{id}/stream`: states and outputs of one instance as server-sent events until it
 * ends (spec/03 §7.1). Nothing is polled: the instance's shard tells when something was committed,
 * and only then the new outputs are read. Changes that come faster than the stream's pace are told
 * together. A stream whose shard or database is away waits, and then tells what it missed.
 *
 * A client that does not read holds back its own stream, which holds one batch of outputs at most.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { ShardClient } from '../../../actors/client.js';
import { type InstanceState, isEnded } from '../../core/states.js';
import type { OutputWireRow } from '../../db/reads/wire.js';
import { EngineError, unavailable } from '../../errors.js';
import type { Logger } from '../../log.js';
import type { HttpBodyStream, HttpExchange, HttpStreamHead } from '../server.js';
import { type Call, type FrontDeps, queryOf, type StreamOperation } from './operation.js';

/** Open streams of one engine (spec/03 §7.1): each may hold a batch of outputs. */
const STREAMS_MAX = 256;
const PACE_MS_MIN = 100;
const PACE_MS_MAX = 5_000;
/** Proxies close what is silent for a minute. */
const KEEP_ALIVE_MS = 15_000;
/** Small events are written together, up to this size. */
const CHUNK_CHARACTERS = 16 * 1024;

const HEAD: HttpStreamHead = {
  status: 200,
  contentType: 'text/event-stream',
  headers: [
    ['cache-control', 'no-store'],
    ['x-accel-buffering', 'no'],
  ],
};

export interface InstanceStreamsDeps {
  readonly client: Pick<ShardClient, 'ask' | 'shardOf'>;
  readonly log: Logger;
}

/** The streams that are open, so that they are bounded and end with the engine. */
export class InstanceStreams {
  readonly #deps: InstanceStreamsDeps;
  readonly #open = new Set<AbortController>();

  constructor(deps: InstanceStreamsDeps) {
    this.#deps = deps;
  }

  /** Rejects with an EngineError: 400, 404, or 503 when too many are open. */
  readonly open: StreamOperation = async (front, call) => {
    const query = queryOf(front, call, 'instances.stream');
    if (this.#open.size >= STREAMS_MAX) {
      throw unavailable('ENG_OVERLOADED', `${STREAMS_MAX} streams are open`);
    }
    const ending = new AbortController();
    this.#open.add(ending);
    try {
      const paceMs = Math.min(Math.max(query.poll_ms, PACE_MS_MIN), PACE_MS_MAX);
      const follower = new Follower(this.#deps.client, front, call, paceMs, ending.signal);
      const first = await follower.look();
      return (exchange) => void this.#feed(exchange, follower, first, ending);
    } catch (error) {
      this.#open.delete(ending);
      throw error;
    }
  };

  /** Ends all of them, as they are. */
  close(): void {
    for (const ending of this.#open) {
      ending.abort(unavailable('ENG_STOPPING', 'the engine is stopping'));
    }
  }

  async #feed(
    exchange: HttpExchange,
    follower: Follower,
    first: Seen,
    ending: AbortController,
  ): Promise<void> {
    exchange.onAbort(() => ending.abort());
    const events = new EventStream(exchange.stream(HEAD), ending.signal);
    try {
      await follower.follow(first, events);
    } catch (error) {
      if (!ending.signal.aborted) this.#deps.log.error({ err: error }, 'defect');
    } finally {
      events.end();
      this.#open.delete(ending);
    }
  }
}

/** What the shard says of an instance; see `actors/watchers.ts` for its versions. */
interface Seen {
  readonly state: InstanceState;
  readonly version: number;
}

/** One instance as far as its stream has told it. Everything rejects once the signal is aborted. */
class Follower {
  readonly #client: InstanceStreamsDeps['client'];
  readonly #front: FrontDeps;
  readonly #id: string;
  readonly #tenant: string;
  readonly #paceMs: number;
  readonly #signal: AbortSignal;
  /** Undefined: nothing is known, so that a look is answered at once. */
  #version: number | undefined;
  #state: InstanceState | undefined;
  #lastOutput: OutputWireRow | undefined;

  constructor(
    client: InstanceStreamsDeps['client'],
    front: FrontDeps,
    call: Call,
    paceMs: number,
    signal: AbortSignal,
  ) {
    this.#client = client;
    this.#front = front;
    this.#id = call.params.id ?? '';
    this.#tenant = call.tenant;
    this.#paceMs = paceMs;
    this.#signal = signal;
  }

  /** Resolves when the instance has changed since the version that is known, or after a while. */
  async look(): Promise<Seen> {
    const shard = this.#client.shardOf(this.#id);
    const known = this.#version === undefined ? '' : String(this.#version);
    const reply = await this.#client.ask(
      shard,
      'instances.watch',
      this.#tenant,
      this.#id,
      known,
      this.#signal,
    );
    return JSON.parse(reply.body) as Seen;
  }

  /** Tells everything until the instance has ended or its row is gone. */
  async follow(first: Seen, events: EventStream): Promise<void> {
    let seen: Seen | undefined = first;
    for (;;) {
      try {
        seen ??= await this.look();
        if (await this.#tell(seen, events)) return;
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
  async #tell({ state, version }: Seen, events: EventStream): Promise<boolean> {
    if (version === this.#version) return false;
    if (state !== this.#state) {
      await events.send('state', [JSON.stringify({ instance_id: this.#id, state })]);
      this.#state = state;
    }
    for (let isMore = true; isMore; ) {
      const batch = await this.#front.reads.instances.outputsAfter(this.#id, this.#lastOutput);
      await events.send('output', batch.texts);
      this.#lastOutput = batch.last ?? this.#lastOutput;
      isMore = batch.isCut;
    }
    this.#version = version;
    if (!isEnded(state)) return false;
    await events.send('done', [JSON.stringify({ state })]);
    return true;
  }
}

/** Writes events, and waits where the client does not read. */
class EventStream {
  readonly #stream: HttpBodyStream;
  readonly #signal: AbortSignal;
  #isFull = false;
  #resume: () => void = () => undefined;
  #keepAlive: NodeJS.Timeout;

  constructor(stream: HttpBodyStream, signal: AbortSignal) {
    this.#stream = stream;
    this.#signal = signal;
    stream.onDrain(() => {
      this.#isFull = false;
      this.#resume();
    });
    // A client that does not read would only be sent more to hold.
    this.#keepAlive = setInterval(() => {
      if (!this.#isFull) this.#write(':\n\n');
    }, KEEP_ALIVE_MS);
  }

  /** One event for each text, which is JSON without line breaks. */
  async send(name: string, texts: readonly string[]): Promise<void> {
    let chunk = '';
    for (const text of texts) {
      chunk += `event: ${name}\ndata: ${text}\n\n`;
      if (chunk.length < CHUNK_CHARACTERS) continue;
      await this.#writeWhenDrained(chunk);
      chunk = '';
    }
    if (chunk !== '') await this.#writeWhenDrained(chunk);
  }

  end(): void {
    clearInterval(this.#keepAlive);
    this.#stream.end();
  }

  async #writeWhenDrained(chunk: string): Promise<void> {
    this.#signal.throwIfAborted();
    if (this.#isFull) await this.#drained();
    this.#write(chunk);
  }

  #write(chunk: string): void {
    if (!this.#stream.write(chunk)) this.#isFull = true;
  }

  #drained(): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => reject(this.#signal.reason);
      this.#resume = () => {
        this.#signal.removeEventListener('abort', leave);
        resolve();
      };
      this.#signal.addEventListener('abort', leave, { once: true });
    });
  }
}
