/** Waiting tasks as their table has them, for tests of queues. */

import type { PollScope, TaskPlace } from '../../actors/queue/loads.js';
import { compareTasks, type ReadyTask } from '../../actors/queue/window.js';

type Scope = Pick<PollScope, 'tenant' | 'queue'>;

/** Whether such a poll may have the task. */
export const isIn = ({ tenant, queue }: Scope, task: ReadyTask) =>
  (tenant === '' || tenant === task.tenant) && (queue === '' || queue === task.queue);

/** As the statement of the loader does. */
export function select(table: Iterable<ReadyTask>, scope: Scope, after: TaskPlace, limit: number) {
  return [...table]
    .filter((task) => isIn(scope, task) && compareTasks(task, after) > 0)
    .sort(compareTasks)
    .slice(0, limit);
}
