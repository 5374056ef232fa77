/**
 * What is kept with an instance and changes nothing of its course: checkpoints that callers save, and
 * the lines that its steps log.
 */

import { toUnixMs } from '../../schema/common.js';
import type { LogLines } from '../../schema/worker.js';
import { LIMITS } from '../../src/config.js';
import type { JsonValue } from '../../src/core/json.js';
import type { LogLine } from '../../src/core/progress.js';
import { isoTime } from '../../src/core/time.js';
import { tooLarge } from '../../src/errors.js';
import type { Turn } from '../runtime/turn.js';
import { type LiveInstance, nextId } from './live-instance.js';
import type { InstanceRequest } from './messages.js';
import type { Operation, Sources } from './operation.js';

type Save = Extract<InstanceRequest, { kind: 'saveCheckpoint' }>;
type Prune = Extract<InstanceRequest, { kind: 'pruneCheckpoints' }>;

/** Ids of one instance ascend: the newest checkpoint is the one with the highest. */
export function saveCheckpoint(actor: LiveInstance, turn: Turn, message: Save): undefined {
  const data = JSON.stringify(message.body.checkpoint_data);
  const bytes = Buffer.byteLength(data);
  if (bytes > LIMITS.checkpointBytesMax) {
    throw tooLarge(`checkpoint_data is ${bytes} bytes, the limit is ${LIMITS.checkpointBytesMax}`);
  }
  const id = nextId(actor);
  turn.put(
    'checkpoint.insert',
    id,
    `{"id":"${id}","instance_id":"${actor.record.id}","checkpoint_data":${data},` +
      `"created_at":"${isoTime(actor.env.now())}"}`,
  );
  turn.reply(message.request, 201, `{"id":"${id}"}`);
}

/** Answers with how many were deleted: they are counted when all that were saved are rows. */
export async function pruneCheckpoints(
  actor: LiveInstance,
  { rows }: Sources,
  { request, body: { keep } }: Prune,
): Promise<Operation> {
  const { id } = actor.record;
  const count = Math.max(0, (await rows.checkpoints(id)) - keep);
  return (turn) => {
    if (count > 0) turn.put('checkpoint.prune', id, { instance_id: id, keep });
    turn.reply(request, 200, `{"count":${count}}`);
    return undefined;
  };
}

/** What the handler `log` wrote: text as it is, anything else as compact JSON. */
export function noteLine(actor: LiveInstance, turn: Turn, line: LogLine): void {
  const { blockId, level, message } = line;
  turn.addLine({
    block_id: blockId,
    ts: isoTime(actor.env.now()),
    level,
    message: textOf(message),
  });
}

function textOf(message: JsonValue): string {
  return typeof message === 'string' ? message : JSON.stringify(message);
}

/** What a worker logged while it worked on a step of this block. */
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
  turn.put('stepLog.insert', id, {
    id,
    instance_id: actor.record.id,
    entries: turn.lines,
    created_at: isoTime(actor.env.now()),
  });
}
