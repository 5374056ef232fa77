/** What is full first when cells are added: connections, the log, the directory, the proxies. Pure. */

import { BUCKETS } from '../../src/cluster/routing.js';
import { assumed } from './assumptions.js';

/** An owner, as docs/operate/deploy.md counts, and its standby. */
const OTHER_CONNECTIONS = 9;
const CONNECTIONS_PER_SHARD = 3;
const STANDBY_CONNECTIONS = 1;
const ENGINES = 2;

/** Connections of one cell to its own Postgres. */
export function connectionsOfCell(): number {
  const owner = OTHER_CONNECTIONS + CONNECTIONS_PER_SHARD * assumed('shards');
  return owner + STANDBY_CONNECTIONS;
}

/** How many cells one Postgres can have, by what. */
export function cellsOfServer() {
  const wal = assumed('roundsPerSecond') * assumed('walBytesPerRound');
  return {
    byConnections: Math.floor(assumed('connectionsMax') / connectionsOfCell()),
    /** At the mean load. */
    byWal: Math.floor(assumed('walBytesPerSecondMax') / (wal * assumed('shareInUse'))),
    /** When all do what is planned for one. */
    byWalAtMost: Math.floor(assumed('walBytesPerSecondMax') / wal),
  };
}

export interface FleetSize {
  readonly cells: number;
  readonly roundsPerSecond: number;
  readonly servers: number;
  readonly directoryConnections: number;
  readonly probesPerSecond: number;
  /** Cores of all proxies, when all cells do what is planned for them. */
  readonly proxyCores: number;
  /** Buckets of one cell at the mean: with few, the hash alone is uneven. */
  readonly bucketsPerCell: number;
}

const SECOND_MICROSECONDS = 1e6;

export function fleetOf(cells: number): FleetSize {
  const requestsPerSecond = cells * assumed('roundsPerSecond') * assumed('requestsPerRound');
  return {
    proxyCores: (requestsPerSecond * assumed('proxyMicroseconds')) / SECOND_MICROSECONDS,
    cells,
    roundsPerSecond: cells * assumed('roundsPerSecond'),
    servers: Math.ceil(cells / assumed('cellsPerServer')),
    directoryConnections: cells * ENGINES * assumed('directoryConnections'),
    probesPerSecond: cells * ENGINES * assumed('probesPerSecond'),
    bucketsPerCell: BUCKETS / cells,
  };
}
