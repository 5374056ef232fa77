/** Provides the client of the engine that served this page, and the caller's rights. */

import type { Client, WhoAmI } from 'durable-workflow-engine-client';
import { createContext, type ReactNode, useContext } from 'react';
import { maySee } from './access.ts';
import { type Allowed, allowedOf } from './allowed.ts';

/** The engine's base URL: the page is at `ui/` below it, behind any prefix. */
export const ENGINE_URL = new URL('..', document.baseURI).href.replace(/\/$/, '');

export interface Engine {
  readonly client: Client;
  readonly who: WhoAmI;
  /** Undefined: all tenants. */
  readonly tenant: string | undefined;
  readonly allowed: Allowed;
}

const EngineContext = createContext<Engine | undefined>(undefined);

export function EngineProvider(props: {
  client: Client;
  who: WhoAmI;
  tenant: string | undefined;
  children: ReactNode;
}) {
  const { client, who, tenant, children } = props;
  return (
    <EngineContext value={{ client, who, tenant, allowed: allowedOf(who) }}>
      {children}
    </EngineContext>
  );
}

/** @throws Error outside the provider */
export function useEngine(): Engine {
  const engine = useContext(EngineContext);
  if (engine === undefined) throw new Error('nobody has signed in');
  return engine;
}

/** Whether the caller may open the page with this address, relative to `/ui`. */
export function useMaySee(): (href: string) => boolean {
  const { allowed } = useEngine();
  return (href) => maySee(href, allowed);
}
