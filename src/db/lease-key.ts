/**
 * Checks whether the server has the key of the sealed secrets in its database
 * (docs/operate/encryption-key.md). An id derived one-way from the key is stored beside the lease.
 */

import type pg from 'pg';
import Cursor from 'pg-cursor';
import { SEALING_KEY_STATES, type SealingKeyState } from '../../schema/system.js';
import type { Keyring } from '../core/sealing/keys.js';
import { openSecret, type SecretPlace, type StoredSecret } from '../core/sealing/sealing.js';
import { type DbLog, withClient } from './pool.js';

const SEALED = {
  credentials: `
    select id, tenant_id, value::text as secret from credentials
    union all
    select id, tenant_id, refresh_token::text from credentials where refresh_token is not null`,
  triggers: 'select slug as id, tenant_id, secret::text from triggers where secret is not null',
  subscriptions: 'select id::text, tenant_id, secret::text from webhook_subscriptions',
  endpoints: 'select name as id, tenant_id, secret::text from worker_endpoints',
} as const;

const ROWS_AT_ONCE = 100;

export interface SealingKey {
  readonly state: SealingKeyState;
  /** By sort: the number of secrets that are not sealed with the key of the server. */
  readonly counts: Readonly<Record<string, number>>;
}

/** Stores the server's key id once all secrets are sealed with it. Called by the owner. */
export function checkSealingKey(
  connectionString: string,
  keyring: Keyring | undefined,
): Promise<SealingKey> {
  return withClient({ connectionString, applicationName: 'engine start' }, async (client) => {
    const { rows } = await client.query<{ readonly key_id: string | null }>(
      'select key_id from engine_lease where id = 1',
    );
    const own = keyring?.payload.id;
    if (own !== undefined && rows[0]?.key_id === own) return { state: 'fits', counts: {} };
    let state: SealingKeyState = own === undefined ? 'none' : 'fits';
    const counts: Record<string, number> = {};
    for (const [sort, sql] of Object.entries(SEALED)) {
      counts[sort] = 0;
      for await (const row of rowsOf(client, sql)) {
        const found = stateOf(row, keyring);
        if (found === 'fits') continue;
        counts[sort] += 1;
        state = worse(state, found);
      }
    }
    const store = 'update engine_lease set key_id = $1 where id = 1';
    if (state === 'fits') await client.query(store, [own]);
    return { state, counts };
  });
}

export async function reportSealingKey(
  connectionString: string,
  keyring: Keyring | undefined,
  log: DbLog,
): Promise<SealingKeyState> {
  const { state, counts } = await checkSealingKey(connectionString, keyring);
  if (state === 'other') {
    log.error(counts, 'secrets are sealed with an encryption key that this server does not have');
  } else if (state === 'former') {
    log.info(counts, 'secrets are still sealed with ENGINE_OLD_ENCRYPTION_KEY');
  }
  return state;
}

interface SealedRow extends SecretPlace {
  readonly secret: string;
}

function worse(a: SealingKeyState, b: SealingKeyState): SealingKeyState {
  return SEALING_KEY_STATES.indexOf(b) > SEALING_KEY_STATES.indexOf(a) ? b : a;
}

function stateOf(row: SealedRow, keyring: Keyring | undefined): 'fits' | 'former' | 'other' {
  const stored = JSON.parse(row.secret) as StoredSecret;
  const current = keyring && { ...keyring, opening: [keyring.payload] };
  if (openSecret(row, stored, current) !== undefined) return 'fits';
  return openSecret(row, stored, keyring) === undefined ? 'other' : 'former';
}

async function* rowsOf(client: pg.Client, sql: string): AsyncGenerator<SealedRow> {
  const cursor = client.query(new Cursor<SealedRow>(sql));
  for (;;) {
    const rows = await cursor.read(ROWS_AT_ONCE);
    if (rows.length === 0) break;
    yield* rows;
  }
  await cursor.close();
}
