/**
 * Collects the body of one request within limits of its size, of the memory of all incomplete bodies, and of time. A
 * refused body is read and discarded, within limits: closing a connection with unread bytes resets it, and the client
 * would lose the response.
 */

import { isAscii } from 'node:buffer';
import { EngineError, tooLarge, unavailable } from '../base/errors.js';
import { BODY_JSON_LIMITS, decodeUtf8, tooManyValues, ValueCount } from '../base/json-guard.js';
import type { Refusal } from './reply.js';
import { bodyTooLarge } from './request-head.js';

/** The part of a refused body that is read; a longer one is cut off. */
export const DISCARD_BYTES_MAX = 16 * 1024 * 1024;
/** Only JSON bodies are longer, and a shorter one cannot have too many values. */
const COUNTED_BYTES_MIN = 1024 * 1024;
/** The total time of a body, however steadily it arrives. */
const BODY_TIME_MAX_MS = 60_000;
/** An idle body is detected late by at most this part of the timeout. */
const TICKS_PER_TIMEOUT = 4;

/** Memory of all incomplete bodies of a server. */
export class BodyBudget {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Returns false, and takes nothing, if `bytes` more would exceed the budget. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#bytesMax) return false;
    this.#bytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** Ends stalled bodies with one coarse timer: a timer per body would cost more than a small body. */
export class BodyDeadlines {
  /** Not a Set, whose replaced tables would keep the bodies (`ChurningMap`). */
  readonly #readers: BodyReader[] = [];
  readonly #timer: NodeJS.Timeout;

  constructor(idleTimeoutMs: number) {
    const tickMs = Math.max(1, Math.ceil(idleTimeoutMs / TICKS_PER_TIMEOUT));
    const totalTicksMax = Math.max(TICKS_PER_TIMEOUT, Math.ceil(BODY_TIME_MAX_MS / tickMs));
    this.#timer = setInterval(() => {
      for (const reader of [...this.#readers]) reader.tick(TICKS_PER_TIMEOUT, totalTicksMax);
    }, tickMs);
    this.#timer.unref();
  }

  add(reader: BodyReader): void {
    reader.place = this.#readers.length;
    this.#readers.push(reader);
  }

  delete(reader: BodyReader): void {
    const last = this.#readers.pop() as BodyReader;
    if (last === reader) return;
    this.#readers[reader.place] = last;
    last.place = reader.place;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** Exactly one of the two is called, at most once, and neither after `cancel`. */
export interface BodyOwner {
  complete(body: Buffer): void;
  refuse(refusal: Refusal): void;
}

export interface BodyReaderOptions {
  readonly maxBodyBytes: number;
  /** Undefined for a chunked body. */
  readonly contentLength: number | undefined;
  /** True if a chunk is valid only during `push`. */
  readonly mustCopy: boolean;
  /** Set when the head was refused: the body is only discarded. */
  readonly refusal: Refusal | undefined;
  readonly budget: BodyBudget;
  readonly deadlines: BodyDeadlines;
  readonly owner: BodyOwner;
}

const NO_CHUNKS: Buffer[] = [];

export class BodyReader {
  readonly #options: BodyReaderOptions;
  #chunks: Buffer[] = [];
  #refusal: Refusal | undefined;
  #bytes = 0;
  #bytesHeld = 0;
  /** Counts the values of a long body, which is refused as soon as it has too many. */
  #values: ValueCount | undefined;
  /** True once the body is complete, refused or cancelled; further pieces are ignored. */
  isOver = false;
  #idleTicks = 0;
  #totalTicks = 0;
  /** Its index in `BodyDeadlines`. */
  place = 0;

  constructor(options: BodyReaderOptions) {
    this.#options = options;
    this.#refusal = options.refusal;
    options.deadlines.add(this);
    if (this.#refusal !== undefined && (options.contentLength ?? 0) > DISCARD_BYTES_MAX) {
      this.#refuse(this.#refusal);
    }
  }

  /** A body that arrives in one piece is copied at most once. */
  push(chunk: Buffer, isLast: boolean): void {
    if (this.isOver) return;
    this.#idleTicks = 0;
    this.#bytes += chunk.length;
    if (this.#refusal === undefined) {
      this.#refusal = this.#hold(chunk, isLast);
      if (this.#refusal !== undefined) this.#forget();
    }
    const isEnd = isLast || this.#bytes > this.#options.maxBodyBytes + DISCARD_BYTES_MAX;
    if (this.#refusal !== undefined && isEnd) this.#refuse(this.#refusal);
    else if (isLast) this.#complete();
  }

  get isDiscarding(): boolean {
    return this.#refusal !== undefined && !this.isOver;
  }

  cancel(): void {
    if (!this.isOver) this.#leave();
  }

  tick(idleTicksMax: number, totalTicksMax: number): void {
    this.#idleTicks += 1;
    this.#totalTicks += 1;
    if (this.#idleTicks <= idleTicksMax && this.#totalTicks <= totalTicksMax) return;
    this.#refuse(this.#refusal ?? { status: 408, message: 'the request body came too slowly' });
  }

  #hold(chunk: Buffer, isLast: boolean): Refusal | undefined {
    const { maxBodyBytes, budget, mustCopy } = this.#options;
    if (this.#bytes > maxBodyBytes) return bodyTooLarge(maxBodyBytes);
    if (!isLast || this.#chunks.length > 0) {
      if (!budget.take(chunk.length)) {
        return unavailable('ENG_OVERLOADED', 'too many large bodies at once');
      }
      this.#bytesHeld += chunk.length;
    }
    if (chunk.length > 0) this.#chunks.push(mustCopy ? Buffer.from(chunk) : chunk);
    if (this.#bytes > COUNTED_BYTES_MIN && this.#hasTooManyValues(chunk)) {
      return tooLarge(tooManyValues(BODY_JSON_LIMITS));
    }
    return undefined;
  }

  /** Includes the earlier pieces when the body has just become long. */
  #hasTooManyValues(chunk: Buffer): boolean {
    if (this.#values !== undefined) return this.#values.take(chunk);
    const values = new ValueCount(BODY_JSON_LIMITS.maxValues ?? Number.POSITIVE_INFINITY);
    this.#values = values;
    return this.#chunks.some((each) => values.take(each));
  }

  #complete(): void {
    const [first] = this.#chunks;
    const body =
      first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    this.#leave();
    this.#options.owner.complete(body);
  }

  #refuse(refusal: Refusal): void {
    this.#leave();
    this.#options.owner.refuse(refusal);
  }

  #leave(): void {
    this.isOver = true;
    this.#options.deadlines.delete(this);
    this.#forget();
  }

  /** Frees memory at once: the exchange refers to the reader until the response. */
  #forget(): void {
    this.#chunks = NO_CHUNKS;
    this.#options.budget.give(this.#bytesHeld);
    this.#bytesHeld = 0;
  }
}

/** @throws EngineError 400 when the bytes are not UTF-8 */
export function textOf(body: Buffer): string {
  if (body.length === 0) return '';
  if (isAscii(body)) return body.toString('latin1');
  const text = decodeUtf8(body);
  if (text === undefined) {
    throw new EngineError('ENG_INVALID_JSON', 'invalid argument: the body is not valid UTF-8');
  }
  return text;
}
