/**
 * What is kept with an instance and changes nothing of its course: checkpoints that callers save, and
 * the lines that its steps log (spec/01 §5.4 and §5.7, spec/03 §2.3).
 */

import { LIMITS } from '../src/config.js';
import type { JsonValue } from '../src/core/json.js';
import type { LogLine } from '../src/core/progress.js';
import { isoTime } from '../src/core/time.js';
import { tooLarge } from '../src/errors.js';
import type { InstanceActor } from './instance.js';
import type { InstanceRequest } from './instance-messages.js';
import type { Operation, Sources } from './preparation.js';
import type { LoggedLine, Turn } from './turn.js';

type Save = Extract<InstanceRequest, { kind: 'checkpoint.save' }>;
type Prune = Extract<InstanceRequest, { kind: 'checkpoint.prune' }>;

/** A line as a worker sends it, with what it left out filled in. */
export type WorkerLine = Omit<LoggedLine, 'block_id'>;

/** Ids of one instance ascend: the newest checkpoint is the one with the highest. */
export function saveCheckpoint(actor: InstanceActor, turn: Turn, message: Save): undefined {
  const data = JSON.stringify(message.data);
  const bytes = Buffer.byteLength(data);
  if (bytes > LIMITS.checkpointBytesMax) {
    throw tooLarge(`checkpoint_data is ${bytes} bytes, the limit is ${LIMITS.checkpointBytesMax}`);
  }
  const id = actor.nextId();
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
  actor: InstanceActor,
  { rows }: Sources,
  { request, keep }: Prune,
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
export function noteLine(actor: InstanceActor, turn: Turn, line: LogLine): void {
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
export function noteWorkerLines(turn: Turn, blockId: string, lines: readonly WorkerLine[]): void {
  for (const line of lines) turn.addLine({ block_id: blockId, ...line });
}

/** The lines of one message are one row. */
export function putLines(actor: InstanceActor, turn: Turn): void {
  if (turn.lines === undefined) return;
  const id = actor.nextId();
  turn.put('stepLog.insert', id, {
    id,
    instance_id: actor.record.id,
    entries: turn.lines,
    created_at: isoTime(actor.env.now()),
  });
}
