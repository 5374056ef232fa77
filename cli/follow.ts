/**
 * Follows an instance to its end: prints a line for each state and each output. Lines for people are ordered by the
 * time of the events, since the stream sends a state before the outputs that led to it.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { BlockOutput, InstanceEvent } from '../client/src/index.js';
import { type InstanceState, isEnded } from '../schema/states.js';
import { CommandError, EXIT, type ExitCode } from './exit.js';
import type { Session } from './session.js';
import { memberText, toned } from './table.js';
import { toneOf } from './tones.js';

/** @returns 0 if it completed, 1 if it failed or was cancelled @throws CommandError after the timeout */
export async function followInstance(session: Session, id: string): Promise<ExitCode> {
  const { client, out, options } = session;
  const { timeoutMs } = options;
  const late = timeoutMs === undefined ? [] : [AbortSignal.timeout(timeoutMs)];
  const signal = AbortSignal.any([...late, session.signal]);
  const events = client.instances.follow(id, { signal });
  for await (const event of out.isJson ? events : inOrder(events, () => out.place.now)) {
    if (out.isJson) out.jsonLine(event);
    else for (const line of linesOf(session, event)) out.line(line);
    if (event.type === 'done') return event.state === 'completed' ? EXIT.ok : EXIT.failed;
  }
  session.signal.throwIfAborted();
  throw new CommandError('timedOut', `instance ${id} did not end within ${timeoutMs} ms`);
}

type StateEvent = Extract<InstanceEvent, { type: 'state' }>;

/** How long earlier outputs may arrive after a state. */
const STATE_HELD_MS = 300;

/** Delays a state until a later event or a pause. */
export async function* inOrder(
  events: AsyncIterable<InstanceEvent>,
  now: () => number,
): AsyncGenerator<InstanceEvent> {
  const source = events[Symbol.asyncIterator]();
  let held: (StateEvent & { readonly updated_at: string }) | undefined;
  for (let next = source.next(); ; ) {
    // A final state is always followed by another event: `done`, at the latest.
    const came = await (held === undefined || isEnded(held.state)
      ? next
      : Promise.race([next, pause(STATE_HELD_MS, undefined, { ref: false })]));
    const event: InstanceEvent | undefined = came?.value;
    const isEarlier =
      event?.type === 'output' && held !== undefined && !isBefore(held, event.output.created_at);
    if (held !== undefined && !isEarlier) {
      yield held;
      held = undefined;
    }
    if (came === undefined) continue;
    if (came.done === true) return;
    next = source.next();
    // It is awaited in a later iteration.
    next.catch(() => undefined);
    if (event?.type === 'state') {
      held = { ...event, updated_at: event.updated_at ?? new Date(now()).toISOString() };
    } else if (event !== undefined) yield event;
  }
}

/** All outputs belong before a final state. */
const isBefore = (
  { state, updated_at }: { state: InstanceState; updated_at: string },
  at: string,
) => !isEnded(state) && updated_at < at;

function linesOf(session: Session, event: InstanceEvent): string[] {
  const { out } = session;
  if (event.type === 'done') {
    const { failure } = event;
    if (failure === undefined) return [];
    return [`  ${memberText(failure.path)}: ${memberText(failure.message)}`];
  }
  const [at, text] =
    event.type === 'state'
      ? [event.updated_at ?? out.place.now, toned(event.state, toneOf(event.state), out.paint)]
      : [event.output.created_at, outputText(session, event.output)];
  return [`${out.paint.dim(timeOfDay(new Date(at)))} ${text}`];
}

/** At most one line of the terminal. */
function outputText({ out }: Session, { block_id, output }: BlockOutput): string {
  const width = (out.place.width ?? Number.POSITIVE_INFINITY) - TIME_CELLS;
  return out.cut(`${memberText(block_id)} ${memberText(output)}`, width);
}

const TIME_CELLS = 'HH:MM:SS '.length;

export function timeOfDay(at: Date): string {
  const digits = (value: number) => String(value).padStart(2, '0');
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(digits).join(':');
}
