/**
 * What the requests of one thread share: the guarded connection pool and the bounds on it. It is
 * opened once by the thread that owns it, and closed when that thread stops.
 */

import type { Dispatcher } from 'undici';
import { FairSlots } from '../base/quota/fair-slots.js';
import { type AddressPolicy, type Resolver, systemResolver } from './address-guard.js';
import type { CallRate } from './call-rate.js';
import { type SetTimer, systemTimer } from './deadline.js';
import type { AgentOptions, EgressProxy } from './http-agent.js';

/**
 * Of all, of a tenant and of one of its origins. A tenant leaves a quarter to the others, and a slow origin
 * leaves room for the other ones of its tenant. Who waits is a step with no socket yet, about a kilobyte;
 * past the bound its step fails retryably.
 */
const SLOT_LIMITS = [
  { activeMax: 128, waitingMax: 10_000 },
  { activeMax: 96, waitingMax: 7_500 },
  { activeMax: 32 },
] as const;
/** Requests that may take longer than a minute have slots of their own: short ones never wait for them. */
const LONG_SLOT_LIMITS = [
  { activeMax: 64, waitingMax: 10_000 },
  { activeMax: 48, waitingMax: 7_500 },
  { activeMax: 32 },
] as const;
/**
 * Redirects may lead many slots of other origins to one, so the bound of an origin is that of all
 * slots: a request never waits inside the agent, where its deadline would already run.
 */
const CONNECTIONS_MAX = SLOT_LIMITS[0].activeMax + LONG_SLOT_LIMITS[0].activeMax;
/**
 * Of those with a slot, so many may keep a large answer at a time, 160 MB in all; a garbage collected
 * heap takes three times that. The others are not read on meanwhile.
 */
const LARGE_LIMITS = [
  { activeMax: 16, waitingMax: CONNECTIONS_MAX },
  { activeMax: 12 },
  { activeMax: 8 },
] as const;

export interface HttpRequestDeps {
  readonly isAllowed: AddressPolicy;
  /**
   * The connection pool, opened for the first request; undefined when that would be after `close`.
   * Opening takes some 80 ms of the thread: no deadline of a request may run meanwhile.
   */
  readonly dispatcher: () => Promise<Dispatcher | undefined>;
  /** Of each tenant over all threads; undefined: as many calls a second as the slots let through. */
  readonly rate: CallRate | undefined;
  readonly slots: FairSlots;
  /** Of requests that may take longer than a minute. */
  readonly longSlots: FairSlots;
  /** Who may keep a large answer. */
  readonly large: FairSlots;
  readonly setTimer: SetTimer;
  /**
   * Aborts what is in flight and refuses what waits or comes later, each with a retryable outcome.
   * Resolves when the sockets are closed. Further calls do nothing more.
   */
  close(): Promise<void>;
}

export interface HttpOptions {
  /** From `outboundPolicy`. */
  readonly isAllowed: AddressPolicy;
  /** Absent: connections are made directly. */
  readonly proxy?: EgressProxy | undefined;
  readonly rate?: CallRate | undefined;
  readonly resolve?: Resolver;
  readonly setTimer?: SetTimer;
}

/** What the requests of one thread share. The caller closes it. */
export function openHttp(options: HttpOptions): HttpRequestDeps {
  const { isAllowed, resolve = systemResolver, setTimer = systemTimer, proxy, rate } = options;
  const slots = new FairSlots(SLOT_LIMITS);
  const longSlots = new FairSlots(LONG_SLOT_LIMITS);
  const large = new FairSlots(LARGE_LIMITS);
  let opened: Promise<Dispatcher> | undefined;
  let isClosed = false;
  const dispatcher = async () => {
    const agent = { isAllowed, resolve, connectionsMax: CONNECTIONS_MAX, proxy };
    if (!isClosed) opened ??= loadAgent(agent);
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

/** Undici would be a part of every shard's start, and most shards never ask for it. */
async function loadAgent(options: AgentOptions): Promise<Dispatcher> {
  const { openAgent } = await import('./http-agent.js');
  return openAgent(options);
}
