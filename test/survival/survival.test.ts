/**
 * A server with something of everything in it is killed, and everything goes on.
 *
 * Cost: 25 s, since it kills and restarts its server.
 */

import { test } from 'node:test';
import { useApi } from '../helpers/api.js';
import { killOnce } from '../helpers/survival.js';
import { approvals } from './approvals.js';
import { bulk } from './bulk.js';
import { changes, databaseAway } from './changes.js';
import { children } from './children.js';
import { collectedCreations } from './collected-creations.js';
import { cron } from './cron.js';
import { edits } from './edits.js';
import { events } from './events.js';
import { forEachItems } from './for-each.js';
import { money } from './money.js';
import { records } from './records.js';
import { releases } from './releases.js';
import { slots } from './slots.js';
import { steps } from './steps.js';
import { outageIsNoSilence, silentSinceReady, tasks } from './tasks.js';
import { timers } from './timers.js';

/** A claim is lost only where a row is about that, however busy the machine is. */
const env = {
  ENGINE_WORKER_REAPER_STALE_SECS: '3600',
  ENGINE_SHARDS: '3',
  ENGINE_WRITER_LANES: '3',
  ENGINE_ALLOW_INTERNAL_URLS: 'true',
  ENGINE_ENCRYPTION_KEY: 'ef'.repeat(32),
  ENGINE_WORKER_REAPER_TICK_SECS: '1',
};
const STALE_SECS = 2;

const api = useApi({ env });

// What waits in its check, or is waited for from outside, comes first.
killOnce(api, {
  'steps in flight': steps,
  timers,
  changes,
  children,
  'collected creations': collectedCreations,
  cron,
  bulk,
  'slots of concurrency keys': slots,
  events,
  tasks,
  approvals,
  edits,
  for_each: forEachItems,
  records,
  releases,
  money,
});

test('without the database, pages of changes are 503 and streams wait; both go on', () =>
  databaseAway(api));

test('a claim: silence counts from readiness, then the task is offered again', () => {
  const short = { ...env, ENGINE_WORKER_REAPER_STALE_SECS: String(STALE_SECS) };
  return silentSinceReady(api, STALE_SECS * 1_000, short);
});

test('An outage of the engine is not silence of a worker: silence counts from its end, and results from during it are accepted even after the `timeout` of the step', () =>
  outageIsNoSilence(api, STALE_SECS * 1_000));
