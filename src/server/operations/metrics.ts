/** What Prometheus scrapes (docs/reference/metrics.md). It answers in every state of the engine. */

import type { Operation } from '../../http/operation.js';
import type { Metrics } from '../../metrics/exposition.js';
import type { Sampler } from '../../metrics/sampler.js';

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export function metricsOperations(
  metrics: Metrics,
  sampler: Sampler,
): { metrics: Operation<'metrics'> } {
  return {
    metrics: async (_deps, { key }) => {
      await sampler.refresh();
      // Names of sequences and handlers are their tenants' own.
      const body = await metrics.text(key === undefined);
      return { status: 200, contentType: CONTENT_TYPE, body };
    },
  };
}
