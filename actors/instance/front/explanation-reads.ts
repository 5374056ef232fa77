/**
 * What the explanation of an instance says of others: who polls, who holds a slot, how a limit is set.
 * Reads only, each by an index, and each bounded.
 */

import type { InstanceState } from '../../../schema/states.js';
import { lookup } from '../../../src/db/reads/lookup.js';

/** Of each of the handlers; a worker that polls without a tenant may take tasks of every tenant. */
export const pollersOf = lookup<{
  readonly handler_name: string;
  readonly queue_name: string;
  readonly worker_id: string;
  readonly last_seen_at: string;
}>(
  'reads_pollers',
  'select w.handler_name, w.queue_name, w.worker_id, w.last_seen_at from workers w ' +
    "where w.tenant_id in ($1::text, '') and w.handler_name = any($2::text[]) " +
    'order by w.last_seen_at desc limit 1000',
);

export const slotHolders = lookup<{ readonly instance_id: string; readonly state: InstanceState }>(
  'reads_slot_holders',
  'select p.instance_id, i.state from permits p join instances i on i.id = p.instance_id ' +
    'where p.key_id = $1::uuid order by p.instance_id limit $2::bigint',
);

export const statesOf = lookup<{ readonly id: string; readonly state: InstanceState }>(
  'reads_states_of_instances',
  'select id, state from instances where id = any($1::uuid[])',
);

/** How many wait for the key before the instance, up to a bound. */
export const waitersAhead = lookup<{ readonly ahead: number }>(
  'reads_waiters_ahead',
  'select count(*) as ahead from (select 1 from permit_requests r, permit_requests own ' +
    'where own.instance_id = $2::uuid and r.key_id = $1::uuid ' +
    'and (r.created_at, r.instance_id) < (own.created_at, own.instance_id) ' +
    'and not exists (select 1 from permits p where p.instance_id = r.instance_id offset 0) ' +
    'limit $3::bigint) r',
);

export const limitsOf = lookup<{
  readonly limit_key: string;
  readonly max_count: number;
  readonly window_seconds: number;
}>(
  'reads_limits_of_keys',
  'select limit_key, max_count, window_seconds from rate_limits where id = any($1::uuid[])',
);
