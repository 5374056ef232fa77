/** The HTTP server of the engine, and its limits of connections and requests. */

import type { ShardClient } from '../../actors/shard/client.js';
import { PATH_RULES } from '../../schema/route-match.js';
import { LIMITS } from '../base/limits.js';
import {
  AddressRequests,
  Connections,
  connectionBounds,
  descriptorLimit,
  TrustedProxies,
} from '../http/connections.js';
import { newRequestId } from '../http/request-head.js';
import {
  type HttpHandler,
  type HttpServer,
  type HttpServerOptions,
  startHttpServer,
} from '../http/server.js';
import type { Startup } from './startup.js';

type Bounds = Required<Pick<HttpServerOptions, 'connections' | 'requests' | 'refuseBody'>>;

export function boundsOf({ config, log }: Startup, client: Pick<ShardClient, 'refusalOf'>): Bounds {
  const { maxConnections: max, maxConnectionsPerAddress: perAddressMax } = config;
  const descriptors = descriptorLimit();
  const bounds = connectionBounds({ max, perAddressMax }, descriptors);
  if (bounds.max < max) {
    log.warn(
      { max: bounds.max, wanted: max, descriptors },
      'the limit of open files is low: fewer connections are taken than ENGINE_MAX_CONNECTIONS',
    );
  }
  return {
    connections: new Connections(bounds, log),
    requests: new AddressRequests(config.maxRequestsPerAddress),
    refuseBody: (bytes) => client.refusalOf(bytes),
  };
}

export async function listen(
  { config, log, parts, signal }: Startup,
  bounds: Bounds,
  handler: HttpHandler,
): Promise<HttpServer> {
  const { host, port, maxBodyBytes, corsOrigins } = config;
  const options = {
    host,
    port,
    maxBodyBytes,
    ...PATH_RULES,
    ...bounds,
    maxHeaderBytes: LIMITS.headerBytesMax,
    proxies: new TrustedProxies(config.trustedProxies),
    corsOrigins,
    newRequestId,
    bodyIdleTimeoutMs: LIMITS.bodyIdleTimeoutMs,
    log,
  };
  const server = await startHttpServer(config.httpBackend, options, handler);
  parts.push({ name: 'HTTP', stop: () => server.close() });
  signal.throwIfAborted();
  log.info({ host, port: server.port }, 'listening');
  return server;
}
