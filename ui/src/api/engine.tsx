/** Provides the client of the engine that served this page, and the caller's rights. */

import { useQuery } from '@tanstack/react-query';
import type { Client, Info, WhoAmI } from 'durable-workflow-engine-client';
import { createContext, type ReactNode, useContext } from 'react';
import { maySee } from './access.ts';
import { type Allowed, allowedOf, mayAnswer } from './allowed.ts';

/** The engine's base URL: the page is at `ui/` below it, behind any prefix. */
export const ENGINE_URL = new URL('..', document.baseURI).href.replace(/\/$/, '');

export interface Engine {
  readonly client: Client;
  readonly who: WhoAmI;
  /** Undefined: all tenants. */
  readonly tenant: string | undefined;
  readonly allowed: Allowed;
  /** Whether the caller may answer an approval of these approvers. */
  readonly mayAnswer: (approvers: readonly string[]) => boolean;
}

const EngineContext = createContext<Engine | undefined>(undefined);

export function EngineProvider(props: {
  client: Client;
  who: WhoAmI;
  tenant: string | undefined;
  children: ReactNode;
}) {
  const { client, who, tenant, children } = props;
  const engine = {
    ...{ client, who, tenant },
    allowed: allowedOf(who),
    mayAnswer: (approvers: readonly string[]) => mayAnswer(who, approvers),
  };
  return <EngineContext value={engine}>{children}</EngineContext>;
}

/** @throws Error outside the provider */
export function useEngine(): Engine {
  const engine = useContext(EngineContext);
  if (engine === undefined) throw new Error('nobody has signed in');
  return engine;
}

/** What the server says about itself; undefined until then. */
export function useInfo(): Info | undefined {
  const { client } = useEngine();
  const { data } = useQuery({
    queryKey: ['info'],
    queryFn: ({ signal }) => client.info({ signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return data;
}

/** How often the engine is asked whether it is ready. */
const READY_EVERY_MS = 10_000;

export function useReady() {
  const { client } = useEngine();
  return useQuery({
    queryKey: ['health.ready'],
    queryFn: ({ signal }) => client.health.ready({ signal, retries: 0 }),
    retry: false,
    refetchInterval: READY_EVERY_MS,
  });
}

/** Whether the caller may open the page with this address, relative to `/ui`. */
export function useMaySee(): (href: string) => boolean {
  const { allowed } = useEngine();
  return (href) => maySee(href, allowed);
}
