/**
 * What the model of a hundred cells takes for given: every number that it does not work out itself, and where each was
 * measured. docs/scale.md shows the whole table. Pure data.
 */

export interface Assumption {
  readonly value: number;
  readonly unit: string;
  readonly what: string;
  /** In Markdown, with links from docs/. `assumed`: nobody has measured it. */
  readonly from: string;
}

const ASSUMED = 'assumed';
const IN_DEPLOY = '[deploy](operate/deploy.md#how-owner-and-standby-share-the-database)';
const IN_PERFORMANCE = '[performance](performance.md#how-to-size-a-machine)';
const IN_MAPS = '[below](#how-it-was-measured)';

export const ASSUMPTIONS = {
  cells: { value: 100, unit: '', what: 'cells', from: 'chosen' },
  tenants: { value: 20_000, unit: '', what: 'tenants', from: 'chosen' },
  tailExponent: {
    value: 1.5,
    unit: '',
    what: 'exponent of the Pareto law of the sizes of tenants; smaller: heavier tail',
    from: `${ASSUMED}; others are in the table of placement`,
  },
  largestMoved: {
    value: 0.5,
    unit: 'cells',
    what: 'largest tenant in the table of moves, by the mean load of a cell: who outgrows that gets a larger machine',
    from: 'chosen',
  },
  shareInUse: {
    value: 0.5,
    unit: '',
    what: 'mean load of a cell, as a part of what is planned for one',
    from: 'chosen',
  },
  roundsPerSecond: {
    value: 2_681,
    unit: 'per second',
    what: 'tasks created, claimed and completed by a cell with 4 cores for engine and Postgres, at 70 % of them',
    from: `measured: ${IN_PERFORMANCE}, \`round64\` with 4 connections of the writer`,
  },
  walBytesPerRound: {
    value: 5_640,
    unit: 'bytes',
    what: 'write-ahead log of one of them',
    from: 'measured: [performance](performance.md#what-an-operation-costs), `round64`',
  },
  walBytesPerSecondMax: {
    value: 200_000_000,
    unit: 'bytes per second',
    what: 'write-ahead log that one Postgres writes and sends to its standbys, for hours',
    from: ASSUMED,
  },
  driftPerDay: {
    value: 0.1,
    unit: '',
    what: 'standard deviation of the logarithm by which the load of a tenant changes from day to day',
    from: ASSUMED,
  },
  comingPerDay: {
    value: 0.002,
    unit: '',
    what: 'tenants of a day that leave, each replaced by a new one',
    from: ASSUMED,
  },
  days: { value: 90, unit: 'days', what: 'that moves are counted for', from: 'chosen' },
  crashesPerYear: {
    value: 6,
    unit: 'per year',
    what: 'owners of one cell that crash or are killed',
    from: ASSUMED,
  },
  crashSeconds: {
    value: 1,
    unit: 's',
    what: 'until the standby serves then',
    from: `measured: ${IN_DEPLOY}`,
  },
  freezesPerYear: {
    value: 1,
    unit: 'per year',
    what: 'machines of one owner that are lost, cut off or frozen',
    from: ASSUMED,
  },
  freezeSeconds: {
    value: 7,
    unit: 's',
    what: 'until the standby serves then',
    from: `measured: ${IN_DEPLOY}`,
  },
  upgradesPerYear: {
    value: 24,
    unit: 'per year',
    what: 'rolling upgrades of one cell, with two changes of the owner each',
    from: 'chosen',
  },
  handOverSeconds: {
    value: 2,
    unit: 's',
    what: 'until the standby serves at one of these',
    from: `measured: ${IN_DEPLOY}`,
  },
  primariesPerYear: {
    value: 1,
    unit: 'per year',
    what: 'primaries of one Postgres that are lost',
    from: ASSUMED,
  },
  failoverSeconds: {
    value: 30,
    unit: 's',
    what: 'until engines work at the new primary: the `ttl` of Patroni of 20 s, its election, and 5 s of the engine',
    from: ASSUMED,
  },
  disastersPerYear: {
    value: 0.05,
    unit: 'per year',
    what: 'losses of one Postgres that no machine mends, so that somebody has to come',
    from: ASSUMED,
  },
  disasterSeconds: {
    value: 3_600,
    unit: 's',
    what: 'until that is mended',
    from: ASSUMED,
  },
  cellsPerServer: {
    value: 5,
    unit: '',
    what: 'cells that share one Postgres',
    from: 'chosen; others are in the table of failures',
  },
  simulatedYears: {
    value: 400,
    unit: 'years',
    what: 'that failures are drawn for',
    from: 'chosen',
  },
  movePauseSeconds: {
    value: 5,
    unit: 's',
    what: 'for which a tenant with 100,000 waiting instances waits while it is moved',
    from: 'measured: [moving tenants](operate/moving-tenants.md#how-long-it-takes)',
  },
  shards: { value: 3, unit: '', what: '`ENGINE_SHARDS` of an engine with 4 cores', from: 'chosen' },
  connectionsMax: {
    value: 500,
    unit: '',
    what: '`max_connections` of one Postgres; each of them is a process',
    from: 'chosen',
  },
  directoryConnections: {
    value: 3,
    unit: '',
    what: 'connections of one engine to the directory of the cluster, at most',
    from: 'counted: two for statements, one that listens',
  },
  probesPerSecond: {
    value: 1,
    unit: 'per second',
    what: 'checks of one proxy at one engine',
    from: 'configured: [routing](operate/routing.md)',
  },
  proxyMicroseconds: {
    value: 34,
    unit: 'µs',
    what: 'processor time of HAProxy for a request under load',
    from: 'measured: [routing](operate/routing.md#what-the-way-costs)',
  },
  requestsPerRound: {
    value: 3,
    unit: '',
    what: 'requests of a task that is created, claimed and completed, one by one',
    from: 'counted',
  },
  mapEntryBytes: {
    value: 300,
    unit: 'bytes',
    what: 'memory of HAProxy for a tenant in its map',
    from: `measured: ${IN_MAPS}`,
  },
} as const satisfies Readonly<Record<string, Assumption>>;

/** The number alone. */
export function assumed(name: keyof typeof ASSUMPTIONS): number {
  return ASSUMPTIONS[name].value;
}
