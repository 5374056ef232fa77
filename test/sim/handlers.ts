/**
 * Stands for outbound HTTP: a call takes a while and comes to something, as the faults say. No call
 * may leave before the step is committed as dispatched.
 */

import type { Execution, StepRecord } from '../../schema/execution.js';
import type { StepOutcome } from '../../src/core/builtin.js';
import type { EffectHandler } from '../../src/handlers/registry.js';
import type { Faults } from './faults.js';
import type { MemoryTables } from './memory-tables.js';
import type { Thread, World } from './world.js';

/** How calls end while there are faults; later ones succeed. */
const OUTCOMES = { success: 6, 'failure for now': 2, failure: 1, silence: 1 } as const;

export function simulatedHandlers(
  world: World,
  faults: Faults,
  tables: MemoryTables,
  complain: (text: string, instance: string) => void,
  onCall: (instance: string, block: string, key: string) => void,
): (thread: Thread) => ReadonlyMap<string, EffectHandler> {
  /** @param instance none where its parameters name none */
  const checkDispatched = (instance: string, key: string) => {
    if (instance === '') return;
    const row = tables.row('instances', instance);
    const { o, b, j } = (row?.execution ?? {}) as unknown as Partial<Execution>;
    const open = [o, j?.r[0]?.e.o, b].flatMap((records) => Object.values(records ?? {}));
    const isOpen = open.some((record) => (record as StepRecord).u?.idempotency_key === key);
    // A call that was withdrawn by a unit on its way is aborted with it.
    if (row === undefined) complain(`${key} was called before its instance was there`, instance);
    else if (!isOpen) faults.counts.add('call of a step that was over');
  };
  return (thread) => {
    const call: EffectHandler = (params, { idempotencyKey, signal }) => {
      const { url } = params as { readonly url: string };
      const [, instance = '', block = ''] = new URL(url).pathname.split('/');
      checkDispatched(instance, idempotencyKey);
      onCall(instance, block, idempotencyKey);
      world.note(`${thread.name} calls ${url} with the key ${idempotencyKey}`);
      const outcome = faults.isOver ? 'success' : faults.random.weighted(OUTCOMES);
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve(failed(false)), { once: true });
        const ms = outcome === 'silence' ? world.latency(2_000, 20_000) : world.latency(1, 800);
        world.at(
          world.now + ms,
          () => resolve(outcome === 'success' ? DONE : failed(outcome !== 'failure')),
          thread,
        );
      });
    };
    return new Map([['http_request', call]]);
  };
}

const DONE: StepOutcome = { kind: 'success', output: { status: 200 } };

function failed(retryable: boolean): StepOutcome {
  return { kind: 'failure', retryable, message: 'simulated' };
}
