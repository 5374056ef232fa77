/**
 * Follows an instance to its end: a line for each state and each output. A stream that is cut off is opened
 * again, and what was told before is not told twice.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { type BlockOutput, EngineError, type InstancesListQuery } from '../client/src/index.js';
import { CommandError, EXIT, type ExitCode } from './exit.js';
import type { Session } from './session.js';
import { memberText, toned } from './table.js';
import { toneOf } from './tones.js';

type State = NonNullable<InstancesListQuery['state']>[number];

interface Told {
  readonly state: State;
  readonly failure?: { readonly message: string; readonly path?: string | null };
}

/** Soon enough for a person who looks on. */
const PACE_MS = 100;
const AGAIN_MS = 500;

/** @returns 0 when it completed, 1 when it failed or was cancelled @throws CommandError when time is up */
export async function followInstance(session: Session, id: string): Promise<ExitCode> {
  const { timeoutMs } = session.options;
  const late = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
  const signal = late === undefined ? session.signal : AbortSignal.any([late, session.signal]);
  try {
    return await follow(session, id, signal);
  } catch (error) {
    if (late?.aborted !== true) throw error;
    throw new CommandError('timedOut', `instance ${id} had not ended within ${timeoutMs} ms`);
  }
}

async function follow(session: Session, id: string, signal: AbortSignal): Promise<ExitCode> {
  const seen = new Set<string>();
  let state: State | undefined;
  for (;;) {
    try {
      const events = session.client.instances.stream(
        id,
        { poll_ms: PACE_MS },
        { signal, timeoutMs: 0 },
      );
      for await (const { event, data } of events) {
        const told: unknown = JSON.parse(data);
        if (event === 'done') return ending(session, told as Told);
        if (event === 'error')
          throw new CommandError('notFound', (told as { error: string }).error);
        if (event === 'state' && (told as Told).state !== state) {
          state = (told as Told).state;
          tell(session, event, told as Told, stateText(session, told as Told));
        } else if (event === 'output' && !seen.has((told as BlockOutput).id)) {
          seen.add((told as BlockOutput).id);
          tell(session, event, told as object, outputText(session, told as BlockOutput));
        }
      }
    } catch (error) {
      signal.throwIfAborted();
      if (
        !(error instanceof EngineError) ||
        error.code !== 'CLIENT_NETWORK' ||
        state === undefined
      ) {
        throw error;
      }
    }
    await pause(AGAIN_MS, undefined, { signal });
  }
}

function tell({ out }: Session, event: string, told: object, text: string): void {
  if (out.isJson) out.jsonLine({ event, ...told });
  else out.line(`${out.paint.dim(timeOfDay(new Date(out.place.now)))} ${text}`);
}

function stateText({ out }: Session, { state }: Told): string {
  return toned(state, toneOf(state), out.paint);
}

/** At most a line of the terminal. */
function outputText({ out }: Session, { block_id, output }: BlockOutput): string {
  const width = (out.place.width ?? Number.POSITIVE_INFINITY) - TIME_CELLS;
  return out.cut(`${memberText(block_id)} ${memberText(output)}`, width);
}

const TIME_CELLS = 'HH:MM:SS '.length;

function ending({ out }: Session, told: Told): ExitCode {
  const { state, failure } = told;
  if (out.isJson) out.jsonLine({ event: 'done', ...told });
  else if (failure !== undefined)
    out.line(`  ${memberText(failure.path)}: ${memberText(failure.message)}`);
  return state === 'completed' ? EXIT.ok : EXIT.failed;
}

export function timeOfDay(at: Date): string {
  const digits = (value: number) => String(value).padStart(2, '0');
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(digits).join(':');
}
