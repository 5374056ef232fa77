/**
 * The user's key and tenant, kept in this tab only and until it is closed. Other tabs and later visits sign in again.
 */

import { useSyncExternalStore } from 'react';

export interface Session {
  /** Undefined if the engine requires no key. */
  readonly apiKey?: string;
  /** Undefined until one is chosen; null means all tenants. */
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

/** Links may name a tenant: `/ui/?tenant=acme`. The parameter is removed from the address. */
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

/** Clears everything the tab has stored, drafts included. */
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
