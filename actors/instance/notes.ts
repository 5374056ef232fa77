/** Checkpoints that callers save, and lines that steps log: stored with the instance without effect on it. */

import { toUnixMs } from '../../schema/common.js';
import type { LogLines } from '../../schema/worker.js';
import { LIMITS } from '../../src/base/limits.js';
import { isoTime } from '../../src/base/time.js';
import type { LogLine } from '../../src/core/progress.js';
import type { Turn } from '../runtime/turn.js';
import { type Handler, type LiveInstance, nextId, type Preparation } from './live-instance.js';
import { checkBytes } from './memory.js';
import { CHECKPOINT, STEP_LOG } from './output-tables.js';

/** Ids of one instance ascend: the newest checkpoint is the one with the highest. */
export const saveCheckpoint: Handler<'saveCheckpoint'> = (actor, turn, message) => {
  const data = JSON.stringify(message.body.checkpoint_data);
  checkBytes('checkpoint_data is', Buffer.byteLength(data), LIMITS.checkpointBytesMax);
  const id = nextId(actor);
  putCheckpoint(actor, turn, id, data);
  turn.reply(message.request, 201, `{"id":"${id}"}`);
};

/** @param data as JSON */
export function putCheckpoint(actor: LiveInstance, turn: Turn, id: string, data: string): void {
  const { record, env } = actor;
  const pairs = `"id":"${id}","instance_id":"${record.id}","checkpoint_data":${data}`;
  turn.put(CHECKPOINT.insert, id, `{${pairs},"created_at":"${isoTime(env.now())}"}`);
}

/** Answers with the number of deleted checkpoints. */
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

/** A line of the handler `log`: text as it is, anything else as compact JSON. */
export function noteLine(actor: LiveInstance, turn: Turn, line: LogLine): void {
  const { blockId: block_id, level, message: said } = line;
  const message = typeof said === 'string' ? said : JSON.stringify(said);
  turn.addLine({ block_id, ts: isoTime(actor.env.now()), level, message });
}

/** Lines that a worker logged for a step of this block. */
export function noteWorkerLines(
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

/** The lines of one message are one row. */
export function putLines(actor: LiveInstance, turn: Turn): void {
  if (turn.lines === undefined) return;
  const id = nextId(actor);
  turn.put(STEP_LOG.insert, id, {
    id,
    instance_id: actor.record.id,
    entries: turn.lines,
    created_at: isoTime(actor.env.now()),
  });
}
