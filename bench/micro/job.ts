/** Part `micro`: the time of one call of each hot pure function on one core. */

import { Bench as Tinybench } from 'tinybench';
import type { Contender, Job } from '../job.js';
import { batchCases } from './batch.bench.js';
import type { MicroCase } from './case.js';
import { coreCases } from './core.bench.js';
import { textCases } from './text.bench.js';

const CASES: readonly MicroCase[] = [...coreCases, ...textCases, ...batchCases];
/** Turns of some seconds would repeat the same number. */
const SHARE = 0.1;
const WARM_UP_SHARE = 0.4;

export const microJob: Job = {
  part: 'micro',
  name: 'micro',
  asks: 'What does one call of each hot pure function cost on one core?',
  rounds: () => 1,
  seconds: ({ seconds }) => seconds * SHARE,
  isWarmedUp: false,
  isCompared: false,
  prepare: async () => ({ contenders: CASES.map(contender), close: async () => undefined }),
};

let sink: unknown;

function contender({ name, calls = 1, run }: MicroCase): Contender {
  const turn = async (ms: number) => {
    const bench = new Tinybench({ time: ms, warmupTime: ms * WARM_UP_SHARE, throws: true });
    bench.add(name, () => {
      for (let i = 0; i < calls; i += 1) sink = run();
    });
    await bench.run();
    const result = bench.tasks[0]!.result;
    if (result.state !== 'completed') throw new Error(`${name}: ${result.state}`);
    if (sink === undefined) throw new Error(`${name} has no result`);
    const usPerCall = (result.latency.p50 * 1_000) / calls;
    return {
      'µs p50': usPerCall,
      'µs p99': (result.latency.p99 * 1_000) / calls,
      'calls/s': 1_000_000 / usPerCall,
    };
  };
  return { name, turn };
}
