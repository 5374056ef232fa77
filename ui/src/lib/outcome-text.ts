/** What became of the instances that a job has retried, in words. Pure. */

import type { BulkJob } from 'durable-workflow-engine-client';
import { formatCount } from './format.ts';

/** Such as `51 retried · 24 completed · 5 failed again · 22 running`. */
export function outcomeText({ applied, outcome }: Pick<BulkJob, 'applied' | 'outcome'>) {
  const parts: readonly (readonly [count: number | undefined, word: string])[] = [
    [outcome?.completed, 'completed'],
    [outcome?.failed, 'failed again'],
    [outcome?.cancelled, 'cancelled'],
    [outcome?.open, 'running'],
  ];
  const told = parts.flatMap(([count, word]) => (count ? [`${formatCount(count)} ${word}`] : []));
  // The engine counts a change a moment after it is made.
  const retried = parts.reduce((sum, [count = 0]) => sum + count, 0);
  return [`${formatCount(Math.max(applied, retried))} retried`, ...told].join(' · ');
}
