/** Follows an instance to its end, for people and for programs: a line for each state and each output. */

import type { BlockOutput, InstanceEvent } from '../client/src/index.js';
import { CommandError, EXIT, type ExitCode } from './exit.js';
import type { Session } from './session.js';
import { memberText, toned } from './table.js';
import { toneOf } from './tones.js';

/** @returns 0 when it completed, 1 when it failed or was cancelled @throws CommandError when time is up */
export async function followInstance(session: Session, id: string): Promise<ExitCode> {
  const { client, out, options } = session;
  const { timeoutMs } = options;
  const late = timeoutMs === undefined ? [] : [AbortSignal.timeout(timeoutMs)];
  const signal = AbortSignal.any([...late, session.signal]);
  for await (const event of client.instances.follow(id, { signal })) {
    if (out.isJson) out.jsonLine(event);
    else for (const line of linesOf(session, event)) out.line(line);
    if (event.type === 'done') return event.state === 'completed' ? EXIT.ok : EXIT.failed;
  }
  session.signal.throwIfAborted();
  throw new CommandError('timedOut', `instance ${id} had not ended within ${timeoutMs} ms`);
}

function linesOf(session: Session, event: InstanceEvent): string[] {
  const { out } = session;
  if (event.type === 'done') {
    const { failure } = event;
    if (failure === undefined) return [];
    return [`  ${memberText(failure.path)}: ${memberText(failure.message)}`];
  }
  const text =
    event.type === 'state'
      ? toned(event.state, toneOf(event.state), out.paint)
      : outputText(session, event.output);
  return [`${out.paint.dim(timeOfDay(new Date(out.place.now)))} ${text}`];
}

/** At most a line of the terminal. */
function outputText({ out }: Session, { block_id, output }: BlockOutput): string {
  const width = (out.place.width ?? Number.POSITIVE_INFINITY) - TIME_CELLS;
  return out.cut(`${memberText(block_id)} ${memberText(output)}`, width);
}

const TIME_CELLS = 'HH:MM:SS '.length;

export function timeOfDay(at: Date): string {
  const digits = (value: number) => String(value).padStart(2, '0');
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(digits).join(':');
}
