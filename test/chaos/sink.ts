/** Where the http_request steps of a chaos run arrive: remembers the last path segment of each. */

import { serve } from '../helpers/loopback.js';

export interface Sink {
  readonly url: string;
  readonly tokens: ReadonlySet<string>;
  stop(): void;
}

export async function startSink(): Promise<Sink> {
  const tokens = new Set<string>();
  const { url, stop } = await serve((request, response) => {
    tokens.add((request.url ?? '').split('/').at(-1)!);
    request.resume();
    response.end('{}');
  });
  return { url, tokens, stop };
}
