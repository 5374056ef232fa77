/** Statements of worker endpoints. */

import type { StoredSecret } from '../../src/core/sealing/sealing.js';
import { columnsBut, type StoredRow, selected } from '../../src/db/table.js';
import type { Queries } from '../runtime/queries.js';
import { WORKER_ENDPOINTS } from './tables.js';

export type EndpointRow = StoredRow<typeof WORKER_ENDPOINTS>;
export type EndpointPlace = Pick<EndpointRow, 'tenant_id' | 'name'>;

export interface Endpoint extends Omit<EndpointRow, 'handlers' | 'secret'> {
  readonly handlers: readonly string[];
  readonly secret: StoredSecret;
}

export function endpointOf({ handlers, secret, ...row }: EndpointRow): Endpoint {
  return {
    ...row,
    handlers: JSON.parse(handlers) as string[],
    secret: JSON.parse(secret) as StoredSecret,
  };
}

/** Also decides which shard serves the endpoint. */
export function keyOf({ tenant_id, name }: EndpointPlace): string {
  return JSON.stringify([tenant_id, name]);
}

const COLUMNS = selected(columnsBut(WORKER_ENDPOINTS));

export const PUSH_SQL = {
  endpoints: `select ${COLUMNS} from worker_endpoints where tenant_id = any($1::text[])`,
  allEndpoints:
    `select ${COLUMNS} from worker_endpoints where (tenant_id, name) > ($1::text, $2::text) ` +
    'order by tenant_id, name limit $3',
  endpointAt:
    'select tenant_id, name from worker_endpoints order by tenant_id, name limit 1 offset $1',
} as const;

export function pushLoads(queries: Queries) {
  const sql = queries.of(PUSH_SQL);
  return {
    endpoints: (tenants: readonly string[]) => sql.all<EndpointRow>('endpoints', [tenants]),
    allEndpoints: (after: EndpointPlace | undefined, limit: number) =>
      sql.all<EndpointRow>('allEndpoints', [after?.tenant_id ?? '', after?.name ?? '', limit]),
    /** Undefined: there are no more than that. */
    endpointAt: (count: number) => sql.one<EndpointPlace>('endpointAt', [count]),
  };
}

export type PushLoads = ReturnType<typeof pushLoads>;
