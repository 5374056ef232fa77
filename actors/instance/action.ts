/** What a message does in its turn, and what may be read before that; see `preparation.ts`. */

import type { Progress } from '../../src/core/progress.js';
import type { Plans } from '../catalog/plans.js';
import type { Turn } from '../runtime/turn.js';
import type { LiveInstance } from './live-instance.js';
import type { InstanceLoads } from './loads.js';

/** What the evaluator did; `'touched'` when only the row changed, undefined for neither. */
export type Came = Progress | 'touched' | undefined;

/**
 * Changes the instance; everything that can be refused is refused before.
 *
 * @param before what the actions of the same message came to so far
 */
export type Action = (turn: Turn, before?: Came) => Came;

export interface Sources {
  readonly rows: InstanceLoads;
  readonly plans: Plans;
  /** Brings a new instance to life beside the one that is asked; `begin` fills its first unit. */
  readonly createBeside: (child: LiveInstance, begin: (turn: Turn) => void) => void;
}

/**
 * Resolves with undefined when the actor has all that it needs now. Rejects with the EngineError that
 * is the answer, or because the rows cannot be read.
 */
export type Prepare = (actor: LiveInstance, sources: Sources) => Promise<Action | undefined>;
