/**
 * What is computed for the plan of a migration: the difference between two definitions, and a replay
 * with both. The replay runs in a thread of its own: histories are as large as their instances made
 * them, and definitions are a stranger's.
 */

import type { Definitions } from './comparison.thread.js';
import { Comparisons } from './comparisons.js';
import type { FrontierVerdict } from './core/continuity/frontier.js';
import { semanticDiffText } from './core/releases/diff.js';
import { EngineError } from './errors.js';
import replayFrontier, { type FrontierTask } from './frontier.thread.js';
import type { Logger } from './log.js';
import { SideThread, TooCostly } from './side-thread.js';

export interface MigrationJudge {
  /** The `SemanticDiff` of two definitions as JSON. Rejects with EngineError 503. */
  compare(definitions: Definitions): Promise<string>;
  /** Rejects with EngineError 503 when it cannot be carried out now. */
  replay(task: FrontierTask): Promise<FrontierVerdict>;
}

/** For who has no threads. */
export const IN_PLACE: MigrationJudge = {
  compare: async ({ baseline, candidate }) => semanticDiffText(baseline, candidate),
  replay: async (task) => replayFrontier(task),
};

/** Of one replay with both versions; the longest within the ceiling of turns takes seconds. */
const REPLAY_MS = 10_000;
/** Of the thread: far more than the largest history that is taken needs, parsed. */
const HEAP_MIB = 512;
/** Replays that wait for the thread or are in it, each with a history in memory. */
const REPLAYS_MAX = 8;

export class ThreadedJudge implements MigrationJudge {
  readonly #comparisons = new Comparisons();
  readonly #log: Logger;
  readonly #thread: SideThread<FrontierTask, FrontierVerdict>;

  constructor(log: Logger, replayMs = REPLAY_MS) {
    this.#log = log;
    this.#thread = new SideThread({
      entry: new URL('./frontier.thread.js', import.meta.url),
      tasksMax: REPLAYS_MAX,
      busy: 'too many migrations are being planned',
      taskMs: replayMs,
      heapMib: HEAP_MIB,
    });
  }

  compare(definitions: Definitions): Promise<string> {
    return this.#comparisons.compare(definitions);
  }

  async replay(task: FrontierTask): Promise<FrontierVerdict> {
    try {
      return await this.#thread.run(task);
    } catch (error) {
      if (error instanceof EngineError) throw error;
      if (!(error instanceof TooCostly)) {
        this.#log.error({ instanceId: task.life.id, err: error }, 'defect');
      }
      return { passed: false, reason: 'it takes too long or too much' };
    }
  }

  /** Gives up what is being replayed. Idempotent. */
  async stop(): Promise<void> {
    await Promise.all([this.#thread.stop(), this.#comparisons.stop()]);
  }
}
