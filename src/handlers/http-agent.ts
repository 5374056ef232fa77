/**
 * The connection pool itself: an agent that opens no socket to an address that the policy refuses.
 * The only module that loads undici, and itself loaded with the first request (`http-transport.ts`).
 */

import { Agent, buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import {
  type AddressPolicy,
  BlockedAddressError,
  endpointOf,
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
/** Of ports; each keeps TLS sessions of its own. Workflows name few ports, and nothing but sessions is lost. */
const CONNECTORS_MAX = 64;

/** `ENGINE_HTTP_PROXY`. */
export interface EgressProxy {
  /** Absolute, with the name and password that it asks for, if any. */
  readonly url: string;
  /** Hosts that are reached without it, as NO_PROXY spells them. */
  readonly except: string;
}

export interface AgentOptions {
  readonly isAllowed: AddressPolicy;
  readonly resolve: Resolver;
  /** To one origin. */
  readonly connectionsMax: number;
  readonly proxy?: EgressProxy | undefined;
}

/** HTTP/1.1, kept alive, without pipelining. The caller destroys it. */
export function openAgent(options: AgentOptions): Dispatcher {
  const { proxy } = options;
  const agentOptions: Agent.Options = {
    connect: guardedConnector(options),
    connections: options.connectionsMax,
    pipelining: 1,
    maxOrigins: ORIGINS_MAX,
    keepAliveTimeout: IDLE_SOCKET_MS,
    keepAliveMaxTimeout: IDLE_SOCKET_MS_MAX,
    // The deadline of the whole request is ours; a second clock could only contradict it.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  if (proxy === undefined) return new Agent(agentOptions);
  // Behind a proxy it is the proxy that looks names up and connects: what is left to judge are the names
  // and literal addresses of the URLs, which `checkUrl` has done. Both variables of the environment that
  // undici would read are given here.
  return new EnvHttpProxyAgent({
    ...agentOptions,
    httpProxy: proxy.url,
    httpsProxy: proxy.url,
    noProxy: proxy.except,
    proxyTls: { timeout: CONNECT_TIMEOUT_MS },
    clientFactory: (origin, poolOptions) =>
      new Pool(origin, { ...poolOptions, headersTimeout: CONNECT_TIMEOUT_MS }),
  });
}

function guardedConnector({ isAllowed, resolve }: AgentOptions): buildConnector.connector {
  const connectors = new Map<number | undefined, buildConnector.connector>();
  const connectorOf = (port: number | undefined) => {
    let connect = connectors.get(port);
    if (connect === undefined) {
      if (connectors.size >= CONNECTORS_MAX) connectors.clear();
      const lookup = guardedLookup(resolve, isAllowed, port);
      connect = buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup });
      connectors.set(port, connect);
    }
    return connect;
  };
  return (target, callback) => {
    const of = endpointOf(target);
    // A literal address is connected to without a lookup, so it has to be judged here.
    if (!isAllowedHost(of, isAllowed)) {
      queueMicrotask(() => callback(new BlockedAddressError(of.hostname), null));
      return;
    }
    connectorOf(of.port)(target, callback);
  };
}
