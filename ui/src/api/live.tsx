/**
 * Keeps what is on the screen current: one stream of changes for the whole page, whose news make the queries read
 * again that show what changed. However many changes come, each query reads at most once in its pace.
 */

import { type Query, type QueryClient, useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react';
import { Changes } from './changes.ts';
import { isFinal, useEngine } from './engine.tsx';

/** `paced`: changes are for who may read all; others look again every few seconds. */
export type LiveState = 'connecting' | 'live' | 'lost' | 'paced';

/** What a query may say of itself in its `meta`. */
export interface LiveMeta extends Record<string, unknown> {
  /** Read again after changes of this instance only, or of any (`'all'`). */
  readonly live?: 'all' | string;
  /** How long it rests at least between two reads, in milliseconds: longer for what costs the engine more. */
  readonly paceMs?: number;
}

declare module '@tanstack/react-query' {
  interface Register {
    queryMeta: LiveMeta;
  }
}

const PACE_MS = 1000;
/** Without news of changes. */
const PACE_WITHOUT_NEWS_MS = 5000;

const LiveContext = createContext<LiveState>('connecting');

export function useLiveState(): LiveState {
  return useContext(LiveContext);
}

export function LiveProvider({ children }: { children: ReactNode }) {
  const { client, allowed } = useEngine();
  const queries = useQueryClient();
  const [state, setState] = useState<LiveState>('connecting');
  const { readAll } = allowed;

  useEffect(() => {
    if (!readAll) return lookAgain(queries);
    const ending = new AbortController();
    const changes = new Changes();
    let timer: ReturnType<typeof setTimeout> | undefined;

    async function refresh() {
      timer = undefined;
      // A page that nobody looks at reads when it is looked at again.
      if (document.hidden) return;
      const now = Date.now();
      const behind = queries
        .getQueryCache()
        .findAll({ type: 'active' })
        .filter(({ meta, state: read }) => changes.isBehind(meta?.live, read.dataUpdatedAt));
      const due = new Set<Query>(
        behind.filter(({ meta, state: read }) => {
          return now - read.dataUpdatedAt >= (meta?.paceMs ?? PACE_MS);
        }),
      );
      await queries.invalidateQueries({ predicate: (query) => due.has(query) });
      if (behind.length > 0) plan();
    }
    function plan() {
      if (!ending.signal.aborted) timer ??= setTimeout(() => void refresh(), PACE_MS);
    }

    async function follow() {
      try {
        const { signal } = ending;
        const onConnection = (isConnected: boolean) => {
          setState(isConnected ? 'live' : 'lost');
          if (isConnected) void queries.invalidateQueries({ predicate: isUnanswered });
        };
        for await (const change of client.changes.follow({ signal, onConnection })) {
          changes.note(change.instance_id, Date.now());
          plan();
        }
      } catch {
        if (!ending.signal.aborted) setState('lost');
      }
    }
    document.addEventListener('visibilitychange', plan);
    void follow();
    return () => {
      document.removeEventListener('visibilitychange', plan);
      clearTimeout(timer);
      ending.abort();
    };
  }, [client, queries, readAll]);

  return <LiveContext value={readAll ? state : 'paced'}>{children}</LiveContext>;
}

/** It may be answered now. */
const isUnanswered = ({ state }: Query) => state.status === 'error' && !isFinal(state.error);

const isLiveOrUnanswered = (query: Query) => query.meta?.live !== undefined || isUnanswered(query);

function lookAgain(queries: QueryClient): () => void {
  const timer = setInterval(() => {
    if (document.hidden) return;
    void queries.invalidateQueries({ predicate: isLiveOrUnanswered });
  }, PACE_WITHOUT_NEWS_MS);
  return () => clearInterval(timer);
}
