/**
 * From a worker task's id to its instance, for the tasks of one shard: in memory for tasks that were
 * opened or loaded lately, else by one query per turn.
 */

import { DATABASE_AWAY, type EngineError, notFound } from '../../src/base/errors.js';
import { lastUsed } from '../../src/base/quota/last-used.js';
import { BatchedReads } from '../runtime/queries.js';
import type { Effects, Room } from '../runtime/room.js';
import { UnknownId } from '../runtime/unknown-id.js';
import type { InstanceLoads } from './loads.js';

/** About 20 MB; a miss costs a share of a query. */
const TASKS_REMEMBERED = 100_000;

export class TaskIndex implements Room {
  readonly effects = {
    'task.opened': ({ task, instance }) => this.remember(task, instance),
  } satisfies Effects;

  readonly #schedule: (work: () => void) => void;
  readonly #turnedAway: () => void;
  readonly #owners = lastUsed<string, string>(TASKS_REMEMBERED);
  readonly #reads: BatchedReads<string, string | undefined>;
  readonly #unknownId = new UnknownId();

  /** @param turnedAway told when whoever asks for a task is told that it cannot be read */
  constructor(loader: InstanceLoads, schedule: (work: () => void) => void, turnedAway: () => void) {
    this.#schedule = schedule;
    this.#turnedAway = turnedAway;
    this.#reads = new BatchedReads(async (tasks) => {
      const owners = await loader.taskOwners(tasks);
      return tasks.map((task) => owners.get(task));
    });
  }

  remember(task: string, instance: string): void {
    this.#owners.set(task, instance);
  }

  /** @param otherwise told why there is none; absent: it does not matter */
  find(
    task: string,
    then: (instance: string) => void,
    otherwise?: (error: EngineError) => void,
  ): void {
    const owner = this.#owners.get(task);
    if (owner !== undefined) {
      then(owner);
      return;
    }
    this.#reads.read(task).then(
      (found) =>
        this.#schedule(() => {
          if (found === undefined) otherwise?.(notFound(`worker task ${task}`));
          else {
            this.remember(task, found);
            then(found);
          }
        }),
      () =>
        this.#schedule(() => {
          this.#turnedAway();
          otherwise?.(DATABASE_AWAY);
        }),
    );
  }

  /** Says of a task of another tenant what is said of none, and after the same read. */
  deny(task: string, otherwise: (error: EngineError) => void): void {
    this.#reads.read(this.#unknownId.next()).then(
      () => this.#schedule(() => otherwise(notFound(`worker task ${task}`))),
      () => this.#schedule(() => otherwise(DATABASE_AWAY)),
    );
  }
}
