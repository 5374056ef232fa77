/** Reads server-sent events from the body of an answer. */

import { EngineError } from './errors.js';
import type { StreamEvent } from './operation.js';

/** The server says something every 15 s, if it is only that it is there. */
const SILENCE_MS_MAX = 60_000;

export interface Reading {
  readonly signal?: AbortSignal | undefined;
  /** The connection is there. */
  readonly onOpen?: (() => void) | undefined;
  /** Told of every id, also of one that comes without an event. */
  readonly onId?: ((id: string) => void) | undefined;
}

/**
 * Ends with the body. Leaving the loop closes the connection.
 * @throws EngineError when the connection breaks or falls silent; the reason of the signal once that is aborted
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
    // Whoever left does not want to hear what comes of it.
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
    if (isSilent) throw new Error(`nothing came for ${SILENCE_MS_MAX / 1000} s`);
    return next;
  } catch (cause) {
    const message = `the stream broke off: ${(cause as Error).message}`;
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
