/** The command line of `npm run bench`: which jobs run, for how long, and where the results go. */

import { parseArgs } from 'node:util';
import { type Job, PARTS } from './job.js';

export interface Options {
  readonly jobs: readonly Job[];
  /** Of each turn. */
  readonly seconds: number;
  readonly rounds: number;
  /** A built checkout or a commit whose server takes turns with this one. */
  readonly against: string | undefined;
  /** ENGINE_SHARDS and ENGINE_WRITER_LANES of the servers; undefined: they choose. */
  readonly shards: number | undefined;
  readonly lanes: number | undefined;
  /** Where each thread of the servers of part paths writes a V8 CPU profile. */
  readonly profile: string | undefined;
  /** Instances that wait when workers begin. */
  readonly backlog: number;
  /** Instances of the jobs that fill a database; undefined: as many as each job is about. */
  readonly instances: number | undefined;
  readonly heldSeconds: number;
  readonly fullSeconds: number;
  /** False: nothing is synced and everything is small, so that a run only shows that it works. */
  readonly isDurable: boolean;
  readonly peersFolder: string | undefined;
  readonly dataParent: string | undefined;
  /** Undefined: nothing is stored. */
  readonly results: string | undefined;
}

export class UsageError extends Error {}

/** What runs when nothing is named. */
const USUAL = ['micro', 'idle', 'noop256', 'round16'];

export function usage(jobs: readonly Job[]): string {
  const lines = PARTS.map((part) => {
    const names = jobs.filter((job) => job.part === part).map(({ name }) => name);
    return `  ${part.padEnd(9)} ${names.join(' ')}`;
  });
  return `Usage: npm run bench -- [part | job[,job…]]… [flags]

A part runs all of its jobs, unless some of them are named behind it. Without a word: ${USUAL.join(' ')}

${lines.join('\n')}

  --seconds N     of each turn (5)
  --rounds N      turns of each contender (3)
  --against C     a commit, or a checkout: its server takes turns with this one (paths, idle)
  --shards N      ENGINE_SHARDS of the servers (cores less one)
  --lanes N       ENGINE_WRITER_LANES of the servers
  --profile D     folder for a V8 CPU profile of each thread of the servers (paths)
  --backlog N     instances that wait when workers begin (20000)
  --instances N   instances of jobs lateness (10000), pending (300000) and scale (1000000)
  --held N        seconds for which job snapshot holds one (600)
  --full N        seconds of job minute (60)
  --peers-dir D   folder in which part peers installs (among the temporary files)
  --data-dir D    folder in which the database of the run is made and removed
  --out D         folder of the results (bench/results)
  --no-save       store no results
  --quick         tiny and without syncs: shows that everything runs, measures nothing`;
}

/** @throws UsageError that says which word or flag is wrong */
export function readOptions(
  args: readonly string[],
  jobs: readonly Job[],
  results: string,
): Options {
  const { values, positionals } = parse(args);
  const isQuick = values.quick === true;
  const number = (flag: keyof typeof values, fallback: number, quick = fallback) =>
    numberOf(flag, values[flag] as string | undefined) ?? (isQuick ? quick : fallback);
  return {
    jobs: chosen(positionals.length === 0 ? USUAL : positionals, jobs),
    seconds: number('seconds', 5, 0.3),
    rounds: number('rounds', 3, 1),
    against: values.against,
    shards: numberOf('shards', values.shards),
    lanes: numberOf('lanes', values.lanes),
    profile: values.profile,
    backlog: number('backlog', 20_000, 200),
    instances: numberOf('instances', values.instances) ?? (isQuick ? 500 : undefined),
    heldSeconds: number('held', 600, 0.3),
    fullSeconds: number('full', 60, 0.3),
    isDurable: !isQuick,
    peersFolder: values['peers-dir'],
    dataParent: values['data-dir'],
    results: values['no-save'] === true ? undefined : (values.out ?? results),
  };
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        ...{ seconds: text, rounds: text, against: text, shards: text, lanes: text },
        ...{ profile: text, backlog: text, instances: text, held: text, full: text },
        ...{ 'peers-dir': text, 'data-dir': text, out: text, 'no-save': flag, quick: flag },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** In the order of the list. A part with names of its jobs behind it is only a heading. */
function chosen(words: readonly string[], jobs: readonly Job[]): readonly Job[] {
  const names = new Set<string>();
  words.forEach((word, at) => {
    const all = jobs.filter(({ part }) => part === word).map(({ name }) => name);
    const next = words[at + 1]?.split(',') ?? [];
    const isHeading = next.some((name) => all.includes(name));
    for (const name of all.length === 0 ? word.split(',') : isHeading ? [] : all) names.add(name);
  });
  const unknown = [...names].find((name) => !jobs.some((job) => job.name === name));
  if (unknown !== undefined) throw new UsageError(`unknown part or job ${unknown}`);
  return jobs.filter(({ name }) => names.has(name));
}

function numberOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new UsageError(`--${flag} must be a number above zero, not "${text}"`);
}
