/**
 * The server of the shop as one of three cells. The two others, of which one is being emptied, are rows only: their
 * engines seem to have been heard of, and so do the moves of their tenants.
 */

import pg from 'pg';
import { Directory, makeDirectory } from '../../../src/cluster/directory.js';

/** The cell of the shop. */
export const CELL = 'europe_1';

/** Resolves with what the engine of the cell is started with. */
export async function openCells(database_url: string): Promise<Record<string, string>> {
  await makeDirectory(database_url);
  const directory = new Directory(database_url, 'shop');
  const cell = { database_url, engines: [] };
  await directory.createCell({ ...cell, name: CELL, state: 'open' });
  await directory.createCell({ ...cell, name: 'europe_2', state: 'closed' });
  await directory.createCell({ ...cell, name: 'america_1', state: 'draining' });
  await directory.close();
  const db = new pg.Client(database_url);
  await db.connect();
  await db.query(`
    insert into cluster.placements (tenant_id, cell, placed_by, revision)
    select 'shop-' || n, case when n % 3 = 0 then 'america_1' else 'europe_2' end, 'hash', 0
    from generate_series(1, 1260) n;
    insert into cluster.engines (id, cell, address, role, version, lag_ms, migration, key_ids, seen_at)
    select cell || role || n, cell, '10.0.' || n || '.7:8080', role, '0.9.0', lag, 1, '{}',
      now() + interval '1 hour'
    from (values ('europe_2', 'owner', 4, 2), ('europe_2', 'standby', 5, null), ('america_1', 'owner', 8, 9))
      engines (cell, role, n, lag);
    insert into cluster.moves (id, tenant_id, from_cell, to_cell, state, started_at, updated_at, ended_at)
    select ('01a20ade-0000-7000-8000-00000000000' || n)::uuid, 'shop-' || n * 3, 'america_1', 'europe_2',
      case n when 3 then 'copying' else 'done' end, now() - interval '1 minute' * (10 - n * 3), now(),
      case n when 3 then null else now() - interval '1 minute' * (9 - n * 3) end
    from generate_series(1, 3) n`);
  await db.end();
  return { ENGINE_DB_SCHEMA: CELL, ENGINE_CLUSTER_URL: database_url };
}
