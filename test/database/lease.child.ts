/**
 * An engine as far as ownership goes: holds the lease, and has a flush of lane 0 in the making.
 * Arguments: connection string, owner, lease timing as JSON.
 */

import { realClock } from '../../src/clock.js';
import { acquireLease } from '../../src/db/lease.js';
import { createClient } from '../../src/db/pool.js';

const [connectionString = '', owner = '', timing = '{}'] = process.argv.slice(2);
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);
const silent = () => undefined;

const applicationName = `${owner} writer`;
const lease = await acquireLease({
  connectionString,
  owner,
  applicationName,
  laneCount: 2,
  clock: realClock,
  log: { info: silent, warn: silent, error: silent },
  onStandby: () => say({ standby: true }),
  signal: new AbortController().signal,
  timing: JSON.parse(timing),
});

const writer = createClient({ connectionString, applicationName, idleInTransactionTimeoutMs: 0 });
writer.on('error', silent);
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
