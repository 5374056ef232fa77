/** The guarded connection pool of one thread and its limits. The thread opens it once, and closes it when it stops. */

import type { Dispatcher } from 'undici';
import { FairSlots } from '../base/quota/fair-slots.js';
import { type AddressPolicy, type Resolver, systemResolver } from './address-guard.js';
import type { CallRate } from './call-rate.js';
import type { EgressProxy } from './http-agent.js';
import { type SetTimer, systemTimer } from './http-hops.js';

/**
 * In total, per tenant, and per origin of a tenant: a slow origin leaves room for others. A waiting step has no socket
 * and takes about a kilobyte; beyond the limit it fails retryably.
 */
const SLOT_LIMITS = [
  { activeMax: 128, waitingMax: 10_000 },
  { activeMax: 96, waitingMax: 7_500 },
  { activeMax: 32 },
] as const;
/** Requests that may take longer than a minute have their own slots, so that short ones never wait for them. */
const LONG_SLOT_LIMITS = [
  { activeMax: 64, waitingMax: 10_000 },
  { activeMax: 48, waitingMax: 7_500 },
  { activeMax: 32 },
] as const;
/** Deliveries of tasks to worker endpoints; those of a tenant wait for its others. */
export const PUSH_SLOT_LIMITS = [{ activeMax: 512 }, { activeMax: 384 }] as const;
/** Redirects may lead all slots to one origin: a request must never wait inside the agent, where its deadline runs. */
const CONNECTIONS_MAX =
  SLOT_LIMITS[0].activeMax + LONG_SLOT_LIMITS[0].activeMax + PUSH_SLOT_LIMITS[0].activeMax;
/** Requests that may keep a large response at a time: 160 MB, three times that with garbage. Others pause. */
const LARGE_LIMITS = [
  { activeMax: 16, waitingMax: CONNECTIONS_MAX },
  { activeMax: 12 },
  { activeMax: 8 },
] as const;

export interface HttpRequestDeps {
  readonly isAllowed: AddressPolicy;
  /** Opened for the first request, which takes 80 ms outside of any deadline; undefined after `close`. */
  readonly dispatcher: () => Promise<Dispatcher | undefined>;
  /** The rate limit of tenants over all threads; undefined: only the slots limit calls. */
  readonly rate: CallRate | undefined;
  readonly slots: FairSlots;
  readonly longSlots: FairSlots;
  readonly large: FairSlots;
  readonly setTimer: SetTimer;
  /** Aborts running requests and refuses others, retryably. Resolves when the sockets are closed. Idempotent. */
  close(): Promise<void>;
}

export interface HttpOptions
  extends Pick<HttpRequestDeps, 'isAllowed'>,
    Partial<Pick<HttpRequestDeps, 'rate' | 'setTimer'>> {
  /** Absent: connections are direct. */
  readonly proxy?: EgressProxy | undefined;
  readonly resolve?: Resolver;
}

export function openHttp(options: HttpOptions): HttpRequestDeps {
  const { isAllowed, resolve = systemResolver, setTimer = systemTimer, proxy, rate } = options;
  const slots = new FairSlots(SLOT_LIMITS);
  const longSlots = new FairSlots(LONG_SLOT_LIMITS);
  const large = new FairSlots(LARGE_LIMITS);
  let opened: Promise<Dispatcher> | undefined;
  let isClosed = false;
  const dispatcher = async () => {
    const agent = { isAllowed, resolve, connectionsMax: CONNECTIONS_MAX, proxy };
    // Loaded on demand: most shards never send a request.
    const load = () => import('./http-agent.js').then(({ openAgent }) => openAgent(agent));
    if (!isClosed) opened ??= load();
    return opened;
  };
  const close = async () => {
    isClosed = true;
    rate?.close();
    slots.close();
    longSlots.close();
    large.close();
    await (await opened)?.destroy();
  };
  return { isAllowed, dispatcher, rate, slots, longSlots, large, setTimer, close };
}
