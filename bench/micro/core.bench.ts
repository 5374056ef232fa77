/** The evaluator alone, without rows, and what it compiles, renders and evaluates. */

import { evaluateCondition, parseCondition } from '../../src/core/condition.js';
import { advance } from '../../src/core/evaluator.js';
import type { Scope } from '../../src/core/expression/scope.js';
import type { Env } from '../../src/core/progress.js';
import { compileTemplate, renderTemplate } from '../../src/core/template.js';
import {
  EXTERNAL_SEQUENCE,
  FULFILMENT_BLOCKS,
  NOOP_SEQUENCE,
  NOW,
  ORDER,
  orderRecord,
  planOf,
} from '../base/fixtures.js';
import type { MicroCase } from './case.js';

const INSTANCE_ID = '01932f2e-0000-7000-8000-000000000002';
const BLOCKS = planOf(FULFILMENT_BLOCKS).nodes.length;

const ENV: Env = {
  now: NOW,
  random: () => 0.5,
  unpoliciedRetry: 'redispatch',
  stepBudget: 250,
  outputBytesBudget: 1024 * 1024,
};

const SCOPE: Scope = {
  data: ORDER,
  config: { region: 'eu-central' },
  outputs: { get: () => undefined, all: () => ({}) },
  runtime: {},
  instanceId: INSTANCE_ID,
  now: NOW,
  random: () => 0.5,
};

const TEMPLATE = compileTemplate({
  order: '{{ data.order.id }}',
  greeting: 'Dear {{ data.customer.name }}, your order {{ data.order.id }} is on its way.',
  items: '{{ data.order.items }}',
  region: 'eu-central',
  country: '{{ data.shipping.country }}',
});

const COMPOUND = 'data.order.total > 100 && data.customer.tier == "gold"';

function conditionCase(name: string, calls: number, text: string): MicroCase {
  const parsed = parseCondition(text);
  if (!parsed.ok) throw new Error(parsed.message);
  return { name: `condition: ${name}`, calls, run: () => evaluateCondition(parsed.value, SCOPE) };
}

function startCase(name: string, blocks: unknown): MicroCase {
  const plan = planOf(blocks);
  const run = () => advance(plan, orderRecord(INSTANCE_ID).snapshot, { kind: 'wake' }, ENV);
  return { name: `evaluator: new instance, ${name}`, calls: 10, run };
}

export const coreCases: readonly MicroCase[] = [
  startCase('one noop step, to its end', NOOP_SEQUENCE.blocks),
  startCase('one external step, to its dispatch', EXTERNAL_SEQUENCE.blocks),
  { name: 'plan: compile one noop step', calls: 20, run: () => planOf(NOOP_SEQUENCE.blocks) },
  { name: `plan: compile ${BLOCKS} nested blocks`, run: () => planOf(FULFILMENT_BLOCKS) },
  {
    name: 'template: render five parameters',
    calls: 20,
    run: () => renderTemplate(TEMPLATE, SCOPE),
  },
  conditionCase('path == value', 100, 'data.customer.tier == "gold"'),
  conditionCase('compound', 50, COMPOUND),
  { name: 'condition: parse compound', calls: 10, run: () => parseCondition(COMPOUND) },
];
