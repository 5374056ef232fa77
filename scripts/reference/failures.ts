/** Tables of failure codes, waits, and the effect of retries. */

import { AGAIN_KINDS, PARENT_STANDS, WAIT_KINDS, type WaitKind } from '../../schema/explanation.js';
import { FAILURE_CODES } from '../../schema/failure.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

/** Members of a wait besides those of every wait. */
const MEMBERS: { readonly [Kind in WaitKind]: string } = {
  pause: '',
  start: '',
  handoff: '`reason`: `transferring`, `moved`, `imported`',
  slot: '`key`, `max_concurrency`, `holders` (at most 20), `ahead` in the queue',
  throttle: '`key`, `ahead` in the queue',
  signal: '',
  task: '`task_id`, `handler`, `queue`, `lost_claims` if any, `workers` that polled for it within 60 s, and the last poll',
  worker: '`task_id`, `worker_id`, `heartbeat_at`, `lost_claims` if any',
  handler: '`handler`',
  approval: '`approval_id`, `prompt`, `choices`: possible answers',
  sleep: '',
  delay: '',
  retry: '`max_attempts`, `last_error`',
  rate_limit: '`key`, `limit`; `until`: expected time of the permit',
  event: '`name`, `key`: correlation key, if any',
  child: '`child_id`: absent until it exists; `child_state`',
  engine: '',
};

export function failureRegions(): Regions {
  const rows = Object.entries(FAILURE_CODES).map(([name, meaning]) => [code(name), meaning]);
  return { 'failure-codes': table(['code', 'meaning'], rows) };
}

export function waitRegions(): Regions {
  const kinds = Object.keys(WAIT_KINDS) as WaitKind[];
  const rows = kinds.map((kind) => [code(kind), WAIT_KINDS[kind], MEMBERS[kind]]);
  const again = Object.entries(AGAIN_KINDS).map(([kind, meaning]) => [code(kind), meaning]);
  const stands = Object.entries(PARENT_STANDS).map(([word, meaning]) => [code(word), meaning]);
  return {
    waits: table(['kind', 'waits for', 'further members'], rows),
    'runs-again': table(['kind', 'runs again'], again),
    'parent-stands': table(['stands', 'the parent'], stands),
  };
}
