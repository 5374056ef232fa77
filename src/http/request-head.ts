/**
 * The head of one request: its target, the captured headers, and whether it may be served. It is also the
 * `HttpRequest` of the handler, so that a request costs one object.
 */

import { randomFillSync } from 'node:crypto';
import http from 'node:http';
import { BODY_BYTES_ANYWHERE } from '../../schema/route-row.js';
import { words } from '../../schema/states.js';
import { EngineError, invalid, tooLarge, unsupportedEncoding } from '../base/errors.js';
import type { BodyLimits, HttpRequest } from './server.js';

/** The headers that are stored. The first line is for the transport itself. */
const CAPTURED_HEADERS = words(
  'host content-length transfer-encoding access-control-request-method',
  'authorization x-api-key x-tenant-id x-cell content-type content-encoding x-request-id',
  'traceparent tracestate last-event-id origin accept accept-encoding if-none-match user-agent',
  'x-trigger-secret x-trigger-timestamp x-trigger-nonce x-engine-signature x-forwarded-for prefer',
);

/** Requests for triggers, which verify and read any header. */
const KEEPS_EVERY_HEADER = /\/(?:webhooks\/[^/]+|triggers\/[^/]+\/fire)$/;

/** More than browsers and proxies send together; beyond it 431. */
const HEADER_COUNT_MAX = 48;

const SLOTS: ReadonlyMap<string, number> = new Map(
  CAPTURED_HEADERS.map((name, slot) => [name, slot]),
);
const slotOf = (name: (typeof CAPTURED_HEADERS)[number]) => CAPTURED_HEADERS.indexOf(name);
const HOST = slotOf('host');
const CONTENT_LENGTH = slotOf('content-length');
const TRANSFER_ENCODING = slotOf('transfer-encoding');
const REQUEST_ID = slotOf('x-request-id');
const ORIGIN = slotOf('origin');
const CONTENT_ENCODING = slotOf('content-encoding');
const TRACEPARENT = slotOf('traceparent');
const FORWARDED_FOR = slotOf('x-forwarded-for');
const PREFER = slotOf('prefer');
const PREFLIGHT_METHOD = slotOf('access-control-request-method');

/** Must not be repeated: a proxy and this server could each use a different value. */
const SINGLE_MASK = words(
  'host content-length transfer-encoding authorization x-api-key x-tenant-id x-cell',
  'content-encoding',
).reduce((mask, name) => mask | (1 << slotOf(name)), 0);

/** Fifteen digits are exact in a number and far beyond the limits of bodies. */
const LENGTH = /^\d{1,15}$/;
/** Invalid in a target: blanks, control characters, bytes beyond ASCII, and a fragment. */
const TARGET_UNWANTED = /[^\x21-\x7e]|#/;
/** A name or address with its port; empty if the target has none. Two joined values do not match. */
const HOST_VALUE = /^(?:\[[\w:.%]+\]|[\w.~!$&'()*+;=%-]*)(?::\d{0,5})?$/;
/** Known methods, though not of every route. CONNECT is not supported. */
const METHODS: ReadonlySet<string> = new Set(http.METHODS.filter((method) => method !== 'CONNECT'));
const EMPTY = Buffer.alloc(0);

/** Replaced by the backend before the handler receives the request. */
const NO_PEER = (): string => '';

export class RequestHead {
  /** Upper case. The handler may answer `HEAD` like `GET`: the backend omits the body. */
  readonly method: string;
  /** Without the query, not decoded: printable ASCII that begins with `/`. */
  readonly path: string;
  /** Not decoded, without `?`; '' if absent. */
  readonly query: string;
  /** Empty if absent. Small ones share Node's pool: do not transfer it. */
  body: Buffer = EMPTY;
  /** The sanitised `x-request-id` of the client, else a fresh UUID. */
  requestId = '';
  /** The address of the client, behind trusted proxies; only valid while the request is served. */
  peer = NO_PEER;
  /** The declared length of the body; undefined for a chunked one, 0 for none. */
  contentLength: number | undefined = 0;
  bodyBytesMax = 0;
  readonly #values: (string | undefined)[] = [];
  /** Headers without a slot, in lower case; undefined: they are dropped. */
  readonly #others: Map<string, string> | undefined;
  #seenMask = 0;
  #fault: string | undefined;
  #headerCount = 0;
  #headerBytes: number;

  constructor(method: string, path: string, query: string) {
    this.method = method;
    this.path = path;
    this.query = query;
    this.#headerBytes = path.length + query.length;
    if (method === 'POST' && KEEPS_EVERY_HEADER.test(path)) this.#others = new Map();
  }

  /** Adds a header, in the order of arrival; `name` in lower case. The first value counts. */
  add(name: string, value: string): void {
    this.#headerCount += 1;
    this.#headerBytes += name.length + value.length;
    const slot = SLOTS.get(name);
    if (slot === undefined) {
      const before = this.#others?.get(name);
      this.#others?.set(name, before === undefined ? value : `${before}, ${value}`);
      return;
    }
    const bit = 1 << slot;
    if ((this.#seenMask & bit) === 0) {
      this.#seenMask |= bit;
      this.#values[slot] = value;
    } else if ((SINGLE_MASK & bit) !== 0) {
      this.#fault = `header ${name} is repeated`;
    } else if (slot === TRACEPARENT) {
      // Two values are ambiguous; a malformed one is ignored.
      this.#values[slot] = '';
    } else if (slot === FORWARDED_FOR || slot === PREFER) {
      // One list of all lines: some proxies add a line, others extend the last one.
      this.#values[slot] += `, ${value}`;
    }
  }

  /** Makes `settle` refuse the request with 400, for faults that only the backend sees. */
  reject(fault: string): void {
    this.#fault = fault;
  }

  /**
   * Called once after the last header: determines the request id and the length of the body, and returns the refusal,
   * if any: 400, 413, 415 or 431. Only after a 413 or 415 the end of the request is known.
   */
  settle(
    limits: BodyLimits & { readonly maxHeaderBytes: number },
    newRequestId: () => string,
  ): EngineError | undefined {
    this.requestId = requestIdFrom(this.#values[REQUEST_ID], newRequestId);
    if (this.#headerBytes > limits.maxHeaderBytes) {
      return headersTooLarge(`more than ${limits.maxHeaderBytes} bytes`);
    }
    if (this.#headerCount > HEADER_COUNT_MAX) {
      return headersTooLarge(`more than ${HEADER_COUNT_MAX} headers`);
    }
    if (this.#fault !== undefined) return invalid(this.#fault);
    if (!METHODS.has(this.method)) return METHOD_UNKNOWN;
    const host = this.#values[HOST];
    if (host === undefined) return invalid('header host is missing');
    if (!HOST_VALUE.test(host)) return invalid('header host is neither a name nor an address');
    if (!this.path.startsWith('/') || hasUnwanted(this.path) || hasUnwanted(this.query)) {
      return invalid('the request target must be a path in printable ASCII');
    }
    return this.#settleLength(limits) ?? this.#encodingRefusal();
  }

  /** Frees the body, which otherwise stays in memory beside its parsed form until the response. */
  forgetBody(): void {
    this.body = EMPTY;
  }

  /** @throws Error for a header that is not in `CAPTURED_HEADERS`, unless all are stored */
  header(name: string): string | undefined {
    const slot = SLOTS.get(name);
    if (slot !== undefined) return this.#values[slot];
    if (this.#others === undefined) throw new Error(`header ${name} is not captured`);
    return this.#others.get(name);
  }

  /** All headers of a request for a trigger by name; of other requests those that are captured. */
  allHeaders(): Record<string, string> {
    const captured = CAPTURED_HEADERS.flatMap((name, slot): [string, string][] => {
      const value = this.#values[slot];
      return value === undefined ? [] : [[name, value]];
    });
    return Object.fromEntries([...captured, ...(this.#others ?? [])]);
  }

  get origin(): string | undefined {
    return this.#values[ORIGIN];
  }

  get isPreflight(): boolean {
    return (
      this.method === 'OPTIONS' &&
      this.#values[ORIGIN] !== undefined &&
      this.#values[PREFLIGHT_METHOD] !== undefined
    );
  }

  #settleLength(limits: BodyLimits): EngineError | undefined {
    const encoding = this.#values[TRANSFER_ENCODING];
    const length = this.#values[CONTENT_LENGTH];
    if (encoding !== undefined) {
      if (length !== undefined) return invalid('content-length beside transfer-encoding');
      if (encoding.toLowerCase() !== 'chunked') return invalid('unknown transfer-encoding');
      this.contentLength = undefined;
    } else if (length !== undefined) {
      if (!LENGTH.test(length)) return invalid('content-length is not a number of bytes');
      this.contentLength = Number(length);
    }
    const bytes = this.contentLength ?? Number.POSITIVE_INFINITY;
    this.bodyBytesMax = limits.maxBodyBytes;
    if (bytes > BODY_BYTES_ANYWHERE && limits.bodyBytesOf !== undefined) {
      const ofRoute = limits.bodyBytesOf(this.method, this.path) ?? limits.maxBodyBytes;
      this.bodyBytesMax = Math.min(ofRoute, limits.maxBodyBytes);
    }
    const isTooLarge = this.contentLength !== undefined && bytes > this.bodyBytesMax;
    return isTooLarge ? bodyTooLarge(this.bodyBytesMax) : undefined;
  }

  /** Compressed bodies are refused: the declared length would not limit their size. */
  #encodingRefusal(): EngineError | undefined {
    const encoding = this.#values[CONTENT_ENCODING];
    if (encoding === undefined || this.contentLength === 0) return undefined;
    const named = encoding.trim().toLowerCase();
    if (named === '' || named === 'identity') return undefined;
    return unsupportedEncoding(/^[\w.+, *-]{1,64}$/.test(named) ? named : 'of an unknown name');
  }
}

/** Browsers accept HTML when a person opens an address; programs accept anything, or JSON. */
export const wantsPage = (request: Pick<HttpRequest, 'header'>) =>
  /\btext\/html\b/i.test(request.header('accept') ?? '');

/** Whether the caller has the preference, in lower case (RFC 7240). */
export function prefers(request: Pick<HttpRequest, 'header'>, preference: string): boolean {
  const header = request.header('prefer');
  if (header === undefined) return false;
  const text = header.toLowerCase().replace(/[ \t"]/g, '');
  const isSame = (word: string) => word.split('=', 1)[0] === preference.split('=', 1)[0];
  // Parameters follow a semicolon. Of several values the first one counts.
  const given = text.split(',').map((word) => word.split(';', 1)[0] ?? '');
  return given.find(isSame) === preference;
}

export const METHOD_UNKNOWN = invalid('the method is none that is served');

export const bodyTooLarge = (maxBodyBytes: number) =>
  tooLarge(`the body is larger than ${maxBodyBytes} bytes`);

export const headersTooLarge = (what: string) =>
  new EngineError('ENG_HEADERS_TOO_LARGE', `request header fields too large: ${what}`);

const hasUnwanted = (text: string) => TARGET_UNWANTED.test(text);

const REQUEST_ID_CHARS_MAX = 128;
const CLEAN = /^[A-Za-z0-9_-]{1,128}$/;
const UNWANTED = /[^A-Za-z0-9_-]/g;

/** The client's id without characters other than `[A-Za-z0-9_-]`, cut; else a new one. */
export function requestIdFrom(sent: string | undefined, newRequestId: () => string): string {
  if (sent === undefined) return newRequestId();
  if (CLEAN.test(sent)) return sent;
  const kept = sent.replace(UNWANTED, '').slice(0, REQUEST_ID_CHARS_MAX);
  return kept === '' ? newRequestId() : kept;
}

const UUID_BYTES = 16;
const randomBytes = Buffer.allocUnsafeSlow(256 * UUID_BYTES);
let randomAt = randomBytes.length;
const digits = Buffer.from('00000000-0000-4000-8000-000000000000');
const DIGITS_AT = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const HEX = Buffer.from('0123456789abcdef');

/** A UUID v4. `crypto.randomUUID` takes twice as long, and a tenth of the memory of a request on this thread. */
export function newRequestId(): string {
  if (randomAt === randomBytes.length) {
    randomFillSync(randomBytes);
    randomAt = 0;
  }
  for (let byte = 0; byte < UUID_BYTES; byte++) {
    const value = randomBytes[randomAt + byte]!;
    const at = DIGITS_AT[byte]!;
    digits[at] = HEX[value >> 4]!;
    digits[at + 1] = HEX[value & 15]!;
  }
  digits[14] = 52;
  digits[19] = HEX[8 + (randomBytes[randomAt + 8]! & 3)]!;
  randomAt += UUID_BYTES;
  return digits.toString('latin1');
}
