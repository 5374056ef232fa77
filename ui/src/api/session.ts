/**
 * Who looks at the dashboard: a key and a tenant, kept for as long as the tab is open and nowhere else. Other tabs
 * and later visits are asked again.
 */

import { useSyncExternalStore } from 'react';

export interface Session {
  /** Undefined where the engine asks for none. */
  readonly apiKey?: string;
  /** Undefined until one is chosen; null: all of them. */
  readonly tenant?: string | null;
}

const STORED_AS = 'session';

const listeners = new Set<() => void>();
let current = read();
takeTenantOfLink();

function read(): Session {
  try {
    return JSON.parse(sessionStorage.getItem(STORED_AS) ?? '{}') as Session;
  } catch {
    return {};
  }
}

/** Links may say which tenant they are about: `/ui/?tenant=acme`. It is taken out of the address. */
function takeTenantOfLink(): void {
  const address = new URL(location.href);
  const tenant = address.searchParams.get('tenant');
  if (!tenant) return;
  address.searchParams.delete('tenant');
  history.replaceState(history.state, '', address);
  setSession({ ...current, tenant });
}

export function setSession(session: Session): void {
  current = session;
  sessionStorage.setItem(STORED_AS, JSON.stringify(session));
  for (const listener of listeners) listener();
}

/** Nothing of what was done here is left in the tab, such as drafts. */
export function forget(): void {
  sessionStorage.clear();
  setSession({});
}

export function useSession(): Session {
  return useSyncExternalStore(subscribe, () => current);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
