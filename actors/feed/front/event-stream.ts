/** Server-sent event streams. A client that does not read delays only its own stream. */

import { type EngineError, unavailable } from '../../../src/base/errors.js';
import { LIMITS } from '../../../src/base/limits.js';
import type { Logger } from '../../../src/base/log.js';
import { Tally } from '../../../src/base/quota/tally.js';
import type { AnyCall } from '../../../src/http/operation.js';
import type { HttpBodyStream, HttpExchange, HttpStreamHead } from '../../../src/http/server.js';

/** Proxies close connections that are idle for a minute. */
const KEEP_ALIVE_MS = 15_000;
/** Small events are combined up to this size. */
const CHUNK_CHARACTERS = 16 * 1024;

const HEAD: HttpStreamHead = {
  status: 200,
  contentType: 'text/event-stream',
  headers: [
    ['cache-control', 'no-store'],
    ['x-accel-buffering', 'no'],
  ],
};

export interface OpenStreamsOptions {
  readonly tooMany: (message: string) => EngineError;
  readonly log: Logger;
}

/** Writes all events. Rejects with the reason of an aborted signal. */
export type Feed = (events: EventStream) => Promise<void>;

export class OpenStreams {
  readonly #options: OpenStreamsOptions;
  readonly #open = new Set<AbortController>();
  readonly #places = new StreamPlaces();

  constructor(options: OpenStreamsOptions) {
    this.#options = options;
  }

  /**
   * @param prepare runs before the head of the response; its errors reject
   * @throws EngineError when too many streams are open
   */
  async open(
    { tenant, key }: Pick<AnyCall, 'tenant' | 'key'>,
    prepare: (signal: AbortSignal) => Promise<Feed>,
  ): Promise<(exchange: HttpExchange) => void> {
    const place = this.#places.take(tenant, key === undefined);
    if (!place.ok) throw this.#options.tooMany(place.message);
    const ending = new AbortController();
    this.#open.add(ending);
    const leave = () => {
      this.#open.delete(ending);
      place.release();
    };
    try {
      const feed = await prepare(ending.signal);
      return (exchange) => void this.#feed(exchange, feed, ending, leave);
    } catch (error) {
      leave();
      throw error;
    }
  }

  get count(): number {
    return this.#open.size;
  }

  close(): void {
    for (const ending of this.#open) {
      ending.abort(unavailable('ENG_STOPPING', 'the engine is stopping'));
    }
  }

  async #feed(
    exchange: HttpExchange,
    feed: Feed,
    ending: AbortController,
    leave: () => void,
  ): Promise<void> {
    exchange.onAbort(() => ending.abort());
    const events = new EventStream(exchange.stream(HEAD), ending.signal);
    try {
      await feed(events);
    } catch (error) {
      if (!ending.signal.aborted) this.#options.log.error({ err: error }, 'defect');
    } finally {
      ending.abort();
      events.end();
      leave();
    }
  }
}

/** Writes wait while the client does not read. */
export class EventStream {
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
    // Nothing is added to a full buffer.
    this.#keepAlive = setInterval(() => {
      if (!this.#isFull) this.#write(':\n\n');
    }, KEEP_ALIVE_MS);
  }

  /** @param texts JSON without line breaks, one event each */
  send(name: string, texts: readonly string[]): Promise<void> {
    return this.sendFrames(texts.map((text) => `event: ${name}\ndata: ${text}\n\n`));
  }

  /** @param frames complete events, each with its final empty line */
  async sendFrames(frames: readonly string[]): Promise<void> {
    let chunk = '';
    for (const frame of frames) {
      chunk += frame;
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

/** `release` is called once; `message` says why there is no place. */
export type StreamPlace =
  | { readonly ok: true; readonly release: () => void }
  | { readonly ok: false; readonly message: string };

/**
 * Limits open streams (docs/limits.md). Each tenant has a limit, the last places are reserved for
 * tenants with few streams, and some more for the root key, so that operators can always watch.
 */
export class StreamPlaces {
  readonly #open = new Tally();
  #ofRoot = 0;

  take(tenant: string, isRoot: boolean): StreamPlace {
    const message = this.#refusal(tenant);
    if (message === undefined) {
      this.#open.add(tenant, 1);
      return { ok: true, release: () => this.#open.add(tenant, -1) };
    }
    if (!isRoot || this.#ofRoot >= LIMITS.streamsOfRoot) return { ok: false, message };
    this.#ofRoot += 1;
    const release = () => {
      this.#ofRoot -= 1;
    };
    return { ok: true, release };
  }

  #refusal(tenant: string): string | undefined {
    const own = this.#open.of(tenant);
    const ownMax = LIMITS.streamsPerTenantMax;
    if (own >= ownMax) return `${ownMax} streams of this tenant are open`;
    const all = LIMITS.streamsMax - LIMITS.streamsOfRoot;
    const free = all - this.#open.sum;
    if (free <= 0) return `${all} streams are open`;
    const [reserved, few] = [LIMITS.streamsOfSmall, LIMITS.streamsOfSmallMax];
    return free <= reserved && own >= few
      ? `the last ${reserved} streams are for tenants that have fewer than ${few}`
      : undefined;
  }
}
