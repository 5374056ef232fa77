/**
 * Follows the changes of a tenant with one stream for all tabs that use the same key: over HTTP/1.1 a browser opens six
 * connections to one server for all of its tabs. The leading tab (`election.ts`) holds the stream and forwards its
 * messages to the others.
 */

import type { Client } from 'durable-workflow-engine-client';
import { randomId } from '../lib/random-id.ts';
import { Election, type TabMessage } from './election.ts';
import { isUnauthenticated, isUnavailable } from './engine-error.ts';
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

type StreamMessage =
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

  const send = (message: TabMessage) => channel?.postMessage(message);
  function receive(news: StreamMessage): void {
    if (news.kind === 'unknown') listener.onUnknown();
    else if (news.kind === 'changes') listener.onChanges(news.ids);
    else if (news.state !== state) {
      state = news.state;
      listener.onState(state);
    }
  }
  const forward = (news: StreamMessage) => {
    receive(news);
    send({ kind: 'news', from: id, news });
  };
  if (channel === undefined) {
    void lead(changes, receive, signal);
    return;
  }
  const election = new Election({
    ...{ id, send, name: channel.name, locks: globalThis.navigator?.locks },
    onLead: (ended) => {
      forward({ kind: 'state', state: 'connecting' });
      void lead(changes, forward, ended);
    },
    onAsked: () => send({ kind: 'news', from: id, news: { kind: 'state', state } }),
  });
  channel.onmessage = ({ data }: MessageEvent<TabMessage>) => {
    election.receive(data);
    if (data.kind === 'news' && !election.isLeading) receive(data.news as StreamMessage);
  };
  // A frozen page receives no messages but would still hold a connection; it may be resumed later.
  const leave = () => {
    election.stop();
    receive({ kind: 'state', state: 'connecting' });
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
  forward: (news: StreamMessage) => void,
  ended: AbortSignal,
): Promise<void> {
  const passOn = together((ids) => forward({ kind: 'changes', ids }), ended);
  for (let tries = 0; !ended.aborted; tries += 1) {
    try {
      // Each stream starts at the present. Whatever was missed is covered by rereading everything on the screen.
      const onConnection = (isConnected: boolean) => {
        if (!isConnected || ended.aborted) return;
        tries = 0;
        forward({ kind: 'state', state: 'live' });
      };
      for await (const { instance_id } of changes.follow({
        signal: ended,
        retries: 0,
        onConnection,
      }))
        passOn(instance_id);
    } catch (error) {
      if (ended.aborted) return;
      if (isUnauthenticated(error)) forward({ kind: 'unknown' });
      forward({ kind: 'state', state: isUnavailable(error) ? 'lost' : 'refused' });
      await sleep(pauseMs(tries, error), ended);
    }
  }
}

function together(
  send: (ids: readonly string[]) => void,
  ended: AbortSignal,
): (id: string) => void {
  const ids = new Set<string>();
  return (id) => {
    if (ids.size === 0) {
      setTimeout(() => {
        if (!ended.aborted) send([...ids]);
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
