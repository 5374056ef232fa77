/**
 * The configuration and the maps for nginx (docs/operate/routing.md). nginx cannot take the hash of a bucket: who is in no
 * map is asked for at any cell, and its 421 is followed once, with the body that was kept. Nor does the free nginx ask
 * who is ready: the first engine of a cell is asked, and the others only when it does not answer. Pure.
 */

import {
  ALIKE_BEGINNINGS,
  ALIKE_PATHS,
  anyCell,
  listenAddress,
  type ProxyCell,
  type ProxyFile,
  type ProxySettings,
  REFUSALS,
  refusalBody,
  type Topology,
} from './topology.js';

const TENANTS_MAP = 'tenants.map';
const QUERIES_MAP = 'queries.map';
/** In the place of a cell: the header names one that is not there. */
const UNKNOWN = '-';
/** With which requests go on to `@once`; no engine answers it. */
const ONCE = 599;

type Entries = readonly (readonly [key: string, cell: string])[];

/** @param topology checked; the first engine of each cell is its owner */
export function nginxFiles(topology: Topology, settings: ProxySettings): readonly ProxyFile[] {
  const tenants = [...topology.placements];
  const queries = queriesOf(tenants);
  const lengths = [...tenants, ...queries].map(([key]) => Buffer.byteLength(key));
  const sizes = {
    entries: Math.max(tenants.length, queries.length),
    longest: lengths.reduce((most, length) => Math.max(most, length), 0),
  };
  return [
    { name: 'nginx.conf', text: configuration(topology, settings, sizes), isMap: false },
    { name: TENANTS_MAP, text: caselessMap(tenants), isMap: true },
    { name: QUERIES_MAP, text: caselessMap(queries), isMap: true },
  ];
}

/**
 * How a query names tenants that are not written there as they are: as `encodeURIComponent` has it, and as a form does.
 * nginx decodes nothing of a query.
 */
const queriesOf = (tenants: Entries): Entries =>
  tenants.flatMap(([tenant, cell]) => {
    const form = new URLSearchParams([['', tenant]]).toString().slice(1);
    const written = new Set([encodeURIComponent(tenant), form]);
    return [...written].filter((key) => /[%+]/.test(key)).map((key) => [key, cell] as const);
  });

/**
 * nginx looks texts up without their case, and expressions with it, one after the other. So keys that differ in
 * nothing else, and lead to different cells, are expressions.
 */
function caselessMap(entries: Entries): string {
  const cells = new Map<string, Set<string>>();
  for (const [text, cell] of entries) {
    const key = folded(text);
    cells.set(key, (cells.get(key) ?? new Set()).add(cell));
  }
  const written = new Set<string>();
  let map = '';
  for (const [text, cell] of entries) {
    const key = folded(text);
    const isAlone = cells.get(key)?.size === 1;
    if (isAlone && written.has(key)) continue;
    written.add(key);
    // The backslash that nginx drops keeps a tenant named `default` or `~x` from being a word of the map.
    map += `${quoted(isAlone ? `\\${text}` : `~^${escapedExpression(text)}$`)} ${cell};\n`;
  }
  return map;
}

/** As nginx does it: of ASCII alone. */
const folded = (text: string) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** A dollar at its end is of the expression, every other character stands for itself. */
const escapedExpression = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

/** Within double quotes nginx reads the backslash alone. A line break is no part of a header, and none of a map. */
const quoted = (text: string) =>
  `"${text.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n').replace(/\r/g, '\\r').replace(/\t/g, '\\t')}"`;

const mapOf = (from: string, to: string, rows: readonly string[]) =>
  `  map ${from} ${to} {\n${rows.map((row) => `    ${row}\n`).join('')}  }\n`;

interface Sizes {
  readonly entries: number;
  /** In bytes. */
  readonly longest: number;
}

function configuration(topology: Topology, settings: ProxySettings, sizes: Sizes): string {
  const { cells } = topology;
  const { host, port } = listenAddress(settings);
  const any = anyCell(topology);
  const refuse = (which: keyof typeof REFUSALS) =>
    `return ${REFUSALS[which].status} '${refusalBody(which)}';`;
  const told = `      set $engine_told $upstream_http_x_cell;
      if ($engine_told_upstream = "") { ${refuse('stale')} }
      proxy_pass http://$engine_told_upstream;\n`;
  return `# Written by: cells proxy-config --for nginx. docs/operate/routing.md says why each line is here.
# Each reload leaves workers behind, which end with their last request: streams do not by themselves.
worker_shutdown_timeout 5m;
events {}

http {
  # Links to approvals are keys, and stand in addresses.
  access_log off;
  map_hash_max_size ${powerAbove(2 * sizes.entries, 2_048)};
  map_hash_bucket_size ${powerAbove(sizes.longest + 64, 128)};

  # Of one address as many requests at once as this. More than that are many workers that share one: then raise it.
  limit_conn_zone $binary_remote_addr zone=engine_clients:10m;
  limit_conn engine_clients 500;
  limit_conn_status 429;
  # What comes slowly is waited for here.
  client_header_timeout 10s;
  client_body_timeout 10s;

  # The tenant of the header, else of the address.
${mapOf('$http_x_tenant_id', '$engine_tenant', ['"" $arg_tenant_id;', 'default $http_x_tenant_id;'])}
  # Its cell: the one in which it is settled, else any, which says 421 where it is none of its own.
${mapOf('$engine_tenant', '$engine_named_so', ['default "";', `include ${TENANTS_MAP};`])}
  # A query is not decoded, and what is encoded there is looked up as it stands.
${mapOf('$http_x_tenant_id', '$engine_queried', ['"" $arg_tenant_id;', 'default "";'])}
${mapOf('$engine_queried', '$engine_settled', [
  'default $engine_named_so;',
  `include ${QUERIES_MAP};`,
  '"~[%+]" "";',
])}
${mapOf('$engine_tenant', '$engine_guess', ['"" "";', `default ${any};`])}
${mapOf('$engine_settled', '$engine_tenant_cell', ['"" $engine_guess;', 'default $engine_settled;'])}
  # Without a tenant: the cell that is named, or any where all answer alike.
${mapOf('$http_x_cell', '$engine_named', [
  '"" $engine_alike;',
  ...cells.map(({ name }) => `${name} ${name};`),
  `default ${UNKNOWN};`,
])}
${mapOf('$request_method:$uri', '$engine_alike', [
  `default ${settings.defaultCell ?? '""'};`,
  `"~^OPTIONS:" ${any};`,
  `"~^[A-Z]+:(${ALIKE_PATHS.join('|')})$" ${any};`,
  ...ALIKE_BEGINNINGS.map((path) => `"~^[A-Z]+:${path}" ${any};`),
])}
${mapOf('$engine_tenant_cell', '$engine_cell', ['"" $engine_named;', 'default $engine_tenant_cell;'])}
  # Whom a 421 names is asked if it is one of these.
${mapOf('$engine_told', '$engine_told_upstream', [
  'default "";',
  ...cells.map(({ name }) => `${name} ${upstreamOf(name)};`),
])}
${cells.map(upstream).join('\n')}
  server {
    # For TLS: listen 443 ssl, with ssl_certificate and ssl_certificate_key.
    listen ${host === '' ? '' : `${host}:`}${port};
    client_max_body_size 10m;
    default_type application/json;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_connect_timeout 2s;
    proxy_read_timeout 75s;
    recursive_error_pages on;
    location / {
      if ($engine_cell = "") { ${refuse('unnamed')} }
      if ($engine_cell = ${UNKNOWN}) { ${refuse('unknown')} }
      # These nginx would send again also after an answer that broke off.
      if ($request_method ~ "^(PUT|DELETE)$") { return ${ONCE}; }
      error_page ${ONCE} = @once;
      error_page 421 = @told;
      proxy_intercept_errors on;
      proxy_pass http://${upstreamOf('$engine_cell')};
    }
    location @once {
      error_page 421 = @told_once;
      proxy_intercept_errors on;
      proxy_next_upstream off;
      proxy_pass http://${upstreamOf('$engine_cell')};
    }
    location @told {
${told}    }
    location @told_once {
      proxy_next_upstream off;
${told}    }
  }
}
`;
}

const upstreamOf = (cell: string) => `cell_${cell}`;

function upstream({ name, engines }: ProxyCell): string {
  const servers = engines.map(
    // Without a bound of failures: one would lead ten seconds of requests to the standby.
    (address, at) => `    server ${address} max_fails=0${at > 0 ? ' backup' : ''};\n`,
  );
  // A group must have a server.
  if (servers.length === 0) servers.push('    server 127.0.0.1:9 down;\n');
  return `  upstream ${upstreamOf(name)} {\n${servers.join('')}    keepalive 64;\n    keepalive_timeout 5s;\n  }\n`;
}

/** Sizes of tables of hashes are powers of two. */
const powerAbove = (count: number, least: number) =>
  Math.max(least, 2 ** Math.ceil(Math.log2(Math.max(1, count))));
