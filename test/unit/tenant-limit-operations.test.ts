/** Changes of the limits of tenants whose outcome nobody was told. */

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { realClock } from '../../src/clock.js';
import { unavailable } from '../../src/errors.js';
import type { Call, FrontDeps } from '../../src/http/operations/operation.js';
import { TenantLimitOperations } from '../../src/http/operations/tenant-limits.js';
import { TenantLimitRegistry } from '../../src/tenant-limits.js';

test('limits whose outcome is unknown hold as soon as they are found stored, however late that is', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const registry = new TenantLimitRegistry();
  let stored: object[] | Error = [];
  const made = new TenantLimitOperations({
    client: { ask: () => Promise.reject(unavailable('ENG_OVERLOADED', 'no answer in time')) },
    registry,
    reads: {
      rows: async () => {
        if (stored instanceof Error) throw stored;
        return stored as never[];
      },
    },
    clock: realClock,
  });
  try {
    const put = made.operations['tenantLimits.put'](
      { now: () => 0 } as unknown as FrontDeps,
      { params: { id: 'a' }, body: { rows_per_second: 5 } } as unknown as Call<'tenantLimits.put'>,
    );
    await assert.rejects(put, { status: 503 });
    const found = async () => {
      mock.timers.tick(1_000);
      for (let n = 0; n < 5; n += 1) await Promise.resolve();
      return registry.of('a')?.limits.rows_per_second;
    };
    assert.equal(await found(), undefined, 'not stored so far');
    stored = new Error('the database is away');
    assert.equal(await found(), undefined);
    stored = [{ tenant_id: 'a', limits: '{"rows_per_second":5}', set_at: '2026-01-01' }];
    assert.equal(await found(), 5);
    stored = [];
    assert.equal(await found(), undefined, 'what is removed meanwhile is found, too');
  } finally {
    made.stop();
    mock.timers.reset();
  }
});
