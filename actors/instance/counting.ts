/** What effects count, and what the log has of instances. */

import type { NamedCounterName } from '../../src/metrics/catalog.js';
import { OTHER } from '../../src/metrics/meter.js';
import type { Plans } from '../catalog/plans.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Effects } from '../runtime/room.js';
import { instanceLines } from './log-lines.js';

export interface CountingDeps extends Pick<Kernel, 'meter' | 'log' | 'clock'> {
  readonly plans: Plans;
}

export function counting({ meter, log, clock, plans }: CountingDeps) {
  const writeLine = instanceLines(log, () => clock.monotonic());
  // Under no name when the plan has left memory meanwhile: nothing is read for a count.
  const countEnd = (counter: NamedCounterName, sequence: string) =>
    meter.countNamed(counter, plans.get(sequence)?.name ?? OTHER);
  const effects = {
    completed: ({ sequence }) => countEnd('engine_sequence_instances_completed_total', sequence),
    failed: (effect) => {
      countEnd('engine_sequence_instances_failed_total', effect.sequence);
      writeLine(effect);
    },
    log: writeLine,
    count: ({ counter, by }) => meter.count(counter, by),
  } satisfies Effects;
  return { effects };
}
