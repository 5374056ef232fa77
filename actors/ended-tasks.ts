/**
 * Tasks that ended long ago, which their actors do not keep: a call about one reads its row, for the
 * refusal that names its state and for its history.
 */

import { DATABASE_AWAY, type EngineError, notFound } from '../src/errors.js';
import type { Cell } from './instance-cell.js';
import type { InstanceMessage } from './instance-messages.js';
import type { Rows } from './loader.js';
import { placedTask } from './restore.js';
import type { WorkerTaskRow } from './worker-task.js';

export interface EndedTasksDeps {
  readonly loader: Rows;
  readonly schedule: (work: () => void) => void;
  readonly fail: (request: number, error: EngineError) => void;
  /** Hands the message to its instance once more. */
  readonly tell: (instance: string, message: InstanceMessage) => void;
}

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
  read(cell: Cell, task: string, message: Call, reads = 1): void {
    const { loader, schedule, fail } = this.#deps;
    loader.task(task).then(
      (row) => schedule(() => this.#taken(cell, task, row, message, reads)),
      () => schedule(() => fail(message.request, DATABASE_AWAY)),
    );
  }

  #taken(
    cell: Cell,
    task: string,
    row: WorkerTaskRow | undefined,
    message: Call,
    reads: number,
  ): void {
    const { fail, tell } = this.#deps;
    if (row === undefined || row.instance_id !== cell.key || reads > READS_MAX) {
      fail(message.request, notFound(`worker task ${task}`));
      return;
    }
    if (cell.actor === undefined || cell.actor.tasks.has(task)) {
      tell(cell.key, message);
      return;
    }
    // An actor knows all of its open tasks: a row that says otherwise is older than a unit under way.
    if (row.state === 'pending' || row.state === 'claimed') {
      this.read(cell, task, message, reads + 1);
      return;
    }
    cell.actor.tasks.set(task, placedTask(row, cell.actor.plan));
    tell(cell.key, message);
  }
}
