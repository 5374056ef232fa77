/** Statements of credentials. */

import { columnsBut, type StoredRow, selected } from '../../src/db/table.js';
import type { Queries } from '../runtime/queries.js';
import { CREDENTIALS } from './tables.js';

export type CredentialRow = StoredRow<typeof CREDENTIALS>;
export type CredentialPlace = Pick<CredentialRow, 'tenant_id' | 'id'>;

export function keyOf({ tenant_id, id }: CredentialPlace): string {
  return JSON.stringify([tenant_id, id]);
}

export const CREDENTIAL_SQL = {
  credentials:
    `select ${selected(columnsBut(CREDENTIALS))} from credentials ` +
    'join unnest($1::text[], $2::text[]) as asked(tenant_id, id) using (tenant_id, id)',
  credentialCount: 'select count(*)::int as count from credentials where tenant_id = $1',
} as const;

export function credentialLoads(queries: Queries) {
  const sql = queries.of(CREDENTIAL_SQL);
  return {
    credentials: (places: readonly CredentialPlace[]) =>
      sql.all<CredentialRow>('credentials', [
        places.map(({ tenant_id }) => tenant_id),
        places.map(({ id }) => id),
      ]),
    async credentialCount(tenant: string): Promise<number> {
      return (await sql.one<{ count: number }>('credentialCount', [tenant]))?.count ?? 0;
    },
  };
}

export type CredentialLoads = ReturnType<typeof credentialLoads>;
