/**
 * `npm run test:sim -- --seeds 2000 --from 1`: runs that many seeds and prints those that fail, with
 * the last events of the instance that it is about. `SIM_SEED=7 npm run test:sim` runs one seed and
 * prints everything that happened. `--brief`: the brief form, as in `npm test`.
 */

import { parseArgs } from 'node:util';
import { Counts } from '../../test/sim/faults.js';
import { readableFailure } from '../../test/sim/report.js';
import { simulate } from '../../test/sim/simulate.js';
import { say, whole } from './command.js';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '2000' },
    from: { type: 'string', default: '1' },
    brief: { type: 'boolean', default: false },
  },
});
const isBrief = values.brief;

const only = process.env.SIM_SEED;
if (only !== undefined) await replay(Number(only));
else await runMany(whole('--seeds', values.seeds), whole('--from', values.from));

async function replay(seed: number): Promise<void> {
  const { trace, violation, events } = await simulate(seed, { isTraced: true, isBrief });
  for (const line of trace.lines ?? []) say(line);
  say(`seed ${seed}: ${violation?.message ?? 'nothing wrong'}, ${events} events, ${trace.hash}`);
  process.exitCode = violation === undefined ? 0 : 1;
}

async function runMany(seeds: number, from: number): Promise<void> {
  const startedAt = process.cpuUsage();
  const counts = new Counts();
  let events = 0;
  let failures = 0;
  for (let seed = from; seed < from + seeds; seed++) {
    const outcome = await simulate(seed, { isBrief });
    counts.addAll(outcome.counts);
    events += outcome.events;
    if (outcome.violation === undefined) continue;
    failures += 1;
    say(await readableFailure(seed, isBrief));
  }
  const { user, system } = process.cpuUsage(startedAt);
  const ms = (user + system) / 1_000 / seeds;
  for (const [name, count] of [...counts.byName].sort())
    say(`${String(count).padStart(9)}  ${name}`);
  say(`${seeds} seeds, ${events} events, ${failures} failures, ${ms.toFixed(1)} ms of CPU a seed`);
  process.exitCode = failures === 0 ? 0 : 1;
}
