/** What the server says of itself: its state, what the caller may do, the API's description, and gauges. */

import { realClock } from '../../base/real-clock.js';
import { MIGRATIONS_DIR, readMigrations } from '../../db/migrate.js';
import type { FrontRoom } from '../../http/front-room.js';
import type { FrontOptions } from '../front.js';
import { createDocs } from './docs.js';
import { createProbes } from './system.js';
import { whoami } from './whoami.js';

export function openServer(options: FrontOptions) {
  const { config, gate, version, schema, placement } = options;
  const { envLabel, envColor } = config;
  const isClustered = placement.placement !== undefined;
  const storageVersion = readMigrations(MIGRATIONS_DIR).at(-1)!.version;
  return {
    operations: {
      ...createProbes({ gate, version, storageVersion, schema, envLabel, envColor, isClustered }),
      ...createDocs({ version, isProtected: config.protectDocs }),
      whoami: whoami(config),
    },
    gauges: gaugesOf(options),
  } satisfies FrontRoom;
}

function gaugesOf({ gate, now, connections, requests, client, reads }: FrontOptions) {
  return {
    engine_ready: () => (gate.unreadiness() === undefined ? 1 : 0),
    engine_database_up: () => (gate.isDatabaseUp ? 1 : 0),
    engine_clock_skew_seconds: () => (now() - realClock.now()) / 1_000,
    engine_connections: () => connections.open,
    engine_connections_refused_total: () => connections.refused,
    engine_requests_refused_total: () => requests.refused,
    engine_requests_in_flight: () => client.inFlight,
    engine_polls_in_flight: () => client.pollsInFlight,
    engine_reads_active: () => reads.active,
    engine_reads_waiting: () => reads.waiting,
    engine_work_under_way_bytes: () => client.workInProgress,
    engine_instance_reads_kept_total: () => client.readsKept,
  };
}
