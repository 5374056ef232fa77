/** Reads server-sent events from the body of a response. */

import { EngineError } from './errors.js';
import type { StreamEvent } from './operation.js';

/** The server sends at least a keepalive every 15 s. */
const SILENCE_MS_MAX = 60_000;

export interface Reading {
  readonly signal?: AbortSignal | undefined;
  /** Called when the connection is open. */
  readonly onOpen?: (() => void) | undefined;
  /** Called with every id, including ids without an event. */
  readonly onId?: ((id: string) => void) | undefined;
}

/**
 * Ends with the body. Leaving the loop closes the connection.
 * @throws EngineError if the connection breaks or times out; the reason of the signal if it is aborted
 */
export async function* eventsOf(
  body: ReadableStream<Uint8Array>,
  { signal, onOpen, onId }: Reading = {},
): AsyncGenerator<StreamEvent> {
  const reader = body.getReader();
  const give = () => void reader.cancel().catch(() => undefined);
  signal?.addEventListener('abort', give, { once: true });
  try {
    onOpen?.();
    let id = '';
    let event = '';
    let data: string[] = [];
    for await (const line of linesOf(reader)) {
      signal?.throwIfAborted();
      const [name, text] = fieldOf(line);
      if (name === 'event') event = text;
      else if (name === 'data') data.push(text);
      else if (name === 'id') {
        id = text;
        onId?.(id);
      } else if (line === '') {
        if (data.length > 0) yield { event: event || 'message', data: data.join('\n'), id };
        event = '';
        data = [];
      }
    }
    signal?.throwIfAborted();
  } finally {
    signal?.removeEventListener('abort', give);
    // The result of closing does not matter to a caller that has left.
    give();
  }
}

async function* linesOf(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  for (;;) {
    const { done, value } = await nextOf(reader);
    if (done) return;
    const [end = '', ...lines] = decoder.decode(value, { stream: true }).split('\n');
    parts.push(end);
    for (const begun of lines) {
      yield parts.join('').replace(/\r$/, '');
      parts = [begun];
    }
  }
}

async function nextOf(reader: ReadableStreamDefaultReader<Uint8Array>) {
  let isSilent = false;
  const timer = setTimeout(() => {
    isSilent = true;
    void reader.cancel().catch(() => undefined);
  }, SILENCE_MS_MAX);
  try {
    const next = await reader.read();
    if (isSilent) throw new Error(`no data for ${SILENCE_MS_MAX / 1000} s`);
    return next;
  } catch (cause) {
    const message = `the stream was interrupted: ${(cause as Error).message}`;
    throw new EngineError({ status: 0, code: 'CLIENT_NETWORK', message, cause });
  } finally {
    clearTimeout(timer);
  }
}

function fieldOf(line: string): readonly [name: string, text: string] {
  const colon = line.indexOf(':');
  if (colon < 0) return [line, ''];
  return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
}
