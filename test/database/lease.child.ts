/**
 * An engine as far as ownership goes: holds the lease, and has a flush of lane 0 in the making.
 * Arguments: connection string, owner, lease timing as JSON.
 */

import { acquireLease } from '../../src/db/lease.js';
import { createClient } from '../../src/db/pool.js';
import { leaseOptions } from '../helpers/writer.js';

const [connectionString = '', owner = '', timing = '{}'] = process.argv.slice(2);
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

const more = { onStandby: () => say({ standby: true }), timing: JSON.parse(timing) };
const options = leaseOptions(connectionString, owner, more);
const lease = await acquireLease(options);

const writer = createClient({ ...options, idleInTransactionTimeoutMs: 0 });
writer.on('error', () => undefined);
await writer.connect();
await writer.query('begin');
await writer.query('select from lanes where lane = 0 and epoch = $1 for no key update', [
  lease.epoch,
]);
say({ epoch: lease.epoch });

lease.onLost(async (reason) => {
  const commit = await writer.query('commit').then(
    () => 'done',
    () => 'refused',
  );
  say({ lost: reason, commit });
});
