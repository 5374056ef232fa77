/** Aggregates the stored counts of blocks. */

import type { StepStatistics } from '../../../schema/statistics.js';
import type { Plan } from '../../../src/core/plan-nodes.js';
import { addTo, type Buckets, quantile } from './activity.js';

export interface BlockCounts {
  runs: number;
  failures: number;
  /** The sum of the durations. */
  ms: number;
  readonly durations: Buckets;
}

/** As stored: id, runs, failures, milliseconds, pairs of bucket and count. */
type StoredBlock = readonly [
  string,
  number,
  number,
  number,
  readonly (readonly [number, number])[],
];

/** Open executions of a node of the plan. */
export interface OpenNode {
  readonly node: number;
  readonly count: number;
}

/** What statistics need of a plan, without what only the evaluator does. */
export interface Shape {
  readonly nodes: readonly {
    readonly id: string;
    readonly parent: number;
    readonly isLeaf: boolean;
  }[];
  readonly indexOf: Plan['indexOf'];
}

export function shapeOf({ nodes, indexOf }: Plan): Shape {
  return {
    nodes: nodes.map(({ id, parent, kind: { isLeaf } }) => ({ id, parent, isLeaf })),
    indexOf,
  };
}

export class StepLines {
  readonly #counts = new Map<string, BlockCounts>();

  /** @param blocks JSON, as in a row */
  add(blocks: string): void {
    for (const [id, runs, failures, ms, durations] of JSON.parse(blocks) as StoredBlock[]) {
      const counts = this.#of(id);
      counts.runs += runs;
      counts.failures += failures;
      counts.ms += ms;
      for (const [bucket, times] of durations) addTo(counts.durations, bucket, times);
    }
  }

  /** All blocks of the plan in their order, then blocks of other versions, and those that were injected. */
  statistics({ nodes, indexOf }: Shape, open: readonly OpenNode[]): StepStatistics[] {
    const here = new Map<string, number>();
    for (const { node, count } of open) {
      // Injected blocks follow those of the definition.
      const id = nodes[node]?.id;
      if (id !== undefined) here.set(id, (here.get(id) ?? 0) + count);
    }
    for (const id of indexOf.keys()) this.#of(id);
    const times = this.#timesOfSteps({ nodes, indexOf });
    const ordered = [...indexOf.keys(), ...this.#counts.keys()];
    return [...new Set(ordered)].map((block_id) => {
      const { runs, failures, ms, durations } = this.#of(block_id);
      return {
        ...{ block_id, runs, failures },
        duration_p50_ms: quantile(durations, 0.5),
        duration_p95_ms: quantile(durations, 0.95),
        total_ms: ms,
        share: times.all === 0 ? 0 : (times.inside.get(block_id) ?? 0) / times.all,
        here_now: here.get(block_id) ?? 0,
      };
    });
  }

  /** The time of the steps inside each block; that of a step is its own. */
  #timesOfSteps({ nodes, indexOf }: Shape) {
    const inside = new Map<string, number>();
    let all = 0;
    for (const [id, { ms }] of this.#counts) {
      const index = indexOf.get(id);
      if (index !== undefined && !nodes[index]!.isLeaf) continue;
      all += ms;
      let node = index === undefined ? undefined : nodes[index];
      if (node === undefined) inside.set(id, ms);
      for (; node !== undefined; node = nodes[node.parent]) {
        inside.set(node.id, (inside.get(node.id) ?? 0) + ms);
      }
    }
    return { inside, all };
  }

  #of(id: string): BlockCounts {
    let counts = this.#counts.get(id);
    if (counts === undefined) {
      counts = { runs: 0, failures: 0, ms: 0, durations: new Map() };
      this.#counts.set(id, counts);
    }
    return counts;
  }
}
