/** Reads server-sent events from the body of an answer. */

import type { StreamEvent } from './operation.js';

/** Ends with the body; rejects when that is cut off. Leaving the loop closes the connection. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let event = '';
  let data: string[] = [];
  let id = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line === '') {
          if (data.length > 0)
            yield { event: event === '' ? 'message' : event, data: data.join('\n'), id };
          event = '';
          data = [];
          continue;
        }
        const [name, text] = fieldOf(line);
        if (name === 'event') event = text;
        else if (name === 'data') data.push(text);
        else if (name === 'id') id = text;
      }
    }
  } finally {
    // Whoever left does not want to hear what comes of it.
    await reader.cancel().catch(() => undefined);
  }
}

function fieldOf(line: string): readonly [name: string, text: string] {
  const colon = line.indexOf(':');
  if (colon < 0) return [line, ''];
  return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
}
