/**
 * A neighbour: creates one instance after the other and reads each until it is completed, while
 * others keep the engine busy. It knows how long each took.
 */

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Tenant } from './api.js';

export interface Neighbour {
  /** From sending the creation to having read `completed`, in the order of the instances. */
  readonly latenciesMs: readonly number[];
  /** Ends with the instance that is under way. @throws what went wrong with one of them */
  stop(): Promise<void>;
}

/** Between two instances, so that a neighbour asks for little. */
const PAUSE_MS = 2;

/** @param sequence of a step or two that complete by themselves */
export function startNeighbour(tenant: Tenant, sequence: string): Neighbour {
  const latenciesMs: number[] = [];
  let isStopped = false;
  const run = async () => {
    while (!isStopped) {
      const began = performance.now();
      const id = await tenant.create(sequence);
      for (;;) {
        const { state } = await tenant.instance(id);
        assert.ok(state !== 'failed' && state !== 'cancelled', `a neighbour is ${state}`);
        if (state === 'completed') break;
      }
      latenciesMs.push(performance.now() - began);
      await pause(PAUSE_MS);
    }
  };
  const running = run();
  // Whoever stops it hears of a failure.
  running.catch(() => undefined);
  return {
    latenciesMs,
    stop: () => {
      isStopped = true;
      return running;
    },
  };
}
