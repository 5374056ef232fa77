/**
 * Where capsules are sealed and opened: small ones at once, all others in a thread of its own. One
 * capsule at a time is in it.
 */

import type { CapsuleTask } from './capsule.thread.js';
import {
  type OpenedCapsule,
  type OpenTask,
  openSealed,
  type SealedPayload,
  type SealTask,
  sealCapsule,
} from './capsule-work.js';
import type { Imported } from './core/continuity/capsule-import.js';
import type { Parsed } from './core/continuity/parsed.js';
import { tooLarge } from './errors.js';
import { SideThread, TooCostly } from './side-thread.js';

export interface CapsuleMill {
  /** The message when the payload is over a bound. Rejects with EngineError 413 or 503. */
  seal(task: SealTask): Promise<Parsed<SealedPayload>>;
  /** Rejects with EngineError 413 or 503. */
  open(task: OpenTask): Promise<Imported<OpenedCapsule>>;
}

/** For who has no threads. */
export const IN_PLACE: CapsuleMill = {
  seal: async (task) => sealCapsule(task),
  open: async (task) => openSealed(task),
};

/** Ten milliseconds of work: longer than a turn should take, shorter than the way to a thread. */
const IN_PLACE_BYTES_MAX = 256 * 1_024;
/** Ten times what the largest payload takes on a machine that is busy. */
const TASK_MS = 60_000;
/** Objects take ten times the room of their text. */
const HEAP_MIB = 1_024;
/** Capsules that wait for the thread or are in it, each in memory. */
const TASKS_MAX = 8;

export class ThreadedMill implements CapsuleMill {
  readonly #thread = new SideThread<CapsuleTask, unknown>({
    entry: new URL('./capsule.thread.js', import.meta.url),
    tasksMax: TASKS_MAX,
    busy: 'too many capsules are being worked on',
    taskMs: TASK_MS,
    heapMib: HEAP_MIB,
  });

  async seal(task: SealTask): Promise<Parsed<SealedPayload>> {
    const bytes = task.outputs.reduce((sum, { output_size }) => sum + output_size, 0);
    if (bytes <= IN_PLACE_BYTES_MAX) return sealCapsule(task);
    return (await this.#ask({ kind: 'seal', task })) as Parsed<SealedPayload>;
  }

  async open(task: OpenTask): Promise<Imported<OpenedCapsule>> {
    if (task.sealed.length <= IN_PLACE_BYTES_MAX) return openSealed(task);
    return (await this.#ask({ kind: 'open', task })) as Imported<OpenedCapsule>;
  }

  async #ask(task: CapsuleTask): Promise<unknown> {
    try {
      return await this.#thread.run(task);
    } catch (error) {
      if (!(error instanceof TooCostly)) throw error;
      throw tooLarge('the capsule takes too long or too much memory');
    }
  }

  /** Gives up what is being worked on. Idempotent. */
  stop(): Promise<void> {
    return this.#thread.stop();
  }
}
