/** What expressions and templates are evaluated in. */

import type { JsonObject } from '../../src/base/json.js';
import type { Scope } from '../../src/core/expression/scope.js';

export function scopeOf(
  data: JsonObject,
  {
    outputs = {},
    ...more
  }: Partial<Omit<Scope, 'outputs'>> & { readonly outputs?: JsonObject } = {},
): Scope {
  return {
    data,
    config: {},
    outputs: {
      get: (id) => (Object.hasOwn(outputs, id) ? outputs[id] : undefined),
      all: () => outputs,
    },
    runtime: {},
    instanceId: 'i',
    now: 0,
    random: () => 0,
    ...more,
  };
}
