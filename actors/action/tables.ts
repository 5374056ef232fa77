/** Actions of people and keys, newer than the retention. Pure. */

import { insert, mutations } from '../../src/db/mutation.js';
import { prune } from '../../src/db/statements.js';
import { table } from '../../src/db/table.js';

export const ACTIONS = table('actions', ['id'], {
  id: 'uuid',
  tenant_id: 'text',
  at: 'timestamptz',
  by: 'text',
  key_id: 'text?',
  operation: 'text',
  kind: 'text',
  target: 'text',
  details: 'json',
});

export const ACTION = mutations('action', {
  // A request may have several units: the first one has its action.
  insert: insert(ACTIONS, {}, 'nothing'),
  prune: prune(ACTIONS, ['at', 'id']),
});

export const ACTION_STORE = [ACTION];
