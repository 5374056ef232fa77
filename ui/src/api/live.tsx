/**
 * Keeps the page current: one stream of changes for the whole page triggers rereads of the queries that show a changed
 * instance. Without a stream, all queries are polled every few seconds.
 */

import { useQueryClient } from '@tanstack/react-query';
import { EngineError } from 'durable-workflow-engine-client';
import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from 'react';
import { holdClock } from '../lib/now.ts';
import { ENGINE_URL, useEngine } from './engine.tsx';
import { isUnavailable } from './engine-error.ts';
import { Rereads } from './rereads.ts';
import { useSession } from './session.ts';
import { followShared, groupOf, type StreamState } from './shared-changes.ts';
import { useIsWatched } from './watched.ts';

/**
 * `paced`: there is no stream and the page polls. The stream needs the right to read all data of one tenant, and the
 * engine limits how many streams are open.
 */
export type LiveState = 'connecting' | 'live' | 'lost' | 'paced';

const LiveContext = createContext<LiveState>('connecting');
const NoteContext = createContext<(instanceId: string) => void>(() => undefined);

export function useLiveState(): LiveState {
  return useContext(LiveContext);
}

/** For components that learn of a change without the change feed: rereads whatever shows this instance. */
export function useNote(): (instanceId: string) => void {
  return useContext(NoteContext);
}

export function LiveProvider(props: {
  /** Called when the key is no longer valid: it was revoked or has expired. */
  readonly onUnknown: () => void;
  readonly children: ReactNode;
}) {
  const { allowed, tenant } = useEngine();
  const rereads = useRereads();
  const isStreamed = allowed.readAll && tenant !== undefined;
  const stream = useStream(isStreamed, rereads, props.onUnknown);
  const reads = useReads();
  // An engine that answers 503 may still serve the stream; one that cannot be reached does not.
  const isLost = stream === 'paced' ? reads.areUnavailable : stream === 'live' && reads.areLost;
  const state = isLost ? 'lost' : stream;
  const { answeredAt } = reads;
  useEffect(
    () => holdClock(state === 'lost' ? answeredAt.current : undefined),
    [state, answeredAt],
  );
  const [note] = useState(() => (instanceId: string) => rereads.current?.note(instanceId));
  return (
    <LiveContext value={state}>
      <NoteContext value={note}>{props.children}</NoteContext>
    </LiveContext>
  );
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

/** @param isStreamed whether this caller may follow changes */
function useStream(
  isStreamed: boolean,
  rereads: { readonly current: Rereads | undefined },
  onUnknown: () => void,
): LiveState {
  const { client, tenant } = useEngine();
  const { apiKey } = useSession();
  const [state, setState] = useState<LiveState>('connecting');
  const isWatched = useIsWatched();
  /** Whether changes may have been missed. */
  const hasGap = useRef(false);
  useEffect(() => {
    if (!isStreamed || !isWatched) return undefined;
    const ending = new AbortController();
    const { signal } = ending;
    function onState(next: StreamState) {
      setState(next === 'refused' ? 'paced' : next);
      rereads.current?.setNews(next === 'live');
      if (next === 'live') {
        if (hasGap.current) rereads.current?.readAll();
        else rereads.current?.readUnanswered();
      }
      hasGap.current = next !== 'live';
    }
    const onChanges = (ids: readonly string[]) => {
      for (const id of ids) rereads.current?.note(id);
    };
    void groupOf(ENGINE_URL, tenant, apiKey).then((group) => {
      if (signal.aborted) return;
      followShared(client.changes, group, { onState, onChanges, onUnknown }, signal);
    });
    return () => {
      ending.abort();
      onState('connecting');
    };
  }, [client, tenant, apiKey, isStreamed, isWatched, rereads, onUnknown]);
  return isStreamed ? state : 'paced';
}

/** How the most recent reads failed, if they did, and when the engine last answered. */
function useReads() {
  const queries = useQueryClient();
  const [failed, setFailed] = useState<'unavailable' | 'lost'>();
  const answeredAt = useRef(Date.now());
  useEffect(
    () =>
      queries.getQueryCache().subscribe((event) => {
        if (event.type !== 'updated') return;
        const { action } = event;
        if (action.type === 'success') {
          answeredAt.current = Date.now();
          setFailed(undefined);
        }
        if (action.type === 'error' && isUnavailable(action.error)) setFailed(howOf(action.error));
      }),
    [queries],
  );
  return { areUnavailable: failed !== undefined, areLost: failed === 'lost', answeredAt };
}

const howOf = (error: unknown) =>
  error instanceof EngineError && error.status === 0 ? 'lost' : 'unavailable';
