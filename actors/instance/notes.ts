/** Checkpoints of callers and log lines of steps, which do not affect the instance. */

import { toUnixMs } from '../../schema/common.js';
import type { LogLines } from '../../schema/worker.js';
import { LIMITS } from '../../src/base/limits.js';
import { isoTime } from '../../src/base/time.js';
import type { LogLine } from '../../src/core/progress.js';
import type { Turn } from '../runtime/turn.js';
import { type Handler, type LiveInstance, nextId, type Preparation } from './live-instance.js';
import { checkBytes } from './memory.js';
import { CHECKPOINT, STEP_LOG } from './output-tables.js';

/** The ids of one instance ascend, so the newest checkpoint has the highest. */
export const saveCheckpoint: Handler<'saveCheckpoint'> = (actor, turn, message) => {
  const data = JSON.stringify(message.body.checkpoint_data);
  checkBytes('checkpoint_data is', Buffer.byteLength(data), LIMITS.checkpointBytesMax);
  const id = nextId(actor);
  putCheckpoint(actor, turn, id, data);
  turn.reply(message.request, 201, `{"id":"${id}"}`);
};

export function putCheckpoint(actor: LiveInstance, turn: Turn, id: string, data: string): void {
  const { record, env } = actor;
  const pairs = `"id":"${id}","instance_id":"${record.id}","checkpoint_data":${data}`;
  turn.put(CHECKPOINT.insert, id, `{${pairs},"created_at":"${isoTime(env.now())}"}`);
}

/** Replies with the number of checkpoints that were, or would be, deleted. */
export const pruneCheckpoints: Preparation<'pruneCheckpoints'> = async (
  actor,
  { rows },
  { request, body: { keep, dry_run } },
) => {
  const { id } = actor.record;
  const count = Math.max(0, (await rows.checkpoints(id)) - keep);
  return (turn) => {
    if (count > 0 && !dry_run) turn.put(CHECKPOINT.prune, id, { instance_id: id, keep });
    turn.reply(request, 200, `{"count":${count}${dry_run ? ',"dry_run":true' : ''}}`);
    return undefined;
  };
};

/** A line of the handler `log`. A message that is not text is stored as JSON. */
export function addLine(actor: LiveInstance, turn: Turn, line: LogLine): void {
  const { blockId: block_id, level, message: raw } = line;
  const message = typeof raw === 'string' ? raw : JSON.stringify(raw);
  turn.addLine({ block_id, ts: isoTime(actor.env.now()), level, message });
}

export function addWorkerLines(
  actor: LiveInstance,
  turn: Turn,
  block_id: string,
  lines: LogLines | null | undefined,
): void {
  for (const { ts, level, message } of lines ?? []) {
    const at = (ts == null ? undefined : toUnixMs(ts)) ?? actor.env.now();
    turn.addLine({ block_id, ts: isoTime(at), level: level || 'info', message });
  }
}

/** Stores the lines of one message in one row. */
export function putLines(actor: LiveInstance, turn: Turn): void {
  if (turn.lines === undefined) return;
  const id = nextId(actor);
  turn.put(STEP_LOG.insert, id, {
    id,
    instance_id: actor.record.id,
    tenant: actor.record.tenant_id,
    entries: turn.lines,
    created_at: isoTime(actor.env.now()),
  });
}
