/**
 * What a proxy in front of cells needs to know, checked before it is written to a configuration: invalid names and
 * addresses are left out, never escaped. Only ids of tenants may have any character; they are encoded. Pure.
 */

import { NAME_LENGTH_MAX } from '../../schema/common.js';
import { allBuckets, cellOfBucket } from '../../src/cluster/routing.js';

export interface ProxyCell {
  readonly name: string;
  /** `host:port` */
  readonly engines: readonly string[];
  readonly state: 'open' | 'closed' | 'draining';
}

export interface Topology {
  readonly cells: readonly ProxyCell[];
  /** The cell of each tenant that is not in the cell of its bucket. */
  readonly placements: ReadonlyMap<string, string>;
}

export interface CheckedTopology extends Topology {
  /** What was left out, in sentences. */
  readonly leftOut: readonly string[];
}

export interface ProxySettings {
  /** `host:port`, or `:port` for all addresses. */
  readonly listen: string;
  /** Gets requests that name neither a tenant nor a cell; undefined: they are refused. */
  readonly defaultCell?: string | undefined;
  /** The path of HAProxy's runtime socket; undefined: it opens none. */
  readonly socket?: string | undefined;
  /** The folder of the files. */
  readonly folder: string;
}

export interface ProxyFile {
  readonly name: string;
  readonly text: string;
  /** It can change without a reload. */
  readonly isMap: boolean;
}

export class TopologyError extends Error {}

/** As of a schema (docs/operate/cells.md). */
const CELL = /^(?!pg_)[a-z_][a-z0-9_]{0,62}$/;
const HOST =
  /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])$/i;
/** Without characters that have a meaning in a configuration. */
const PATH = /^\/[\w./-]+$/;
const HOST_LENGTH_MAX = 253;
const PORT_MAX = 65_535;

export interface Address {
  /** An IPv6 address stands in brackets; '' for all addresses. */
  readonly host: string;
  readonly port: number;
}

/** @returns undefined when it is no `host:port` */
function addressIn(text: string): Address | undefined {
  const at = text.lastIndexOf(':');
  const [host, port] = [text.slice(0, at), text.slice(at + 1)];
  const isHost = host.length <= HOST_LENGTH_MAX && HOST.test(host);
  const isPort = /^\d{1,5}$/.test(port) && +port >= 1 && +port <= PORT_MAX;
  return at >= 0 && isHost && isPort ? { host, port: Number(port) } : undefined;
}

/** @throws TopologyError when it is no `host:port` */
export function addressOf(text: string, what: string): Address {
  const address = addressIn(text);
  if (address === undefined) throw new TopologyError(noAddress(text, what));
  return address;
}

const noAddress = (text: string, what: string) =>
  `${what} is no host:port: ${JSON.stringify(text)}`;

/** @throws TopologyError */
export function listenAddress({ listen }: ProxySettings): Address {
  const isAny = listen.startsWith(':') || listen.startsWith('*:');
  const { host, port } = addressOf(
    isAny ? `any${listen.slice(listen.indexOf(':'))}` : listen,
    'the address to listen at',
  );
  return { host: isAny ? '' : host, port };
}

/** Whether the host must be resolved. */
export const isName = ({ host }: Address) => !host.startsWith('[') && !/^[\d.]+$/.test(host);

/**
 * Cells by name and tenants by id, so that equal directories give equal files. Names and addresses that are not valid
 * in a configuration are left out.
 *
 * @throws TopologyError when a setting is not valid in a configuration, or there is no cell
 */
export function checkedTopology(given: Topology, settings: ProxySettings): CheckedTopology {
  const { defaultCell, socket, folder } = settings;
  listenAddress(settings);
  for (const path of [folder, ...(socket === undefined ? [] : [socket])]) {
    if (!PATH.test(path)) {
      throw new TopologyError(
        `a path has letters, digits and . _ - / alone, not ${JSON.stringify(path)}`,
      );
    }
  }
  const leftOut = new Set<string>();
  const cells = new Map<string, ProxyCell>();
  for (const cell of given.cells) {
    if (!CELL.test(cell.name)) {
      leftOut.add(`Left out, as no name of a cell: ${JSON.stringify(cell.name)}.`);
    } else if (cells.has(cell.name)) {
      throw new TopologyError(`two cells are named ${cell.name}`);
    } else cells.set(cell.name, withAddresses(cell, leftOut));
  }
  if (cells.size === 0) throw new TopologyError('there is no cell');
  if (defaultCell !== undefined && !cells.has(defaultCell)) {
    throw new TopologyError(`there is no cell ${JSON.stringify(defaultCell)}`);
  }
  const placed = [...given.placements].filter(([tenant, cell]) => {
    const trouble = troubleOf(tenant) ?? (cells.has(cell) ? undefined : troubleOfCell(cell));
    if (trouble !== undefined) leftOut.add(trouble);
    return trouble === undefined;
  });
  return {
    cells: [...cells.values()].sort((a, b) => ordered(a.name, b.name)),
    placements: new Map(placed.sort(([a], [b]) => ordered(a, b))),
    leftOut: [...leftOut],
  };
}

const ordered = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

function withAddresses(cell: ProxyCell, leftOut: Set<string>): ProxyCell {
  const engines = cell.engines.filter((engine) => {
    const isOne = addressIn(engine) !== undefined;
    if (!isOne)
      leftOut.add(`Left out: ${noAddress(engine, `an engine of the cell ${cell.name}`)}.`);
    return isOne;
  });
  return { ...cell, engines };
}

/** An engine takes no tenants with an empty or a longer name. */
function troubleOf(tenant: string): string | undefined {
  if (tenant === '') return 'Left out: a tenant without a name.';
  if (tenant.length <= NAME_LENGTH_MAX || [...tenant].length <= NAME_LENGTH_MAX) return undefined;
  return `Left out: the tenant ${JSON.stringify(tenant.slice(0, 40))}…, whose name is over ${NAME_LENGTH_MAX} characters.`;
}

const troubleOfCell = (cell: string) =>
  `Left out: tenants of the cell ${JSON.stringify(cell)}, which is not there.`;

/** Each bucket with the cell of its new tenants; empty when no cell is open. */
export function bucketCells({ cells }: Pick<Topology, 'cells'>): readonly BucketCell[] {
  const open = cells.filter(({ state }) => state === 'open').map(({ name }) => name);
  const key = open.sort(ordered).join(' ');
  if (lastBuckets?.key !== key) lastBuckets = { key, cells: cellsOfBuckets(open) };
  return lastBuckets.cells;
}

type BucketCell = readonly [bucket: string, cell: string];

/** Cached: hundreds of thousands of hashes for a hundred cells, which seldom change. */
let lastBuckets: { readonly key: string; readonly cells: readonly BucketCell[] } | undefined;

const cellsOfBuckets = (open: readonly string[]) =>
  allBuckets().flatMap((bucket) => {
    const cell = cellOfBucket(bucket, open);
    return cell === undefined ? [] : [[bucket, cell] as const];
  });

/** The cell that answers requests which all cells answer alike. */
export function anyCell({ cells }: Topology): string {
  const serving = cells.find(({ state, engines }) => state === 'open' && engines.length > 0);
  return (serving ?? (cells[0] as ProxyCell)).name;
}

/**
 * Paths that every cell answers alike: pages and documents, health checks, the rights of a key, and the directory. So
 * is OPTIONS, the preflight of a browser, which has no header that names a tenant.
 */
const ALIKE = {
  paths: ['/info', '/ui', '/swagger-ui', '/whoami', '/cells', '/cells/moves'],
  beginnings: ['/health/', '/ui/', '/swagger-ui/', '/api-docs/'],
};
const bareAndPrefixed = (paths: readonly string[]) => [
  ...paths,
  ...paths.map((path) => `/api/v1${path}`),
];
export const ALIKE_PATHS = ['/', ...bareAndPrefixed(ALIKE.paths)];
export const ALIKE_BEGINNINGS = bareAndPrefixed(ALIKE.beginnings);

/** The proxy's own answers. */
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
