/** Statistics of instances and tasks (docs/operate/statistics.md). */

import {
  type Activity,
  FAILURE_GROUPS_MAX,
  type FailureGroups,
  INTERVALS_MAX,
  OUTCOMES_LOOKED_AT_MAX,
  QUEUED_TASKS_LOOKED_AT_MAX,
  type Queues,
  type ReleaseSeries,
} from '../../../schema/statistics.js';
import { isoTime } from '../../../src/base/time.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import { jsonReply, listQuery, listTenant, type Operation } from '../../../src/http/operation.js';
import { type OpenPolls, queuesOf, releasePoints } from '../../queue/core/statistics.js';
import type { queueOperations } from '../../queue/operations.js';
import { releaseNamed } from '../../release/front/operations.js';
import type { Shards } from '../../runtime/shards.js';
import { ACTIVITY_KEPT_MS } from '../activity.js';
import { ActivityLines } from '../core/activity.js';
import {
  failuresByReason,
  openTasksByQueue,
  outcomesOverTime,
  storedMinutes,
  workersByQueue,
} from './reads.js';

const failures: Operation<'instances.failures'> = async (deps, call) => {
  const { groups, lookedAt, isComplete } = await failuresByReason(deps.reads, listQuery(call));
  const answer: FailureGroups = {
    groups: groups.slice(0, FAILURE_GROUPS_MAX),
    looked_at: lookedAt,
    complete: isComplete && groups.length <= FAILURE_GROUPS_MAX,
  };
  return jsonReply(JSON.stringify(answer));
};

type Kernel = Pick<FrontKernel<Shards<typeof queueOperations>>, 'client' | 'settings'>;

/** @param polls waiting polls of every shard (see `openPollsOf`) */
function queueList(polls: (tenant: string) => Promise<OpenPolls[]>): Operation<'queues.list'> {
  return async ({ reads, now }, call) => {
    const tenant = listTenant(call, call.query.tenant_id);
    const since = Math.max(0, now() - call.query.alive_within_secs * 1_000);
    const tasks = await openTasksByQueue(reads, tenant);
    const servers = await workersByQueue(reads, tenant, since);
    const answer: Queues = {
      queues: queuesOf(tasks, servers, await polls(tenant ?? '')),
      complete: (tasks[0]?.looked_at ?? 0) <= QUEUED_TASKS_LOOKED_AT_MAX,
    };
    return jsonReply(JSON.stringify(answer));
  };
}

/** Shards are asked on demand, so that polls need no reports. */
function openPollsOf({ client, settings: { shards } }: Kernel) {
  return async (tenant: string): Promise<OpenPolls[]> => {
    const asked = Array.from({ length: shards }, async (_, shard) => {
      const { body } = await client.ask(shard, 'queues.openPolls', tenant, '', undefined);
      return JSON.parse(body) as OpenPolls[];
    });
    return (await Promise.all(asked)).flat();
  };
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const activity: Operation<'activity.get'> = async (deps, call) => {
  const { query } = call;
  const now = deps.now();
  const asked = query.since === undefined ? now - HOUR_MS : Date.parse(query.since);
  const kept = Math.min(now, Math.max(asked, now - ACTIVITY_KEPT_MS));
  const since = kept - (kept % MINUTE_MS);
  const least = Math.ceil((now - since) / INTERVALS_MAX / MINUTE_MS) * MINUTE_MS;
  const stepMs = Math.max(query.step * 1_000, least);
  const lines = new ActivityLines(since, now, stepMs);
  const tenant = listTenant(call, query.tenant_id);
  const { isComplete } = await storedMinutes(deps.reads, tenant, since, (it) => lines.add(it));
  const answer: Activity = {
    since: isoTime(since),
    step_secs: stepMs / 1_000,
    intervals: lines.intervals,
    complete: isComplete,
  };
  return jsonReply(JSON.stringify(answer));
};

/** Intervals of a default step. */
const INTERVALS = 60;

/** A release whose canary has not begun has no points. */
const series: Operation<'releases.series'> = async (deps, call) => {
  const release = await releaseNamed(deps, call);
  const now = deps.now();
  const since = Date.parse(release.canary_started_at ?? isoTime(now));
  const age = Math.max(1, Math.ceil((now - since) / 1_000));
  const asked = call.query.step ?? Math.ceil(age / INTERVALS);
  const step = Math.max(asked, Math.ceil(age / INTERVALS_MAX));
  const rows = await outcomesOverTime(deps.reads, release.id, since, step);
  const answer: ReleaseSeries = {
    since: isoTime(since),
    step_secs: step,
    points: releasePoints(rows, release.candidate_sequence_id),
    complete: (rows[0]?.looked_at ?? 0) <= OUTCOMES_LOOKED_AT_MAX,
  };
  return jsonReply(JSON.stringify(answer));
};

export function openActivityFront(kernel: Kernel) {
  return {
    operations: {
      'instances.failures': failures,
      'queues.list': queueList(openPollsOf(kernel)),
      'activity.get': activity,
      'releases.series': series,
    },
  } satisfies FrontRoom;
}
