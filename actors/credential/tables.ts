/** The table of credentials. Pure. */

import { clear, mutations, set } from '../../src/db/mutation.js';
import { columnsBut, table } from '../../src/db/table.js';

export const CREDENTIALS = table('credentials', ['tenant_id', 'id'], {
  tenant_id: 'text',
  id: 'text',
  name: 'text',
  kind: 'text',
  description: 'text?',
  value: 'json',
  refresh_url: 'text?',
  refresh_token: 'json?',
  enabled: 'boolean',
  expires_at: 'timestamptz?',
  created_at: 'timestamptz',
  updated_at: 'timestamptz',
});

export const CREDENTIAL = mutations('credential', {
  clear: clear(CREDENTIALS),
  set: set(CREDENTIALS, columnsBut(CREDENTIALS, 'tenant_id', 'id', 'created_at')),
});

export const CREDENTIAL_STORE = [CREDENTIAL];
