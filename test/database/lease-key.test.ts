/** Whether a server has the key of the secrets in its database, told by the real rows. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createKeyring, type Keyring } from '../../src/core/sealing/keys.js';
import { storeSecret } from '../../src/core/sealing/sealing.js';
import { checkSealingKey } from '../../src/db/lease-key.js';
import { withClient } from '../../src/db/pool.js';
import { createTestDatabase } from '../helpers/database.js';

const [ONE, TWO] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const PLACE = { id: 'mail', tenant_id: 't' };
const COUNTS = { credentials: 1, triggers: 0, subscriptions: 0, endpoints: 0 };

test('a wrong encryption key is detected as long as a secret is sealed with the former one, also during a key change', async () => {
  const database = await createTestDatabase();
  const { connectionString } = database;
  const look = (keyring?: Keyring) => checkSealingKey(connectionString, keyring);
  const seal = async (keyring: Keyring) => {
    const value = JSON.stringify(storeSecret(PLACE, 'sesame', keyring, Buffer.alloc(12, 7)));
    await withClient({ connectionString, applicationName: 'test' }, (client) =>
      client.query(
        `insert into credentials (tenant_id, id, name, kind, value, enabled, created_at, updated_at)
         values ('t', 'mail', 'mail', 'api_key', $1, true, now(), now())
         on conflict (tenant_id, id) do update set value = excluded.value`,
        [value],
      ),
    );
  };
  const [old, both, young] = [createKeyring(ONE), createKeyring(TWO, ONE), createKeyring(TWO)];
  try {
    assert.equal((await look()).state, 'none');
    await seal(old);
    assert.deepEqual(await look(), { state: 'other', counts: COUNTS });
    assert.equal((await look(young)).state, 'other');
    assert.equal((await look(old)).state, 'fits');
    // Noted: nothing is looked at.
    assert.deepEqual(await look(old), { state: 'fits', counts: {} });
    assert.deepEqual(await look(young), { state: 'other', counts: COUNTS });
    assert.deepEqual(await look(both), { state: 'former', counts: COUNTS });
    await seal(young);
    assert.equal((await look(both)).state, 'fits');
    assert.deepEqual(await look(young), { state: 'fits', counts: {} });
    assert.equal((await look(old)).state, 'other');
  } finally {
    await database.drop();
  }
});
