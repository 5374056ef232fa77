/**
 * The user's key and tenant, kept in this tab only and until it is closed. Open tabs hand a sign-in on to one that has
 * none, and sign out together; nothing else outlives the tab.
 */

import { useSyncExternalStore } from 'react';

export interface Session {
  /** Undefined if the engine requires no key. */
  readonly apiKey?: string;
  /** Of a page whose address names no tenant. Undefined until one is chosen; null means all tenants. */
  readonly tenant?: string | null;
  /** While another tenant is being chosen: the one that was open. */
  readonly left?: string;
}

type Message =
  | { readonly kind: 'asks' | 'signed-out' }
  | { readonly kind: 'signed-in'; readonly session: Session };

const STORED_AS = 'session';

const listeners = new Set<() => void>();
let current = read();
/** There is no key, or it was refused. */
let isWanted = false;
/** Not taken over again. */
let declined: string | undefined;

// Named by the engine, since a proxy may serve several under one origin.
const channel =
  'BroadcastChannel' in globalThis
    ? new BroadcastChannel(`session ${document.baseURI}`)
    : undefined;
channel?.addEventListener('message', ({ origin, data }: MessageEvent<Message>) => {
  if (origin !== location.origin) return;
  if (data.kind === 'signed-out') forgetHere();
  else if (data.kind === 'signed-in') takeOver(data.session);
  else if (!isWanted && current.apiKey !== undefined) tell({ kind: 'signed-in', session: current });
});

function read(): Session {
  try {
    return JSON.parse(sessionStorage.getItem(STORED_AS) ?? '{}') as Session;
  } catch {
    return {};
  }
}

function tell(message: Message): void {
  channel?.postMessage(message);
}

function takeOver(session: Session): void {
  const { apiKey } = session;
  if (isWanted && apiKey !== current.apiKey && apiKey !== declined) setSession(session);
}

/** Takes over the sign-in of another tab, now or later, until the returned function is called. */
export function wantSession(): () => void {
  isWanted = true;
  tell({ kind: 'asks' });
  return () => {
    isWanted = false;
  };
}

/** Asks for another key than the present one. */
export function declineKey(): void {
  declined = current.apiKey;
  setSession({});
}

/** Signs in here, and in the tabs that wait for it. */
export function signIn(session: Session): void {
  setSession(session);
  tell({ kind: 'signed-in', session });
}

export function setSession(session: Session): void {
  current = session;
  sessionStorage.setItem(STORED_AS, JSON.stringify(session));
  for (const listener of listeners) listener();
}

/** Asks for the tenant again. */
export function forgetTenant(): void {
  const { apiKey, tenant } = current;
  setSession({ ...(apiKey !== undefined && { apiKey }), ...(tenant != null && { left: tenant }) });
}

/** Clears everything that the tabs have stored, drafts included. */
export function forget(): void {
  forgetHere();
  tell({ kind: 'signed-out' });
}

function forgetHere(): void {
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
