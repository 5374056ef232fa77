/**
 * The life of an exchange, alike on both backends, which supply only how bytes leave. An exchange is answered at most
 * once, and never after its client disconnected.
 */

import type { EngineError } from '../base/errors.js';
import { DEFECT, type HeaderList, NO_HEADERS, type Refusal, refusalReply } from './reply.js';
import type { BodyReader } from './request-body.js';
import type { RequestHead } from './request-head.js';
import type { AnswerHooks, HttpBodyStream, HttpReply, HttpStreamHead } from './server.js';
import type { Transport } from './transport.js';

/** uWebSockets.js writes a value as it is: a line break in one would forge the reply. */
const HEADER_UNWANTED = /[^\t\x20-\x7e]/;

const NO_STREAM: HttpBodyStream = { write: () => false, onDrain: () => {}, end: () => {} };

type Phase = 'waiting' | 'streaming' | 'over';

export abstract class Exchange {
  /** The reader of a body that is still arriving. */
  bodyReader: BodyReader | undefined;
  /** The address whose requests in flight it counts among; undefined: it does not, or no more. */
  address: string | undefined;
  /** Its connection is beyond the bounds: it has one answer, which is this unless it asks how the engine is. */
  unplaced: EngineError | undefined;
  protected readonly transport: Transport;
  protected readonly head: RequestHead;
  #phase: Phase = 'waiting';
  #isRefused = false;
  #isAbandoned = false;
  #isEnded = false;
  #hooks: AnswerHooks | undefined;
  #headers: HeaderList = NO_HEADERS;
  #abortListeners: (() => void)[] | undefined;
  #endListeners: (() => void)[] | undefined;
  #drainListener: (() => void) | undefined;

  constructor(transport: Transport, head: RequestHead) {
    this.transport = transport;
    this.head = head;
  }

  // ---------------------------------------------------------------- what the handler sets

  /** True once the client went away before the reply, or the end of the stream, was handed over. */
  get aborted(): boolean {
    return this.#isAbandoned || this.#isEnded;
  }

  follow(hooks: AnswerHooks): void {
    this.#hooks = hooks;
  }

  /** Sets headers that the answer carries beside its own. */
  addHeaders(headers: HeaderList): void {
    this.#headers = headers;
  }

  /**
   * Calls `listener` once when the exchange is aborted, at once if it already is. A stream that
   * answers HEAD counts as aborted after its head, so that producers stop.
   */
  onAbort(listener: () => void): void {
    if (this.aborted) listener();
    else if (this.#abortListeners === undefined) this.#abortListeners = [listener];
    else this.#abortListeners.push(listener);
  }

  /** Calls `listener` once when the exchange is over: answered, its stream ended, or aborted. */
  onEnd(listener: () => void): void {
    if (this.aborted || this.#phase === 'over') listener();
    else if (this.#endListeners === undefined) this.#endListeners = [listener];
    else this.#endListeners.push(listener);
  }

  // ---------------------------------------------------------------- its answer

  /** Exactly once per exchange, instead of `stream`; does nothing after an abort. */
  reply(reply: HttpReply): void {
    if (this.#isEnded) return;
    this.#callEndListeners();
    const whole = this.#withHeaders(reply);
    const delayMs = this.#hooks?.delayMs(reply.status) ?? 0;
    if (delayMs === 0) this.#send(whole);
    else setTimeout(() => this.#send(whole), delayMs).unref();
    this.#hooks?.answered(reply);
  }

  /** Exactly once per exchange, instead of `reply`; after an abort the stream discards everything. */
  stream(head: HttpStreamHead): HttpBodyStream {
    if (this.#isEnded) return NO_STREAM;
    const body = this.#open(this.#withHeaders(head));
    this.#hooks?.answered(head);
    return body;
  }

  /**
   * Ends a stream, or answers with the refusal; from then on the exchange counts as aborted. Does nothing when it is
   * over.
   */
  end(refusal: HttpReply): void {
    if (this.aborted || this.#phase === 'over') return;
    if (this.#phase === 'streaming') this.#finish();
    else this.reply(refusal);
    this.#isEnded = true;
    this.#callAbortListeners();
  }

  #withHeaders<Head extends { readonly headers?: HeaderList }>(head: Head): Head {
    if (this.#headers === NO_HEADERS) return head;
    return { ...head, headers: [...(head.headers ?? NO_HEADERS), ...this.#headers] };
  }

  #send(reply: HttpReply): void {
    if (!this.#mayAnswer(reply.headers)) return;
    this.#phase = 'over';
    try {
      this.sendReply(reply);
    } catch (error) {
      // Nothing was sent, so the caller may reply with something else.
      this.#phase = 'waiting';
      throw error;
    }
    this.#leaveAddress();
  }

  #open(head: HttpStreamHead): HttpBodyStream {
    if (!this.#mayAnswer(head.headers)) return NO_STREAM;
    const isHead = this.head.method === 'HEAD';
    this.#phase = isHead ? 'over' : 'streaming';
    this.sendStreamHead(head, isHead);
    if (isHead) {
      // Not at once: the producer has not yet had the chance to register its listener.
      queueMicrotask(() => this.#leave());
      return NO_STREAM;
    }
    return {
      write: (chunk) => {
        if (this.aborted || this.#phase !== 'streaming') return false;
        return chunk.length === 0 || this.writeChunk(chunk);
      },
      onDrain: (listener) => {
        this.#drainListener = listener;
      },
      end: () => {
        if (!this.aborted && this.#phase === 'streaming') this.#finish();
      },
    };
  }

  #finish(): void {
    this.#phase = 'over';
    this.#leaveAddress();
    this.#callEndListeners();
    this.endStream();
  }

  /**
   * False when the client has disconnected. A second answer is a defect of its caller: it is dropped with a log line.
   */
  #mayAnswer(headers: HeaderList | undefined): boolean {
    if (this.#isAbandoned) return false;
    if (this.#phase !== 'waiting') {
      this.transport.options.log.error(
        { err: new Error('second answer'), requestId: this.head.requestId, path: this.head.path },
        'a second answer to one request was dropped',
      );
      return false;
    }
    for (const [name, value] of headers ?? NO_HEADERS) {
      if (HEADER_UNWANTED.test(value)) throw new Error(`reply header ${name} has a bad value`);
    }
    return true;
  }

  // ---------------------------------------------------------------- what the transport does with it

  complete(body: Buffer): void {
    this.head.body = body;
    this.transport.dispatch(this.head, this);
  }

  /** Answers with the refusal's error body and closes the connection afterwards. */
  refuse(refusal: Refusal): void {
    this.#isRefused = true;
    this.#send(refusalReply(refusal));
  }

  /** `refuse` follows once the body was discarded. Where a backend can, the client gets the answer before that. */
  announce(refusal: Refusal): void {
    this.#isRefused = true;
    this.sendEarly(refusalReply(refusal));
  }

  /** The handler threw: 500 if nothing was answered yet, else the reply under way is cut off. */
  fail(): void {
    if (this.#phase === 'waiting') this.#send(refusalReply(DEFECT));
    else if (this.#phase === 'streaming' && !this.aborted) this.destroy();
  }

  /** The connection is gone. Nothing is written from here on. */
  abort(): void {
    if (this.#isAbandoned || this.#phase === 'over') return;
    this.bodyReader?.cancel();
    this.#leave();
  }

  #leave(): void {
    this.#isAbandoned = true;
    this.#leaveAddress();
    this.#callEndListeners();
    this.#callAbortListeners();
  }

  #leaveAddress(): void {
    if (this.address === undefined) return;
    this.transport.options.requests?.leave(this.address);
    this.address = undefined;
  }

  #callAbortListeners(): void {
    const listeners = this.#abortListeners;
    this.#abortListeners = undefined;
    if (listeners !== undefined) for (const listener of listeners) this.#call(listener);
  }

  #callEndListeners(): void {
    const listeners = this.#endListeners;
    this.#endListeners = undefined;
    if (listeners !== undefined) for (const listener of listeners) this.#call(listener);
  }

  /** A listener is called from within native code, which ends the process if it throws. */
  #call(listener: () => void): void {
    try {
      listener();
    } catch (err) {
      this.transport.options.log.error(
        { err, requestId: this.head.requestId, path: this.head.path },
        'a listener of an exchange failed',
      );
      this.fail();
    }
  }

  // ---------------------------------------------------------------- what a backend uses and supplies

  /** The socket has room again after `writeChunk` gave false. */
  protected drained(): void {
    if (this.aborted || this.#phase !== 'streaming' || this.#drainListener === undefined) return;
    this.#call(this.#drainListener);
  }

  /** The connection cannot be used again: it is unknown where the next request begins. */
  protected get isRefused(): boolean {
    return this.#isRefused || this.unplaced !== undefined;
  }

  protected get mustClose(): boolean {
    return this.isRefused || this.transport.isStopping;
  }

  protected get corsHeaders(): HeaderList {
    return this.transport.cors.replyHeaders(this.head.origin);
  }

  /** Writes the reply of which `sendReply` follows, and which closes the connection then. */
  protected sendEarly(_reply: HttpReply): void {}

  /** Writes the whole reply; without the body when the method is HEAD. */
  protected abstract sendReply(reply: HttpReply): void;

  /** Writes the head of a stream, and ends the reply there when `isWhole`. */
  protected abstract sendStreamHead(head: HttpStreamHead, isWhole: boolean): void;

  /** Gives false if the socket is full; then `drained` follows. `chunk` is not empty. */
  protected abstract writeChunk(chunk: string | Buffer): boolean;

  protected abstract endStream(): void;

  /** Cuts the connection, which aborts the exchange. */
  protected abstract destroy(): void;
}
