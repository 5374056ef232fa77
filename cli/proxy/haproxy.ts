/**
 * The configuration and the maps of HAProxy (docs/operate/routing.md). Keys of the maps contain no syntax of maps:
 * tenants are percent-encoded as by the converter `url_enc`, buckets are hexadecimal digits. Pure.
 */

import {
  ALIKE_BEGINNINGS,
  ALIKE_PATHS,
  addressOf,
  anyCell,
  bucketCells,
  isName,
  listenAddress,
  type ProxyCell,
  type ProxyFile,
  type ProxySettings,
  REFUSALS,
  refusalBody,
  type Topology,
} from './topology.js';

export const TENANTS_MAP = 'tenants.map';
export const BUCKETS_MAP = 'buckets.map';
/** The states of servers, which a reload passes to the next process; without it, that takes all engines for ready. */
export const STATES_FILE = 'servers.state';
/** No states: only the version of the format. */
export const NO_STATES = '1\n';
/** Each cell has a backend. */
export const backendOf = (cell: string) => `cell_${cell}`;

/** @param topology checked */
export function haproxyFiles(topology: Topology, settings: ProxySettings): readonly ProxyFile[] {
  return [
    { name: 'haproxy.cfg', text: configuration(topology, settings), isMap: false },
    { name: TENANTS_MAP, text: mapText(tenantEntries(topology)), isMap: true },
    { name: BUCKETS_MAP, text: mapText(bucketCells(topology)), isMap: true },
  ];
}

/** Of the map of tenants. */
export const tenantEntries = ({ placements }: Topology): readonly (readonly [string, string])[] =>
  [...placements].map(([tenant, cell]) => [percentEncoded(tenant), cell] as const);

export const mapText = (entries: readonly (readonly [string, string])[]) =>
  entries.map(([key, value]) => `${key} ${value}\n`).join('');

/** Encodes each byte of UTF-8 except letters, digits and `-._~` as %XX. */
export function percentEncoded(text: string): string {
  return Array.from(Buffer.from(text, 'utf8'), (byte) => {
    const letter = String.fromCharCode(byte);
    if (/[\w.~-]/.test(letter)) return letter;
    return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');
}

function configuration(topology: Topology, settings: ProxySettings): string {
  const { cells } = topology;
  const { defaultCell, folder, socket } = settings;
  const { host, port } = listenAddress(settings);
  const addresses = cells.flatMap(({ engines }) =>
    engines.map((text) => addressOf(text, 'an engine')),
  );
  const hasNames = addresses.some(isName);
  const refuse = (which: keyof typeof REFUSALS) => {
    const { status } = REFUSALS[which];
    const wait = status === 503 ? ' hdr retry-after 1' : '';
    return `http-request return status ${status} content-type application/json string '${refusalBody(which)}'${wait}`;
  };
  return `# Written by: cells proxy-config --for haproxy. docs/operate/routing.md says why each line is here.
global
  default-path config
  hard-stop-after 5m
${socket === undefined ? '' : `  stats socket ${socket} mode 600 level admin\n  server-state-file ${folder}/${STATES_FILE}\n`}${hasNames ? RESOLVERS : ''}
defaults
  mode http
  timeout connect 2s
  timeout http-request 10s
  timeout client 75s
  timeout server 75s
  timeout check 3s
  retries 3
  retry-on conn-failure
  option redispatch 1
  option forwardfor
  option idle-close-on-response
${socket === undefined ? '' : '  load-server-state-from-file global\n'}  option httpchk
  http-check send meth GET uri /health/ready ver HTTP/1.1 hdr Host engine
  http-check expect status 200
  default-server check inter 1s fastinter 250ms downinter 500ms fall 2 rise 1 on-marked-down shutdown-sessions pool-purge-delay 500ms${hasNames ? ' init-addr last,libc,none resolvers dns' : ''}

frontend api
  # For TLS: bind :443 ssl crt /etc/haproxy/engine.pem
  bind ${host}:${port}
  # Of one address as many connections as this. More than that are many workers that share one: then raise it.
  stick-table type ipv6 size 100k expire 10m store conn_cur
  tcp-request connection track-sc0 src
  tcp-request connection reject if { sc0_conn_cur gt 500 }
  # What comes slowly is waited for here, and no longer than a request may take.
  option http-buffer-request

  # The tenant of the header, else of the address.
  http-request set-var(txn.tenant) req.fhdr(x-tenant-id)
  http-request set-var(txn.tenant) url_param(tenant_id),url_dec(1) if !{ var(txn.tenant) -m len gt 0 }
  acl has_tenant var(txn.tenant) -m len gt 0
  acl has_cell var(txn.cell) -m found

  # Its cell: the one that the map has for it, else the one of its bucket.
  http-request set-var(txn.cell) var(txn.tenant),url_enc,map_str(${TENANTS_MAP}) if has_tenant
  http-request set-var(txn.cell) var(txn.tenant),sha2(256),hex,lower,bytes(0,3),map_str(${BUCKETS_MAP}) if has_tenant !has_cell
  ${refuse('nowhere')} if has_tenant !has_cell

  # Without a tenant: the cell that is named, or any where all answer alike.
  acl names_cell req.fhdr(x-cell) -m len gt 0
  acl is_cell req.fhdr(x-cell) -m str ${cells.map(({ name }) => name).join(' ')}
  acl is_alike path ${ALIKE_PATHS.join(' ')}
  acl is_alike path_beg ${ALIKE_BEGINNINGS.join(' ')}
  acl is_alike method OPTIONS
  ${refuse('unknown')} if !has_cell names_cell !is_cell
  http-request set-var(txn.cell) req.fhdr(x-cell) if !has_cell names_cell
  http-request set-var(txn.cell) str(${anyCell(topology)}) if !has_cell is_alike
${
  defaultCell === undefined
    ? `  ${refuse('unnamed')} if !has_cell`
    : `  http-request set-var(txn.cell) str(${defaultCell}) if !has_cell`
}

  use_backend ${backendOf('%[var(txn.cell)]')}
  default_backend no_such_cell

backend no_such_cell
  ${refuse('stale')}
${cells.map(backend).join('')}`;
}

/** Names are resolved repeatedly, because engines move. */
const RESOLVERS = `
resolvers dns
  parse-resolv-conf
  hold valid 5s
`;

function backend({ name, engines }: ProxyCell): string {
  const servers = engines.map((address, at) => `  server ${name}_${at + 1} ${address}\n`);
  return `\nbackend ${backendOf(name)}\n${servers.join('')}`;
}
