/**
 * The configuration for Envoy (docs/operate/routing.md): what stands, and beside it two files that Envoy reads again
 * when they are replaced, the clusters and the routes. A tenant is looked up in trees of exact matches; the hash of its
 * bucket is taken by a script, since Envoy has none that a route can ask for. Pure.
 */

import { BUCKET_SCRIPT } from './envoy-script.js';
import {
  ALIKE_BEGINNINGS,
  ALIKE_PATHS,
  addressOf,
  anyCell,
  bucketCells,
  listenAddress,
  type ProxyCell,
  type ProxyFile,
  type ProxySettings,
  REFUSALS,
  refusalBody,
  type Topology,
} from './topology.js';

type Json = Readonly<Record<string, unknown>>;

const TYPES = 'type.googleapis.com';
const typed = (type: string, value: Json): Json => ({ '@type': `${TYPES}/${type}`, ...value });
const clusterOf = (cell: string) => `cell_${cell}`;
const ROUTES = 'routes.json';
const CLUSTERS = 'clusters.json';

/** Set by the script whatever a client sends, and not handed on. */
const TENANT_HEADER = 'x-route-tenant';
const BUCKET_HEADER = 'x-route-bucket';

/** @param topology checked */
export function envoyFiles(topology: Topology, settings: ProxySettings): readonly ProxyFile[] {
  const json = (value: unknown, indent = 0) => `${JSON.stringify(value, undefined, indent)}\n`;
  return [
    { name: 'envoy.json', text: json(bootstrap(settings), 2), isMap: false },
    { name: CLUSTERS, text: json({ resources: topology.cells.map(cluster) }, 2), isMap: true },
    { name: ROUTES, text: json({ resources: [routes(topology, settings)] }), isMap: true },
  ];
}

const watched = (folder: string, file: string): Json => ({
  resource_api_version: 'V3',
  path_config_source: { path: `${folder}/${file}`, watched_directory: { path: folder } },
});

function bootstrap(settings: ProxySettings): Json {
  const { folder } = settings;
  const { host, port } = listenAddress(settings);
  const manager = typed(
    'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    {
      stat_prefix: 'engine',
      use_remote_address: true,
      stream_idle_timeout: '75s',
      request_headers_timeout: '10s',
      rds: { route_config_name: 'engine', config_source: watched(folder, ROUTES) },
      http_filters: [
        {
          name: 'envoy.filters.http.lua',
          typed_config: typed('envoy.extensions.filters.http.lua.v3.Lua', {
            default_source_code: { inline_string: BUCKET_SCRIPT },
          }),
        },
        {
          name: 'envoy.filters.http.router',
          typed_config: typed('envoy.extensions.filters.http.router.v3.Router', {}),
        },
      ],
    },
  );
  return {
    node: { id: 'engine', cluster: 'engine' },
    dynamic_resources: { cds_config: watched(folder, CLUSTERS) },
    static_resources: {
      listeners: [
        {
          name: 'api',
          address: {
            socket_address: { address: host === '' ? '0.0.0.0' : bare(host), port_value: port },
          },
          filter_chains: [
            {
              filters: [
                { name: 'envoy.filters.network.http_connection_manager', typed_config: manager },
              ],
            },
          ],
        },
      ],
    },
  };
}

const bare = (host: string) => host.replace(/^\[|\]$/g, '');

function cluster({ name, engines }: ProxyCell): Json {
  return typed('envoy.config.cluster.v3.Cluster', {
    name: clusterOf(name),
    type: 'STRICT_DNS',
    connect_timeout: '2s',
    // Nobody who is not ready is asked, also when nobody is ready.
    common_lb_config: { healthy_panic_threshold: { value: 0 } },
    health_checks: [
      {
        timeout: '1s',
        interval: '1s',
        unhealthy_threshold: 2,
        healthy_threshold: 1,
        http_health_check: { path: '/health/ready' },
      },
    ],
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': typed(
        'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
        {
          common_http_protocol_options: { idle_timeout: '5s' },
          explicit_http_config: { http_protocol_options: {} },
        },
      ),
    },
    load_assignment: {
      cluster_name: clusterOf(name),
      endpoints: [{ lb_endpoints: engines.map(endpoint) }],
    },
  });
}

function endpoint(engine: string): Json {
  const { host, port } = addressOf(engine, 'an engine');
  return { endpoint: { address: { socket_address: { address: bare(host), port_value: port } } } };
}

// ---------------------------------------------------------------- routes

function routes(topology: Topology, { defaultCell }: ProxySettings): Json {
  const { cells, placements } = topology;
  const toCells = (pairs: Iterable<readonly [string, string]>) =>
    Object.fromEntries([...pairs].map(([key, cell]) => [key, toCell(cell)]));
  const buckets = bucketCells(topology);
  // The path of Envoy has the query in it.
  const wholePaths = { safe_regex: { regex: `(${ALIKE_PATHS.join('|')})(\\?.*)?` } };
  const alike = [wholePaths, ...ALIKE_BEGINNINGS.map((prefix) => ({ prefix }))].map((value) =>
    predicate(':path', value),
  );
  const unnamed = defaultCell === undefined ? refusal('unnamed') : toCell(defaultCell);
  const withoutTenant = exactly('x-cell', toCells(cells.map(({ name }) => [name, name])), {
    matcher: {
      matcher_list: {
        matchers: [
          {
            predicate: predicate('x-cell', { safe_regex: { regex: '.+' } }),
            on_match: refusal('unknown'),
          },
          {
            predicate: {
              or_matcher: { predicate: [...alike, predicate(':method', { exact: 'OPTIONS' })] },
            },
            on_match: toCell(anyCell(topology)),
          },
        ],
      },
      on_no_match: unnamed,
    },
  });
  const unsettled: Json = {
    matcher: {
      matcher_list: {
        matchers: [
          {
            predicate: predicate(BUCKET_HEADER, { safe_regex: { regex: '.+' } }),
            on_match: refusal('nowhere'),
          },
        ],
      },
      on_no_match: withoutTenant,
    },
  };
  const byBucket =
    buckets.length === 0 ? unsettled : exactly(BUCKET_HEADER, toCells(buckets), withoutTenant);
  // A tree has an entry at least.
  const byTenant =
    placements.size === 0 ? byBucket : exactly(TENANT_HEADER, toCells(placements), byBucket);
  return typed('envoy.config.route.v3.RouteConfiguration', {
    name: 'engine',
    request_headers_to_remove: [TENANT_HEADER, BUCKET_HEADER],
    virtual_hosts: [
      {
        name: 'engine',
        domains: ['*'],
        // Of what was not sent alone.
        retry_policy: {
          retry_on: 'connect-failure,refused-stream',
          num_retries: 3,
          retry_host_predicate: [
            {
              name: 'envoy.retry_host_predicates.previous_hosts',
              typed_config: typed(
                'envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate',
                {},
              ),
            },
          ],
          host_selection_retry_max_attempts: 3,
        },
        ...byTenant,
      },
    ],
  });
}

const input = (header: string): Json => ({
  name: header,
  typed_config: typed('envoy.type.matcher.v3.HttpRequestHeaderMatchInput', { header_name: header }),
});

/** A look-up in a table, whatever its size. */
const exactly = (header: string, map: Json, otherwise: Json): Json => ({
  matcher: {
    matcher_tree: { input: input(header), exact_match_map: { map } },
    on_no_match: otherwise,
  },
});

const predicate = (header: string, value: Json): Json => ({
  single_predicate: { input: input(header), value_match: value },
});

const route = (action: Json): Json => ({
  action: {
    name: 'route',
    typed_config: typed('envoy.config.route.v3.Route', { match: { prefix: '/' }, ...action }),
  },
});

/** Long polls and streams are bounded by the time in which nothing comes, not by a whole time. */
const toCell = (cell: string) => route({ route: { cluster: clusterOf(cell), timeout: '0s' } });

function refusal(which: keyof typeof REFUSALS): Json {
  const headers = [['content-type', 'application/json']];
  if (REFUSALS[which].status === 503) headers.push(['retry-after', '1']);
  return route({
    response_headers_to_add: headers.map(([key, value]) => ({
      header: { key, value },
      append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
    })),
    direct_response: {
      status: REFUSALS[which].status,
      body: { inline_string: refusalBody(which) },
    },
  });
}
