/** Templates and conditions: compiled with the plan, rendered and evaluated for every step. */

import { evaluateCondition, parseCondition, type Scope } from '../src/core/condition.js';
import { compileTemplate, renderTemplate } from '../src/core/template.js';
import { NOW, ORDER } from './fixtures.js';
import type { MicroCase } from './micro.js';

const SCOPE: Scope = {
  data: ORDER,
  config: { region: 'eu-central' },
  outputs: { get: () => undefined, all: () => ({}) },
  runtime: {},
  instanceId: '01932f2e-0000-7000-8000-000000000002',
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

const PATH = condition('data.customer.tier == "gold"');
const COMPOUND = condition('data.order.total > 100 && data.customer.tier == "gold"');
const COMPOUND_TEXT = 'data.order.total > 100 && data.customer.tier == "gold"';

function condition(text: string) {
  const parsed = parseCondition(text);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.value;
}

export const expressionCases: readonly MicroCase[] = [
  {
    name: 'template: render five parameters',
    calls: 20,
    run: () => renderTemplate(TEMPLATE, SCOPE),
  },
  { name: 'condition: path == value', calls: 100, run: () => evaluateCondition(PATH, SCOPE) },
  { name: 'condition: compound', calls: 50, run: () => evaluateCondition(COMPOUND, SCOPE) },
  { name: 'condition: parse compound', calls: 10, run: () => parseCondition(COMPOUND_TEXT) },
];
