/**
 * Tasks that ended long ago, which their actors do not keep: a call about one reads its row, for the
 * refusal that names its state and for its history.
 */

import { DATABASE_AWAY, type EngineError, notFound } from '../../src/errors.js';
import type { Cell } from '../runtime/cell.js';
import type { Rows } from '../runtime/loader.js';
import type { WorkerTaskRow } from '../runtime/rows.js';
import type { Message } from './creation-messages.js';
import { nodeOf } from './edits.js';
import type { LiveInstance } from './live-instance.js';
import type { InstanceMessage } from './messages.js';
import { taskOfRow } from './worker-task.js';

export interface EndedTasksDeps {
  readonly loader: Rows;
  readonly schedule: (work: () => void) => void;
  readonly fail: (request: number, error: EngineError) => void;
  /** Hands the message to its instance once more. */
  readonly tell: (instance: string, message: InstanceMessage) => void;
}

type InstanceCell = Cell<LiveInstance, Message>;

/** A message about a task that its sender waits for. */
type Call = InstanceMessage & { readonly request: number };

/** Each read takes longer than a flush does at most, except in an outage. */
const READS_MAX = 20;

export class EndedTasks {
  readonly #deps: EndedTasksDeps;

  constructor(deps: EndedTasksDeps) {
    this.#deps = deps;
  }

  /** Reads the task, gives it to the actor of the cell, and hands the message on to it. */
  read(cell: InstanceCell, task: string, message: Call, reads = 1): void {
    const { loader, schedule, fail } = this.#deps;
    loader.task(task).then(
      (row) => schedule(() => this.#taken(cell, task, row, message, reads)),
      () => schedule(() => fail(message.request, DATABASE_AWAY)),
    );
  }

  #taken(
    cell: InstanceCell,
    task: string,
    row: WorkerTaskRow | undefined,
    message: Call,
    reads: number,
  ): void {
    const { fail, tell } = this.#deps;
    if (row === undefined || row.instance_id !== cell.id || reads > READS_MAX) {
      fail(message.request, notFound(`worker task ${task}`));
      return;
    }
    if (cell.state === undefined || cell.state.tasks.has(task)) {
      tell(cell.id, message);
      return;
    }
    // An actor knows all of its open tasks: a row that says otherwise is older than a unit under way.
    if (row.state === 'pending' || row.state === 'claimed') {
      this.read(cell, task, message, reads + 1);
      return;
    }
    cell.state.tasks.set(task, taskOfRow(row, nodeOf(cell.state.plan, row.block_id)));
    tell(cell.id, message);
  }
}
