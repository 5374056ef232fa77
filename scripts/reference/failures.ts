/** Why instances fail and what they wait for, in the words of the schemas. */

import { AGAIN_KINDS, PARENT_STANDS, WAIT_KINDS, type WaitKind } from '../../schema/explanation.js';
import { FAILURE_CODES } from '../../schema/failure.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

/** What a wait has beside the members of every wait. */
const MEMBERS: { readonly [Kind in WaitKind]: string } = {
  pause: '',
  start: '',
  handoff: '`reason`: `transferring`, `moved`, `imported`',
  slot: '`key`, `max_concurrency`, `holders` (20 at most), `ahead`: how many wait before it',
  signal: '',
  task: '`task_id`, `handler`, `queue`, `lost_claims` if there were some, `workers`: how many that may take it polled within 60 s, and when the last one did',
  worker: '`task_id`, `worker_id`, `heartbeat_at`, `lost_claims` if there were some',
  handler: '`handler`',
  approval: '`approval_id`, `prompt`, `choices`: the values that can be answered',
  sleep: '',
  delay: '',
  retry: '`max_attempts`, `last_error`',
  rate_limit: '`key`, `limit`; `until` is when the permit is expected',
  event: '`name`, `key` if it waits for events with a correlation key',
  child: '`child_id`: absent until it is made; `child_state`',
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
    waits: table(['kind', 'what it waits for', 'further members'], rows),
    'runs-again': table(['kind', 'what runs again'], again),
    'parent-stands': table(['stands', 'what the parent makes of it'], stands),
  };
}
