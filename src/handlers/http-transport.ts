/**
 * What the requests of one thread share: the guarded connection pool and the bounds on it. It is
 * opened once by the thread that owns it, and closed when that thread stops.
 */

import { Agent, type buildConnector, type Dispatcher } from 'undici';
import {
  type AddressPolicy,
  guardedConnector,
  type Resolver,
  systemResolver,
} from './address-guard.js';
import { type SetTimer, systemTimer } from './deadline.js';
import { OriginSlots } from './origin-slots.js';

/** A connect that hangs is given up before a long `timeout_ms`, so that it ends as a transport error. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Idle sockets are closed before common servers close them at 5 s, which would fail the next request. */
const IDLE_SOCKET_MS = 4_000;
/** However long a server offers to keep an idle socket open. */
const IDLE_SOCKET_MS_MAX = 30_000;
/** Beyond it an origin without an open connection is refused, retryably; idle ones leave within seconds. */
const ORIGINS_MAX = 2_048;
/**
 * A quarter for one origin leaves room for the others while it is slow. Who waits is a step with no
 * socket yet, about a kilobyte; past the bound its step fails retryably.
 */
const SLOT_LIMITS = { activeMax: 128, activePerOriginMax: 32, waitingMax: 10_000 } as const;
/**
 * Of those with a slot, so many may keep a large answer at a time, 160 MB in all; a garbage collected
 * heap takes three times that. The others are not read on meanwhile.
 */
const LARGE_LIMITS = {
  activeMax: 16,
  activePerOriginMax: 8,
  waitingMax: SLOT_LIMITS.activeMax,
} as const;

export interface HttpRequestDeps {
  readonly isAllowed: AddressPolicy;
  readonly dispatcher: Dispatcher;
  readonly slots: OriginSlots;
  /** Who may keep a large answer. */
  readonly large: OriginSlots;
  readonly setTimer: SetTimer;
  /**
   * Aborts what is in flight and refuses what waits or comes later, each with a retryable outcome.
   * Resolves when the sockets are closed. Further calls do nothing more.
   */
  close(): Promise<void>;
}

export interface HttpOptions {
  /** From `addressPolicy`, which reads the switch `ENGINE_ALLOW_INTERNAL_URLS`. */
  readonly isAllowed: AddressPolicy;
  readonly resolve?: Resolver;
  readonly createDispatcher?: (connect: buildConnector.connector) => Dispatcher;
  readonly setTimer?: SetTimer;
}

/** Opens the connection pool that the requests of one thread share. The caller closes it. */
export function openHttp(options: HttpOptions): HttpRequestDeps {
  const { isAllowed, setTimer = systemTimer } = options;
  const connect = guardedConnector({
    resolve: options.resolve ?? systemResolver,
    isAllowed,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
  });
  const dispatcher = (options.createDispatcher ?? pooledAgent)(connect);
  const slots = new OriginSlots(SLOT_LIMITS);
  const large = new OriginSlots(LARGE_LIMITS);
  const close = async () => {
    slots.close();
    large.close();
    await dispatcher.destroy();
  };
  return { isAllowed, dispatcher, slots, large, setTimer, close };
}

/** The default dispatcher: HTTP/1.1, kept alive, without pipelining. */
function pooledAgent(connect: buildConnector.connector): Dispatcher {
  return new Agent({
    connect,
    // Redirects may lead many slots of other origins to one, so the bound here is that of all slots:
    // a request never waits inside the agent, where its deadline would already run.
    connections: SLOT_LIMITS.activeMax,
    pipelining: 1,
    maxOrigins: ORIGINS_MAX,
    keepAliveTimeout: IDLE_SOCKET_MS,
    keepAliveMaxTimeout: IDLE_SOCKET_MS_MAX,
    // The deadline of the whole request is ours; a second clock could only contradict it.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}
