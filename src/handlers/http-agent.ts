/** The connection pool, which opens no socket to a refused address. The only module that imports undici. */

import { Agent, buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import {
  type AddressPolicy,
  BlockedAddressError,
  endpointOf,
  guardedLookup,
  isAllowedHost,
  type Resolver,
} from './address-guard.js';
import { ignoringContinue } from './interim-responses.js';

/** Shorter than a long `timeout_ms`, so that a hanging connect ends as a transport error. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Shorter than the 5 s after which common servers close idle sockets, which would fail the next request. */
const IDLE_SOCKET_MS = 4_000;
/** Caps what a server offers. */
const IDLE_SOCKET_MS_MAX = 30_000;
/** Beyond it an origin without an open connection is refused, retryably; idle ones leave within seconds. */
const ORIGINS_MAX = 2_048;
/** One connector per port, each with its own TLS session cache, which is all that is lost when they are cleared. */
const CONNECTORS_MAX = 64;

export interface EgressProxy {
  /** Absolute, including credentials. */
  readonly url: string;
  /** Hosts that are reached directly, in the syntax of NO_PROXY. */
  readonly except: string;
}

export interface AgentOptions {
  readonly isAllowed: AddressPolicy;
  readonly resolve: Resolver;
  /** Per origin. */
  readonly connectionsMax: number;
  readonly proxy?: EgressProxy | undefined;
}

/** HTTP/1.1, keep-alive, without pipelining. The caller destroys it. */
export function openAgent(options: AgentOptions): Dispatcher {
  const { proxy } = options;
  const agentOptions: Agent.Options = {
    connect: guardedConnector(options),
    connections: options.connectionsMax,
    pipelining: 1,
    maxOrigins: ORIGINS_MAX,
    keepAliveTimeout: IDLE_SOCKET_MS,
    keepAliveMaxTimeout: IDLE_SOCKET_MS_MAX,
    // `Deadline` limits the whole request.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  if (proxy === undefined) return new Agent(agentOptions);
  // A proxy looks up names and connects itself, so only names and literal addresses in URLs can be checked, which
  // `checkUrl` has done. Both proxies are set so that undici reads no environment variables.
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
      connect = acceptingContinue(buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup }));
      connectors.set(port, connect);
    }
    return connect;
  };
  return (target, callback) => {
    const of = endpointOf(target);
    // A literal address is connected to without a lookup, so it is checked here.
    if (isAllowedHost(of, isAllowed)) connectorOf(of.port)(target, callback);
    else queueMicrotask(() => callback(new BlockedAddressError(of.hostname), null));
  };
}

function acceptingContinue(connect: buildConnector.connector): buildConnector.connector {
  return (target, callback) =>
    connect(target, (...[error, socket]) => {
      if (error === null) callback(null, ignoringContinue(socket));
      else callback(error, null);
    });
}
