/**
 * Replays ended runs in a thread of its own: a definition is a stranger's, and one that takes too long
 * or too much memory costs that thread only. One run at a time is in memory.
 */

import type { Verdict } from './core/releases/replay.js';
import type { StoredRun } from './db/reads/replay-reads.js';
import { EngineError, unavailable } from './errors.js';
import type { Logger } from './log.js';
import type { Definitions, ReplayAnswer, ReplayTask } from './replay.thread.js';
import { SideThread, TooCostly } from './side-thread.js';

export interface ReplaysOptions {
  readonly unpoliciedRetry: ReplayTask['unpoliciedRetry'];
  readonly log: Logger;
  /** How long one run may take; default `RUN_MS`. */
  readonly runMs?: number;
  /** Of the thread; default `HEAP_MIB`. */
  readonly heapMib?: number;
}

/** Of one run: a usual one takes milliseconds, and the longest within the ceiling of turns seconds. */
export const RUN_MS = 5_000;
/** Of the start of the thread and of compiling two definitions, on a machine that is busy. */
const START_MS = 20_000;
/** Far more than the largest run that is taken needs (`RUN_BYTES_MAX`), parsed. */
const HEAP_MIB = 512;
/** Validations follow one another, so that tasks do. */
const TASKS_MAX = 8;

export class Replays {
  readonly #options: ReplaysOptions;
  readonly #thread: SideThread<ReplayTask, ReplayAnswer>;
  /** A thread is there that has compiled what it is asked about. */
  #isReady = false;

  constructor(options: ReplaysOptions) {
    this.#options = options;
    this.#thread = new SideThread({
      entry: new URL('./replay.thread.js', import.meta.url),
      tasksMax: TASKS_MAX,
      busy: 'too many runs are being replayed',
      heapMib: options.heapMib ?? HEAP_MIB,
    });
  }

  /**
   * Compiles the definitions; resolves with what is wrong with the candidate, if anything is.
   *
   * @throws EngineError 503 when the engine stops, or the thread does not come up in time
   */
  async prepare(definitions: Definitions): Promise<string | undefined> {
    this.#isReady = false;
    try {
      const answer = await this.#ask({ definitions }, START_MS);
      this.#isReady = true;
      return answer.kind === 'broken' ? answer.message : undefined;
    } catch (error) {
      if (!(error instanceof TooCostly)) throw error;
      throw unavailable('ENG_OVERLOADED', 'the definitions take too long to be compiled');
    }
  }

  /**
   * @param definitions those that were prepared last
   * @throws EngineError 503 when the engine stops
   */
  async replay(definitions: Definitions, run: StoredRun): Promise<Verdict> {
    // The thread that the run before has cost: its start is not part of the time of this one.
    if (!this.#isReady) await this.prepare(definitions);
    try {
      const { runMs = RUN_MS } = this.#options;
      const answer = await this.#ask({ definitions, run }, runMs);
      if (answer.kind !== 'broken' && answer.kind !== 'ready') return answer;
      return { kind: 'inconclusive', reason: 'the candidate does not compile' };
    } catch (error) {
      if (error instanceof EngineError) throw error;
      this.#isReady = false;
      if (error instanceof TooCostly)
        return { kind: 'inconclusive', reason: 'it takes too long or too much' };
      this.#options.log.error({ instanceId: run.id, err: error }, 'defect in a replay');
      return { kind: 'inconclusive', reason: 'the replay threw' };
    }
  }

  /** Gives up what is being replayed. Idempotent. */
  stop(): Promise<void> {
    return this.#thread.stop();
  }

  #ask(task: Omit<ReplayTask, 'unpoliciedRetry'>, ms: number): Promise<ReplayAnswer> {
    const { unpoliciedRetry } = this.#options;
    return this.#thread.run({ ...task, unpoliciedRetry }, ms);
  }
}
