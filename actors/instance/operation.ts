/** What a message does in its turn, once the rows that it needs are read; see `preparation.ts`. */

import type { Progress } from '../../src/core/progress.js';
import type { Plans } from '../catalog/plans.js';
import type { Rows } from '../runtime/loader.js';
import type { Turn } from '../runtime/turn.js';
import type { LiveInstance } from './live-instance.js';

export interface Sources {
  readonly rows: Rows;
  readonly plans: Plans;
  /** Brings a new instance to life beside the one that is asked; `begin` fills its first unit. */
  readonly createBeside: (child: LiveInstance, begin: (turn: Turn) => void) => void;
}

/** What a message does in its turn; see `handle` for the result. */
export type Operation = (turn: Turn) => Progress | 'touched' | undefined;

/** Rejects with the EngineError that is the answer, or because the rows cannot be read. */
export type Prepare = (actor: LiveInstance, sources: Sources) => Promise<Operation>;
