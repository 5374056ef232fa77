/** The table of triggers. Pure. */

import { clear, mutations, set } from '../../src/db/mutation.js';
import { columnsBut, table } from '../../src/db/table.js';

export const TRIGGERS = table('triggers', ['slug'], {
  slug: 'text',
  tenant_id: 'text',
  namespace: 'text',
  sequence_name: 'text?',
  version: 'integer?',
  trigger_type: 'text',
  secret: 'json?',
  config: 'json',
  publish: 'json?',
  verify: 'json?',
  event_name: 'text?',
  enabled: 'boolean',
  created_at: 'timestamptz',
  updated_at: 'timestamptz',
});

export const TRIGGER = mutations('trigger', {
  clear: clear(TRIGGERS),
  set: set(
    TRIGGERS,
    columnsBut(TRIGGERS, 'slug', 'tenant_id', 'namespace', 'trigger_type', 'created_at'),
  ),
});

export const TRIGGER_STORE = [TRIGGER];
