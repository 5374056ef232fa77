/**
 * What a proxy in front of cells has to know, and the checks that every word of it passes before it stands in a
 * configuration: a name or an address that a proxy would read as something else is refused, never escaped. Only
 * the ids of tenants may hold any character; each generator writes them in a form that its proxy cannot mistake. Pure.
 */

import { allBuckets, cellOfBucket } from '../routing.js';

export const PROXIES = ['haproxy', 'nginx', 'envoy'] as const;
export type ProxyKind = (typeof PROXIES)[number];

export interface ProxyCell {
  readonly name: string;
  /** `host:port`, in the order in which a proxy without health checks of its own asks them. */
  readonly engines: readonly string[];
  readonly state: 'open' | 'closed' | 'draining';
}

export interface Topology {
  readonly cells: readonly ProxyCell[];
  /** The cell of each tenant that is settled. */
  readonly placements: ReadonlyMap<string, string>;
}

export interface ProxySettings {
  /** `host:port`, or `:port` for all addresses. */
  readonly listen: string;
  /** Whose requests that name neither a tenant nor a cell are; undefined: they are refused. */
  readonly defaultCell?: string | undefined;
  /** The path of HAProxy's runtime socket; undefined: it opens none. */
  readonly socket?: string | undefined;
  /** The folder in which the files will lie, for proxies that ask for whole paths. */
  readonly folder: string;
}

export interface ProxyFile {
  readonly name: string;
  readonly text: string;
  /** It can change while the proxy goes on: a map, or what is read again when it changes. */
  readonly isMap: boolean;
}

export class TopologyError extends Error {}

/** As of a schema (docs/operate/cells.md). */
const CELL = /^(?!pg_)[a-z_][a-z0-9_]{0,62}$/;
const HOST =
  /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])$/i;
/** No blank, quote, backslash, dollar, hash or control: none of them means anything else to a proxy. */
const PATH = /^\/[\w./-]+$/;
const HOST_LENGTH_MAX = 253;
const PORT_MAX = 65_535;

export interface Address {
  /** An IPv6 address stands in brackets; '' for all addresses. */
  readonly host: string;
  readonly port: number;
}

/** @throws TopologyError when it is no `host:port` */
export function addressOf(text: string, what: string): Address {
  const at = text.lastIndexOf(':');
  const [host, port] = [text.slice(0, at), text.slice(at + 1)];
  const isHost = host.length <= HOST_LENGTH_MAX && HOST.test(host);
  if (at < 0 || !isHost || !/^\d{1,5}$/.test(port) || +port < 1 || +port > PORT_MAX) {
    throw new TopologyError(`${what} is no host:port: ${JSON.stringify(text)}`);
  }
  return { host, port: Number(port) };
}

/** @throws TopologyError */
export function listenAddress({ listen }: ProxySettings): Address {
  const isAny = listen.startsWith(':') || listen.startsWith('*:');
  const { host, port } = addressOf(
    isAny ? `any${listen.slice(listen.indexOf(':'))}` : listen,
    'the address to listen at',
  );
  return { host: isAny ? '' : host, port };
}

/** A name has to be looked up, again and again. */
export const isName = ({ host }: Address) => !host.startsWith('[') && !/^[\d.]+$/.test(host);

/**
 * The same cells by their names and the same tenants by their ids, so that equal directories give equal files.
 *
 * @throws TopologyError when a name or an address could not stand in a configuration, or a cell is missing
 */
export function checkedTopology(given: Topology, settings: ProxySettings): Topology {
  const { defaultCell, socket, folder } = settings;
  listenAddress(settings);
  for (const path of [folder, ...(socket === undefined ? [] : [socket])]) {
    if (!PATH.test(path)) {
      throw new TopologyError(
        `a path has letters, digits and . _ - / alone, not ${JSON.stringify(path)}`,
      );
    }
  }
  const names = new Set<string>();
  for (const { name, engines } of given.cells) {
    if (!CELL.test(name)) throw new TopologyError(`no name of a cell: ${JSON.stringify(name)}`);
    if (names.has(name)) throw new TopologyError(`two cells are named ${name}`);
    names.add(name);
    for (const engine of engines) addressOf(engine, `an engine of the cell ${name}`);
  }
  if (names.size === 0) throw new TopologyError('there is no cell');
  if (defaultCell !== undefined && !names.has(defaultCell)) {
    throw new TopologyError(`there is no cell ${JSON.stringify(defaultCell)}`);
  }
  for (const [tenant, cell] of given.placements) {
    if (names.has(cell)) continue;
    throw new TopologyError(
      `the tenant ${JSON.stringify(tenant)} has the cell ${JSON.stringify(cell)}, which is not there`,
    );
  }
  return {
    cells: [...given.cells].sort((a, b) => ordered(a.name, b.name)),
    placements: new Map([...given.placements].sort(([a], [b]) => ordered(a, b))),
  };
}

const ordered = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/** Each bucket with the cell that new tenants in it get; empty when no cell takes any. */
export function bucketCells({ cells }: Topology): readonly (readonly [string, string])[] {
  const open = cells.filter(({ state }) => state === 'open').map(({ name }) => name);
  return allBuckets().flatMap((bucket) => {
    const cell = cellOfBucket(bucket, open);
    return cell === undefined ? [] : [[bucket, cell] as const];
  });
}

/** Which cell is asked for what all answer alike. */
export function anyCell({ cells }: Topology): string {
  const serving = cells.find(({ state, engines }) => state === 'open' && engines.length > 0);
  return (serving ?? (cells[0] as ProxyCell)).name;
}

/**
 * Beginnings of the paths that every cell answers alike: pages and documents, and the checks of load balancers.
 * A preflight of a browser, whose method is OPTIONS, is answered alike as well, and has no header that names a tenant.
 */
export const ALIKE_PATHS = ['/health/', '/info', '/ui', '/swagger-ui', '/api-docs/'] as const;

/** What is answered in the place of a cell. */
export const REFUSALS = {
  unnamed: {
    status: 400,
    message: 'name the tenant with x-tenant-id, or the cell with x-cell',
  },
  unknown: { status: 404, message: 'x-cell names no cell of this cluster' },
  nowhere: { status: 503, message: 'unavailable: no cell takes new tenants' },
  stale: { status: 503, message: 'unavailable: the proxy does not know the cell of the tenant' },
} as const;

export const refusalBody = (which: keyof typeof REFUSALS) =>
  JSON.stringify({ error: REFUSALS[which].message });
