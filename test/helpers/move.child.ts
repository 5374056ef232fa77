/** The command that moves a tenant, as a process of its own, which is killed at a point. */

import { STORE } from '../../actors/shard/store.js';
import { TenantMover } from '../../src/cluster/move-steps.js';
import { Moves } from '../../src/cluster/moves.js';
import { tenantTables } from '../../src/cluster/tenant-rows.js';

const [directoryUrl = '', tenant = '', to = '', sourceUrl = '', targetUrl = '', point = ''] =
  process.argv.slice(2);

const moves = await Moves.open(directoryUrl);
const move = (await moves.underWay(tenant)) ?? (await moves.begin(tenant, to));
const mover = new TenantMover(move, {
  tables: tenantTables(STORE),
  moves,
  sourceUrl,
  targetUrl,
  onStep: () => undefined,
  patienceMs: 300_000,
  at: (reached) => {
    if (reached === point) process.kill(process.pid, 'SIGKILL');
  },
});
await mover.run();
await moves.close();
