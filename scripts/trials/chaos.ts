/**
 * `npm run chaos -- [--cycles 1000] [--pg-cycles 100] [--hardships 20] [--take-overs 5] [--seed n] [--shards 2]`: the long form of the
 * kill loop, in rounds, with a line of progress while it runs and a table at the end. The exit code
 * is 0 only if no promise was broken.
 */

import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { type RoundSummary, startChaosServer } from '../../test/chaos/run.js';
import { say, whole } from './command.js';

type Plan = ReturnType<typeof readPlan>;

/** A round's ledger and rows are held in memory; more kills are more rounds. */
const KILLS_PER_ROUND = 50;
const PROGRESS_EVERY_FAULTS = 10;

function readPlan() {
  const { values } = parseArgs({
    options: {
      cycles: { type: 'string', default: '1000' },
      'pg-cycles': { type: 'string' },
      hardships: { type: 'string', default: '0' },
      'take-overs': { type: 'string', default: '0' },
      seed: { type: 'string' },
      shards: { type: 'string', default: '2' },
    },
  });
  const cycles = whole('--cycles', values.cycles);
  return {
    cycles,
    // One crash of the database to ten kills, when nothing else is asked for.
    pgCycles: whole('--pg-cycles', values['pg-cycles'] ?? String(Math.ceil(cycles / 10))),
    hardships: whole('--hardships', values.hardships),
    takeOvers: whole('--take-overs', values['take-overs']),
    seed: whole('--seed', values.seed ?? String(randomInt(0x1_0000_0000))),
    shards: whole('--shards', values.shards),
  };
}

async function main(plan: Plan): Promise<number> {
  say(
    `seed ${plan.seed}: ${plan.cycles} kills, ${plan.pgCycles} crashes of Postgres, ${plan.hardships} of each other fault, ` +
      `${plan.takeOvers} owners replaced`,
  );
  const server = await startChaosServer(plan.shards);
  const summaries: RoundSummary[] = [];
  try {
    for (const round of rounds(plan)) {
      const name = `round ${summaries.length + 1}`;
      const onFault = (done: number, all: number) => {
        if (done % PROGRESS_EVERY_FAULTS === 0 || done === all) say(`${name}: ${done} of ${all}`);
      };
      const summary = await server.round({ ...round, onFault });
      summaries.push(summary);
      const { instances, requests, violations } = summary;
      say(
        `${name}: ${instances} instances, ${requests.acknowledged} promises, ` +
          `${violations.length} broken`,
      );
      for (const violation of violations) say(`  ${violation}`);
    }
  } finally {
    await server.stop();
  }
  printTable(plan, summaries);
  return summaries.every(({ violations }) => violations.length === 0) ? 0 : 1;
}

/** Every round has its share of the crashes, and its own seed. */
function* rounds(plan: Plan) {
  const all = Math.max(1, Math.ceil(plan.cycles / KILLS_PER_ROUND));
  for (let i = 0; i < all; i += 1) {
    yield {
      seed: (plan.seed + i) >>> 0,
      cycles: share(plan.cycles, all, i),
      pgCycles: share(plan.pgCycles, all, i),
      hardships: share(plan.hardships, all, i),
      takeOvers: share(plan.takeOvers, all, i),
    };
  }
}

const share = (total: number, parts: number, index: number): number =>
  Math.floor((total * (index + 1)) / parts) - Math.floor((total * index) / parts);

function printTable(plan: Plan, summaries: readonly RoundSummary[]): void {
  const sum = (value: (summary: RoundSummary) => number) =>
    summaries.reduce((total, summary) => total + value(summary), 0);
  const names = [...new Set(summaries.flatMap(({ promised }) => Object.keys(promised)))].sort();
  const rows: [string, string | number][] = [
    ['seed', plan.seed],
    ['kills', sum(({ kills }) => kills)],
    ['crashes of Postgres', sum(({ crashes }) => crashes)],
    ['faults that ended by themselves', sum(({ hardships }) => hardships)],
    ['owners replaced', sum(({ takeOvers }) => takeOvers)],
    ['instances', sum(({ instances }) => instances)],
    ...names.map((name): [string, number] => [
      `  ${name}`,
      sum(({ promised }) => promised[name] ?? 0),
    ]),
    ['tasks', sum(({ tasks }) => tasks)],
    ['requests acknowledged', sum(({ requests }) => requests.acknowledged)],
    ['requests refused', sum(({ requests }) => requests.refused)],
    ['requests of unknown outcome', sum(({ requests }) => requests.unknown)],
    ['kill to ready', times(summaries.flatMap(({ restartMs }) => restartMs))],
    ['fault over to serving', times(summaries.flatMap(({ serveAgainMs }) => serveAgainMs))],
    ['faults over to rest', times(summaries.map(({ settleMs }) => settleMs))],
    ['promises broken', sum(({ violations }) => violations.length)],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  for (const [name, value] of rows) say(`${name.padEnd(width)}  ${value}`);
}

function times(values: readonly number[]): string {
  if (values.length === 0) return '-';
  const sorted = values.map(Math.round).sort((a, b) => a - b);
  return `median ${sorted[Math.floor(sorted.length / 2)]} ms, most ${sorted.at(-1)} ms`;
}

process.exitCode = await main(readPlan());
