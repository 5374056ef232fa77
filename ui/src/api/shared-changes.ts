/**
 * Follows the changes of a tenant with one stream for all tabs that use the same key: over HTTP/1.1 a browser opens six
 * connections to one server for all of its tabs. The leading tab (`election.ts`) holds the stream and forwards its
 * messages to the others.
 */

import type { Client } from 'durable-workflow-engine-client';
import { randomId } from '../lib/random-id.ts';
import { Election, type Word } from './election.ts';
import { isAway, isUnknown } from './engine-error.ts';
import { pauseMs, sleep } from './pause.ts';

/** State of the stream; `refused`: the engine does not open one at the moment. */
export type StreamState = 'connecting' | 'live' | 'lost' | 'refused';

export interface Listener {
  /** Whenever the state was not `live`, changes may have been missed. */
  readonly onState: (state: StreamState) => void;
  readonly onChanges: (instanceIds: readonly string[]) => void;
  /** The key is no longer valid. */
  readonly onUnknown: () => void;
}

type News =
  | { readonly kind: 'state'; readonly state: StreamState }
  | { readonly kind: 'changes'; readonly ids: readonly string[] }
  | { readonly kind: 'unknown' };

/** Changes within this time are forwarded in one message. */
const TOGETHER_MS = 100;

/** @param group the tabs that share the stream; undefined: this tab has its own */
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
  // A frozen page receives no messages but would still hold a connection; it may be resumed later.
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

/** Holds the stream for as long as this tab leads. */
async function lead(
  changes: Client['changes'],
  tell: (news: News) => void,
  over: AbortSignal,
): Promise<void> {
  const passOn = together((ids) => tell({ kind: 'changes', ids }), over);
  for (let tries = 0; !over.aborted; tries += 1) {
    try {
      // Each stream starts at the present. Whatever was missed is covered by rereading everything on the screen.
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
 * Names the group of tabs that share a stream: same engine, same tenant, same key. Any page of the origin can list lock
 * names, so the key is hashed; where hashing is unavailable (plain HTTP), locks are too.
 */
export async function groupOf(...parts: readonly (string | undefined)[]): Promise<string> {
  const text = JSON.stringify([VERSION, ...parts.map((part) => part ?? null)]);
  const { subtle } = crypto as { subtle?: SubtleCrypto };
  if (subtle === undefined) return text;
  const hash = await subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Version of the messages between tabs: tabs of another version are not in the group. */
const VERSION = 'changes 1';
