/**
 * The connection pool itself: an agent that opens no socket to an address that the policy refuses.
 * The only module that loads undici, and itself loaded with the first request (`http-transport.ts`).
 */

import { Agent, buildConnector, type Dispatcher } from 'undici';
import {
  type AddressPolicy,
  BlockedAddressError,
  guardedLookup,
  isAllowedHost,
  type Resolver,
} from './address-guard.js';

/** A connect that hangs is given up before a long `timeout_ms`, so that it ends as a transport error. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Idle sockets are closed before common servers close them at 5 s, which would fail the next request. */
const IDLE_SOCKET_MS = 4_000;
/** However long a server offers to keep an idle socket open. */
const IDLE_SOCKET_MS_MAX = 30_000;
/** Beyond it an origin without an open connection is refused, retryably; idle ones leave within seconds. */
const ORIGINS_MAX = 2_048;

export interface AgentOptions {
  readonly isAllowed: AddressPolicy;
  readonly resolve: Resolver;
  /** To one origin. */
  readonly connectionsMax: number;
}

/** HTTP/1.1, kept alive, without pipelining. The caller destroys it. */
export function openAgent(options: AgentOptions): Dispatcher {
  return new Agent({
    connect: guardedConnector(options),
    connections: options.connectionsMax,
    pipelining: 1,
    maxOrigins: ORIGINS_MAX,
    keepAliveTimeout: IDLE_SOCKET_MS,
    keepAliveMaxTimeout: IDLE_SOCKET_MS_MAX,
    // The deadline of the whole request is ours; a second clock could only contradict it.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

function guardedConnector({ isAllowed, resolve }: AgentOptions): buildConnector.connector {
  const connect = buildConnector({
    timeout: CONNECT_TIMEOUT_MS,
    lookup: guardedLookup(resolve, isAllowed),
  });
  return (target, callback) => {
    // A literal address is connected to without a lookup, so it has to be judged here.
    if (!isAllowedHost(target.hostname, isAllowed)) {
      queueMicrotask(() => callback(new BlockedAddressError(target.hostname), null));
      return;
    }
    connect(target, callback);
  };
}
