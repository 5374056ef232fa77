/**
 * Keeps what is on the screen current: one stream of changes for the whole page, whose news make the queries read
 * again that show what changed. Where there is no stream, everything is looked at again every few seconds.
 */

import { useQueryClient } from '@tanstack/react-query';
import type { Client } from 'durable-workflow-engine-client';
import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from 'react';
import { useEngine } from './engine.tsx';
import { isAway, isUnknown } from './engine-error.ts';
import { pauseMs, sleep } from './pause.ts';
import { Rereads } from './rereads.ts';
import { useIsWatched } from './watched.ts';

/**
 * `paced`: there is no stream of changes, and the page looks again every few seconds. It is for who may read all of
 * one tenant, and an engine may have too many of them.
 */
export type LiveState = 'connecting' | 'live' | 'lost' | 'paced';

const LiveContext = createContext<LiveState>('connecting');

export function useLiveState(): LiveState {
  return useContext(LiveContext);
}

export function LiveProvider(props: {
  /** The key is no longer known: it was revoked, or has expired. */
  readonly onUnknown: () => void;
  readonly children: ReactNode;
}) {
  const { client, allowed, tenant } = useEngine();
  const rereads = useRereads();
  const isStreamed = allowed.readAll && tenant !== undefined;
  const stream = useStream(isStreamed ? client : undefined, rereads, props.onUnknown);
  const areReadsAway = useAreReadsAway();
  const state = stream === 'paced' && areReadsAway ? 'lost' : stream;
  return <LiveContext value={state}>{props.children}</LiveContext>;
}

function useRereads() {
  const queries = useQueryClient();
  const rereads = useRef<Rereads>(undefined);
  useEffect(() => {
    const own = new Rereads(queries);
    rereads.current = own;
    return () => own.close();
  }, [queries]);
  return rereads;
}

/** @param client undefined where there are no changes to follow */
function useStream(
  client: Client | undefined,
  rereads: { readonly current: Rereads | undefined },
  onUnknown: () => void,
): LiveState {
  const [state, setState] = useState<LiveState>('connecting');
  const isWatched = useIsWatched();
  /** Whether changes may have been missed. */
  const hasGap = useRef(false);
  useEffect(() => {
    if (client === undefined || !isWatched) return undefined;
    const ending = new AbortController();
    const { signal } = ending;
    let tries = 0;

    function onOpen() {
      tries = 0;
      setState('live');
      rereads.current?.setNews(true);
      if (hasGap.current) rereads.current?.readAll();
      else rereads.current?.readUnanswered();
      hasGap.current = false;
    }
    function onEnd(next: LiveState) {
      hasGap.current = true;
      setState(next);
      rereads.current?.setNews(false);
    }
    async function follow(changes: Client['changes']): Promise<void> {
      while (!signal.aborted) {
        try {
          // It begins with the present each time: all that is on the screen is read again, whatever was missed.
          const onConnection = (isConnected: boolean) => isConnected && onOpen();
          for await (const { instance_id } of changes.follow({ signal, retries: 0, onConnection }))
            rereads.current?.note(instance_id);
        } catch (error) {
          if (signal.aborted) return;
          if (isUnknown(error)) onUnknown();
          onEnd(isAway(error) ? 'lost' : 'paced');
          await sleep(pauseMs(tries, error), signal);
          tries += 1;
        }
      }
    }
    void follow(client.changes);
    return () => {
      ending.abort();
      onEnd('connecting');
    };
  }, [client, isWatched, rereads, onUnknown]);
  return client === undefined ? 'paced' : state;
}

/** Whether nobody answered what was asked last. */
function useAreReadsAway(): boolean {
  const queries = useQueryClient();
  const [areAway, setAreAway] = useState(false);
  useEffect(
    () =>
      queries.getQueryCache().subscribe((event) => {
        if (event.type !== 'updated') return;
        const { action } = event;
        if (action.type === 'success') setAreAway(false);
        if (action.type === 'error' && isAway(action.error)) setAreAway(true);
      }),
    [queries],
  );
  return areAway;
}
