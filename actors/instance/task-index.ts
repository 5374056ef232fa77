/** Finds the instance of a task: in memory for claimed tasks, else by one query per turn. */

import { DATABASE_AWAY, type EngineError, notFound } from '../../src/base/errors.js';
import { lastUsed } from '../../src/base/quota/last-used.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Kernel } from '../runtime/kernel.js';
import { BatchedReads } from '../runtime/queries.js';
import type { Room } from '../runtime/room.js';
import { UnknownId } from '../runtime/unknown-id.js';
import type { Instances } from './instances.js';
import type { InstanceLoads, TimerLoads } from './loads.js';

/** About 20 MB; a miss costs a share of a query. Workers call about tasks that they have claimed. */
const TASKS_REMEMBERED = 100_000;

type TaskIndexDeps = Pick<Kernel<InstanceLoads>, 'loader' | 'schedule' | 'reachability'>;

export class TaskIndex {
  readonly #deps: TaskIndexDeps;
  readonly #owners = lastUsed<string, string>(TASKS_REMEMBERED);
  readonly #reads: BatchedReads<string, string | undefined>;
  readonly #unknownId = new UnknownId();

  constructor(deps: TaskIndexDeps) {
    const { loader } = deps;
    this.#deps = deps;
    this.#reads = new BatchedReads(async (tasks) => {
      const owners = await loader.taskOwners(tasks);
      return tasks.map((task) => owners.get(task));
    });
  }

  remember(task: string, instance: string): void {
    this.#owners.set(task, instance);
  }

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
        this.#deps.schedule(() => {
          if (found === undefined) otherwise?.(notFound(`worker task ${task}`));
          else {
            this.remember(task, found);
            then(found);
          }
        }),
      () =>
        this.#deps.schedule(() => {
          this.#deps.reachability.turnedAway();
          otherwise?.(DATABASE_AWAY);
        }),
    );
  }

  /** A task of another tenant gets the same error as an unknown one, after the same read. */
  deny(task: string, otherwise: (error: EngineError) => void): void {
    this.#reads.read(this.#unknownId.next()).then(
      () => this.#deps.schedule(() => otherwise(notFound(`worker task ${task}`))),
      () => this.#deps.schedule(() => otherwise(DATABASE_AWAY)),
    );
  }
}

interface ClaimWatchDeps
  extends Pick<
    Kernel<TimerLoads>,
    'settings' | 'loader' | 'reachability' | 'timers' | 'schedule' | 'clock' | 'log'
  > {
  readonly instances: Pick<Instances, 'send'>;
  readonly tasks: Pick<TaskIndex, 'remember'>;
}

/** Watches the heartbeats of claims. Silence counts from readiness at the earliest. */
export function claimWatch(deps: ClaimWatchDeps) {
  const { instances, tasks, settings, loader, reachability, timers, schedule, clock, log } = deps;
  let isStopped = false;
  const watch = (at: UnixMs, instance: string, task: string) => {
    tasks.remember(task, instance);
    timers.push(at, { kind: 'reap', instance, task });
  };
  /** @param only the tenant that has returned; absent: all tenants */
  const read = (only?: string) => {
    loader
      .claimedTasks((task, instance, heartbeatAt, tenant) => {
        if (only !== undefined && only !== tenant) return;
        const since = Math.max(heartbeatAt, reachability.since(tenant));
        schedule(() => watch(since + settings.workerStaleMs, instance, task));
      })
      .catch((error: unknown) => {
        log.warn({ err: error }, 'claims could not be read; trying again');
        clock.setTimeout(() => {
          if (!isStopped) read(only);
        }, settings.workerReaperTickMs);
      });
  };
  return {
    effects: { reap: ({ at, instance, task }) => watch(at, instance, task) },
    timers: { reap: ({ instance, task }) => instances.send(instance, { kind: 'reap', task }) },
    start: () => read(),
    tenantBack: read,
    stop: () => {
      isStopped = true;
    },
  } satisfies Room;
}
