/**
 * A reader of server-sent events over a plain socket of node:http: events as they come, comments
 * counted, and whether the stream ended as it should or was cut off.
 */

import http from 'node:http';
import { describeAnswer } from './contract.js';

export interface ServerEvent {
  readonly event: string;
  /** The parsed data. */
  readonly data: Record<string, unknown>;
  /** Absent when the event has none. */
  readonly id?: string;
}

export interface EventReader {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /** All events so far. */
  readonly events: readonly ServerEvent[];
  /** The body so far of what is no event stream. */
  readonly text: string;
  /** Comment lines so far. */
  readonly comments: number;
  /** What a client that is cut off resumes with; '' before there was an id. */
  readonly lastEventId: string;
  /** Resolves when the condition holds; rejects when the stream ends before. */
  until(condition: (reader: EventReader) => boolean): Promise<void>;
  /** Resolves with the number of events at the proper end; rejects when the stream is cut off. */
  readonly ended: Promise<number>;
  /** Stops and goes on reading from the socket. */
  pause(): void;
  resume(): void;
  /** Goes away. */
  close(): void;
}

export interface StreamRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly method?: 'GET' | 'HEAD';
}

/** Streams whose connection is open: after a failed test they would keep its process. */
const connected = new Set<http.ClientRequest>();

/** Closes those that a test has left open. */
export function closeStreams(): void {
  for (const request of connected) request.destroy();
}

/** Resolves with the head of the answer. */
export function openEvents({ url, headers, method = 'GET' }: StreamRequest): Promise<EventReader> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers, agent: false });
    connected.add(request);
    request.once('close', () => connected.delete(request));
    request.once('error', reject);
    request.once('response', (response) => {
      const problem = describeHead(new URL(url).pathname, method, response);
      if (problem === undefined) resolve(new Reader(request, response));
      else reject(new Error(`${method} ${url} answered ${response.statusCode}: ${problem}`));
    });
    request.end();
  });
}

/** What the document does not say of the head of a stream; its body is checked by who reads it. */
function describeHead(
  path: string,
  method: string,
  { statusCode: status = 0, headers }: http.IncomingMessage,
): string | undefined {
  if (status !== 200) return undefined;
  return describeAnswer(method, path, { status, headers, text: '' });
}

class Reader implements EventReader {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly events: ServerEvent[] = [];
  readonly ended: Promise<number>;
  text = '';
  comments = 0;
  lastEventId = '';
  readonly #request: http.ClientRequest;
  readonly #response: http.IncomingMessage;
  readonly #isEventStream: boolean;
  #line = '';
  #event = '';
  #id: { readonly id?: string } = {};
  #waiting: (() => void)[] = [];

  constructor(request: http.ClientRequest, response: http.IncomingMessage) {
    this.#request = request;
    this.#response = response;
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    this.#isEventStream = response.headers['content-type'] === 'text/event-stream';
    response.setEncoding('utf8');
    response.on('data', (text: string) => this.#take(text));
    this.ended = new Promise((resolve, reject) => {
      const settle = () => {
        if (response.complete) resolve(this.events.length);
        else reject(new Error(`the stream was cut off after ${this.events.length} events`));
        this.#tell();
      };
      response.once('close', settle);
      // What breaks the connection is followed by its close.
      response.on('error', () => undefined);
      request.on('error', () => undefined);
    });
    this.ended.catch(() => undefined);
  }

  async until(condition: (reader: EventReader) => boolean): Promise<void> {
    while (!condition(this)) {
      if (this.#response.destroyed) {
        throw new Error(`the stream ended before: ${JSON.stringify(this.events).slice(0, 500)}`);
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  pause(): void {
    this.#response.pause();
  }

  resume(): void {
    this.#response.resume();
  }

  close(): void {
    this.#request.destroy();
  }

  #take(text: string): void {
    if (!this.#isEventStream) this.text += text;
    const lines = (this.#line + text).split('\n');
    this.#line = lines.pop() ?? '';
    if (this.#isEventStream) for (const line of lines) this.#takeLine(line);
    this.#tell();
  }

  #takeLine(line: string): void {
    if (line.startsWith(':')) this.comments += 1;
    else if (line.startsWith('event: ')) this.#event = line.slice('event: '.length);
    else if (line.startsWith('id: ')) {
      this.lastEventId = line.slice('id: '.length);
      this.#id = { id: this.lastEventId };
    } else if (line.startsWith('data: ')) {
      const data = JSON.parse(line.slice('data: '.length));
      this.events.push({ event: this.#event, data, ...this.#id });
    } else if (line === '') this.#id = {};
  }

  #tell(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
}

/** The first of what comes, or all of it. */
export async function taken<T>(events: AsyncIterable<T>, count = Number.POSITIVE_INFINITY) {
  const seen: T[] = [];
  for await (const event of events) if (seen.push(event) === count) break;
  return seen;
}
