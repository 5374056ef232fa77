/**
 * The changes of a tenant, by one stream for all tabs that look at it with the same key: over HTTP/1.1 a browser opens
 * six connections to one server, for all of its tabs. One tab leads (`election.ts`): it has the stream, and passes on
 * what comes of it.
 */

import type { Client } from 'durable-workflow-engine-client';
import { randomId } from '../lib/random-id.ts';
import { Election, type Word } from './election.ts';
import { isAway, isUnknown } from './engine-error.ts';
import { pauseMs, sleep } from './pause.ts';

/** How the stream is; `refused`: the engine gives none, for now. */
export type StreamState = 'connecting' | 'live' | 'lost' | 'refused';

export interface Listener {
  /** Whatever was told before, changes may have been missed when it was not `live`. */
  readonly onState: (state: StreamState) => void;
  readonly onChanges: (instanceIds: readonly string[]) => void;
  /** The key is not known any more. */
  readonly onUnknown: () => void;
}

type News =
  | { readonly kind: 'state'; readonly state: StreamState }
  | { readonly kind: 'changes'; readonly ids: readonly string[] }
  | { readonly kind: 'unknown' };

/** What comes within this time is passed on together. */
const TOGETHER_MS = 100;

/** @param group whose tabs share the stream; undefined: none but this one */
export function followShared(
  changes: Client['changes'],
  group: string | undefined,
  listener: Listener,
  signal: AbortSignal,
): void {
  const id = randomId();
  const isShared = group !== undefined && 'BroadcastChannel' in globalThis;
  const channel = isShared ? new BroadcastChannel(group) : undefined;
  let state: StreamState = 'connecting';

  const say = (word: Word) => channel?.postMessage(word);
  function hear(news: News): void {
    if (news.kind === 'unknown') listener.onUnknown();
    else if (news.kind === 'changes') listener.onChanges(news.ids);
    else if (news.state !== state) {
      state = news.state;
      listener.onState(state);
    }
  }
  const tell = (news: News) => {
    hear(news);
    say({ kind: 'news', from: id, news });
  };
  if (channel === undefined) {
    void lead(changes, hear, signal);
    return;
  }
  const election = new Election({
    ...{ id, say, name: channel.name, locks: globalThis.navigator?.locks },
    onLead: (over) => {
      tell({ kind: 'state', state: 'connecting' });
      void lead(changes, tell, over);
    },
    onAsked: () => say({ kind: 'news', from: id, news: { kind: 'state', state } }),
  });
  channel.onmessage = ({ data }: MessageEvent<Word>) => {
    election.hear(data);
    if (data.kind === 'news' && !election.isLeading) hear(data.news as News);
  };
  // A page that is put away hears nothing, and its stream holds a connection; it may come back.
  const leave = () => {
    election.stop();
    hear({ kind: 'state', state: 'connecting' });
  };
  const come = () => election.start();
  document.addEventListener('freeze', leave, { signal });
  document.addEventListener('resume', come, { signal });
  globalThis.addEventListener('pagehide', leave, { signal });
  globalThis.addEventListener('pageshow', come, { signal });
  signal.addEventListener('abort', () => {
    election.stop();
    channel.close();
  });
  election.start();
}

/** Has the stream, for as long as it leads. */
async function lead(
  changes: Client['changes'],
  tell: (news: News) => void,
  over: AbortSignal,
): Promise<void> {
  const passOn = together((ids) => tell({ kind: 'changes', ids }), over);
  for (let tries = 0; !over.aborted; tries += 1) {
    try {
      // It begins with the present each time: all that is on the screen is read again, whatever was missed.
      const onConnection = (isConnected: boolean) => {
        if (!isConnected || over.aborted) return;
        tries = 0;
        tell({ kind: 'state', state: 'live' });
      };
      for await (const { instance_id } of changes.follow({
        signal: over,
        retries: 0,
        onConnection,
      }))
        passOn(instance_id);
    } catch (error) {
      if (over.aborted) return;
      if (isUnknown(error)) tell({ kind: 'unknown' });
      tell({ kind: 'state', state: isAway(error) ? 'lost' : 'refused' });
      await sleep(pauseMs(tries, error), over);
    }
  }
}

function together(send: (ids: readonly string[]) => void, over: AbortSignal): (id: string) => void {
  const ids = new Set<string>();
  return (id) => {
    if (ids.size === 0) {
      setTimeout(() => {
        if (!over.aborted) send([...ids]);
        ids.clear();
      }, TOGETHER_MS);
    }
    ids.add(id);
  };
}

/**
 * Who shares: the same tenant of the same engine, by the same key. Names of locks can be listed by whatever runs in
 * pages of the same origin, so that the key must not stand in them; where there are no hashes there are no locks.
 */
export async function groupOf(...parts: readonly (string | undefined)[]): Promise<string> {
  const text = JSON.stringify([VERSION, ...parts.map((part) => part ?? null)]);
  const { subtle } = crypto as { subtle?: SubtleCrypto };
  if (subtle === undefined) return text;
  const hash = await subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Of what tabs say to each other: those of a newer page may say it otherwise. */
const VERSION = 'changes 1';
