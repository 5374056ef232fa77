/**
 * Compares stored definitions. Those of usual sizes are compared in place, within a few milliseconds;
 * larger ones in a thread of their own: two definitions of 10 MiB take most of a second, for which
 * nobody else should wait.
 */

import type { Definitions } from './comparison.thread.js';
import { semanticDiffText } from './core/releases/diff.js';
import { SideThread } from './side-thread.js';

/** Characters of both definitions: some 500 steps each, which take 2 to 10 ms. */
export const IN_PLACE_MAX = 128 * 1024;

/** Comparisons that wait for the thread or are in it, each with two definitions in memory. */
export const COMPARISONS_MAX = 8;

export class Comparisons {
  readonly #thread = new SideThread<Definitions, string>({
    entry: new URL('./comparison.thread.js', import.meta.url),
    tasksMax: COMPARISONS_MAX,
    busy: 'too many large sequences are being compared',
  });

  /**
   * The `SemanticDiff` of two `SequenceDefinition`s, all as JSON.
   *
   * @throws EngineError 503 when too many are being compared, or the engine stops
   */
  async compare(definitions: Definitions): Promise<string> {
    const { baseline, candidate } = definitions;
    return baseline.length + candidate.length <= IN_PLACE_MAX
      ? semanticDiffText(baseline, candidate)
      : this.#thread.run(definitions);
  }

  /** Gives up what is being compared. */
  stop(): Promise<void> {
    return this.#thread.stop();
  }
}
