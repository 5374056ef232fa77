/** What tests of executions and handoffs begin with: ids by number, one noon, and a runtime. */

import type { RuntimeCapabilities } from '../../schema/handoff.js';

export const NOW = Date.UTC(2026, 0, 1, 12);

export const id = (n: number) => `0198c0de-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;

export const at = (ms: number) => new Date(NOW + ms).toISOString();

/** One that lives for a minute and offers nothing. */
export const runtime = (
  n: number,
  more: Partial<RuntimeCapabilities> = {},
): RuntimeCapabilities => ({
  ...{ runtime_id: id(n), kind: 'server', trust: 'registered', offline_capable: false },
  ...{ draining: false, observed_at: at(0), expires_at: at(60_000) },
  ...more,
});
