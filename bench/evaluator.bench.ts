/** What it costs to advance an instance: the evaluator alone, without rows. */

import { advance, type Env } from '../src/core/evaluator.js';
import type { Plan } from '../src/core/plan.js';
import { EXTERNAL_SEQUENCE, NOOP_SEQUENCE, NOW, orderRecord, planOf } from './fixtures.js';
import type { MicroCase } from './micro.js';

const INSTANCE_ID = '01932f2e-0000-7000-8000-000000000002';

const ENV: Env = {
  now: NOW,
  random: () => 0.5,
  unpoliciedRetry: 'redispatch',
  stepBudget: 250,
  outputBytesBudget: 1024 * 1024,
};

function start(plan: Plan): () => unknown {
  return () => advance(plan, orderRecord(INSTANCE_ID).snapshot, { kind: 'wake' }, ENV);
}

export const evaluatorCases: readonly MicroCase[] = [
  {
    name: 'evaluator: new instance, one noop step, to its end',
    calls: 10,
    run: start(planOf(NOOP_SEQUENCE.blocks)),
  },
  {
    name: 'evaluator: new instance, one external step, to its dispatch',
    calls: 10,
    run: start(planOf(EXTERNAL_SEQUENCE.blocks)),
  },
];
