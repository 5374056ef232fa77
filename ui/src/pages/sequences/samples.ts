/** A sample definition. Pure. */

import type { CreateSequence } from 'durable-workflow-engine-client';

/** Runs without a worker. */
export const SAMPLE: CreateSequence = {
  namespace: 'default',
  name: 'hello',
  version: 1,
  input_schema: {
    type: 'object',
    required: ['name'],
    properties: { name: { type: 'string', title: 'Whom to greet' } },
  },
  blocks: [
    { type: 'step', id: 'greet', handler: 'log', params: { message: 'Hello, {{data.name}}' } },
    { type: 'step', id: 'rest', handler: 'sleep', params: { duration_ms: 2000 } },
  ],
};

export const SAMPLE_TEXT = JSON.stringify(SAMPLE, null, 2);
