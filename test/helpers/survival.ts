/** Tests in two parts, between which the server is killed once: what is set up, and what is left of it. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Api, beforeWith, eventually, type Tenant } from './api.js';

type Check = () => Promise<void>;
type Arrange = (tenant: Tenant) => Promise<Check>;

/** `arrange` runs before the kill, with a tenant of its own, and gives what is checked after it. */
export type Survives = (title: string, arrange: Arrange) => void;

/**
 * All that the file arranges is arranged in its order; then the server is killed and started again.
 *
 * @param downMs how long the server is down at least
 */
export function survival(api: Api, downMs = 0): Survives {
  const scenarios: { readonly arrange: Arrange; check?: Check }[] = [];
  beforeWith(api, async () => {
    for (const scenario of scenarios) scenario.check = await scenario.arrange(api.tenant());
    const killedAt = Date.now();
    await api.engine.kill();
    await eventually(() => assert.ok(Date.now() > killedAt + downMs));
    await api.restart();
  });
  return (title, arrange) => {
    const scenario: (typeof scenarios)[number] = { arrange };
    scenarios.push(scenario);
    test(title, async () => {
      assert.ok(scenario.check);
      await scenario.check();
    });
  };
}
