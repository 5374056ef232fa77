/**
 * The command line of `npm run bench`: which parts run, for how long, and where the results go.
 * Pure, so that the tests can call it.
 */

import { parseArgs } from 'node:util';
import { CHECK_NAMES } from './load/checks.js';
import { PATH_NAMES } from './load/path-table.js';
import { WORK_NAMES } from './peers/works.js';
import { ATTACK_NAMES, type AttackName } from './pressure/attack-names.js';

/**
 * `a` creations beside their ceiling `d`: neither means anything without the other, so naming one
 * of them runs both. `b` latency on an idle server.
 */
export const LOAD_PARTS = ['a', 'b'] as const;
export type LoadPart = (typeof LOAD_PARTS)[number];

/** What grows in part `scale`. */
export const GROWTHS = ['waiting', 'pending'] as const;
export type Growth = (typeof GROWTHS)[number];

export interface BenchOptions {
  readonly micro: boolean;
  readonly load: readonly LoadPart[];
  /** What the largest instances cost the others: only when it is named, since it takes minutes. */
  readonly neighbours: boolean;
  /** How late schedules fire: only when it is named. */
  readonly cron: boolean;
  /** How late instances go on that fall due together: only when it is named. */
  readonly timers: boolean;
  /** What an active canary costs creations: only when it is named. */
  readonly release: boolean;
  /** How soon events wake instances: only when it is named. */
  readonly events: boolean;
  /** What a worker process does by the library: only when it is named. */
  readonly worker: boolean;
  /** What an operation of these paths costs the whole machine; none unless `paths` is named. */
  readonly paths: readonly string[];
  /** The checkout whose server is measured in part paths; undefined: this one. */
  readonly server: string | undefined;
  /** The checkout that it is compared with. */
  readonly against: string | undefined;
  /** Given to the servers as ENGINE_WRITER_LANES; undefined: they choose. */
  readonly lanes: number | undefined;
  /** Whether Postgres counts statements, and what they took is printed for each turn of a path. */
  readonly statements: boolean;
  /** The folder for V8 CPU profiles of the servers of part paths. */
  readonly profile: string | undefined;
  /** Checks of part paths. */
  readonly checks: readonly string[];
  /** Instances of each size of the check context. */
  readonly contextInstances: number;
  /** How long the check snapshot holds one under load. */
  readonly snapshotSeconds: number;
  /** How long the check minute has the server at full load. */
  readonly fullSeconds: number;
  /** Tasks that wait when workers begin, in part paths. */
  readonly backlog: number;
  /** The growth to a million: only when it is named. */
  readonly scale: boolean;
  readonly growthOf: readonly Growth[];
  /** Instances or tasks at the end of the growth. */
  readonly scaleTo: number;
  /** Timers that fall due within one second, in part timers and at each step of the growth. */
  readonly herd: number;
  /** Work that other engines do, too; none unless `peers` is named. */
  readonly peers: readonly string[];
  /** What one tenant does to the others; none unless `pressure` is named. */
  readonly attacks: readonly AttackName[];
  /** Where the other engines are installed. */
  readonly peersFolder: string | undefined;
  /** Instances that wait for an event each. */
  readonly instances: number;
  /** Events per second, one stage after the other. */
  readonly rates: readonly number[];
  /** Events of each stage; undefined: all instances get theirs. */
  readonly eventsPerRate: number | undefined;
  /** Of each measured run under load. */
  readonly seconds: number;
  /** How often each measurement is repeated, taking turns with what it is compared with. */
  readonly rounds: number;
  /** Of each micro bench, in milliseconds. */
  readonly microMs: number;
  /** Given to the server as ENGINE_SHARDS; undefined: the server's own default. */
  readonly shards: number | undefined;
  /** The log that Postgres has ready before the first run, in segments of 16 MB. */
  readonly walSegments: number;
  /** False: nothing is synced, so that a run that only checks whether everything works is short. */
  readonly isDurable: boolean;
  /** The folder for the results; undefined: nothing is stored. */
  readonly results: string | undefined;
  /** Where the database of the run is put; undefined: among the temporary files. */
  readonly dataParent: string | undefined;
}

const NEIGHBOURS = 'neighbours';
const CRON = 'cron';
const TIMERS = 'timers';
const RELEASE = 'release';
const EVENTS = 'events';
const WORKER = 'worker';
const SCALE = 'scale';
const PEERS = 'peers';
const PRESSURE = 'pressure';
const NAMED_ONLY: readonly string[] = [NEIGHBOURS, CRON, TIMERS, RELEASE, EVENTS, WORKER, SCALE];
const PATHS = 'paths';
const ROW_NAMES: readonly string[] = [...PATH_NAMES, ...CHECK_NAMES];
/** The check of part paths that is pressure from outside, too. */
const SNAPSHOT = 'snapshot';
const PRESSURE_NAMES: readonly string[] = [...ATTACK_NAMES, SNAPSHOT];
/** Words that begin a part, so that they are no list of what to run of the part before. */
const PARTS: readonly string[] = ['micro', 'load', PATHS, PEERS, PRESSURE, ...NAMED_ONLY];

export class UsageError extends Error {}

export const USAGE = `Usage: npm run bench -- [micro] [load [a,b,c,d]] [neighbours] [cron] [timers] [release]
                       [events] [worker] [scale] [peers [name,…]] [paths [name,…]] [pressure [name,…]]
                       [flags]

  Without a word micro and load run; "load a,b" selects load runs:
    a, d  durable creations at 64 and 256 connections, beside what a bare script reaches
    b     create to completed on an idle server, beside a single durable commit

  "neighbours" measures what the largest instances cost the others.
  "cron" measures how late schedules of every second fire.
  "timers" measures how late instances go on that fall due together, and what that costs another tenant.
  "release" measures what an active canary costs creations.
  "events" measures what instances that wait for events cost, and how soon an event wakes one.
  "worker" measures what a worker process does by the library, and without it.
  "paths" measures what an operation of each path costs the whole machine; "paths noop256,round16"
  selects of: ${PATH_NAMES.join(' ')}
  and of the checks within one run: ${CHECK_NAMES.join(' ')}
  "scale" measures what a million waiting instances and a million pending tasks cost the others.
  "peers" installs other engines in a folder of their own, and measures them on the same work:
  ${WORK_NAMES.join(' ')}
  "pressure" measures what one tenant can take from the others:
  ${PRESSURE_NAMES.join(' ')}
  --seconds N    of each measured run under load (5)
  --rounds N     repetitions of each measurement (3)
  --micro-ms N   of each micro bench (500)
  --shards N     ENGINE_SHARDS of the server
  --against D    another checkout, built: its server takes turns with this one in part paths
  --server D     the checkout whose server is measured in part paths (this one)
  --lanes N      ENGINE_WRITER_LANES of the servers in part paths
  --statements   what each statement of a turn took, by pg_stat_statements, in part paths
  --profile D    folder for V8 CPU profiles of each thread, and tables of them, in part paths
  --backlog N    tasks that wait when workers begin, in part paths (20000)
  --held N       seconds of load for which the check snapshot holds one (20; 600 in part pressure)
  --full N       seconds of full load in the check minute (60)
  --instances N  that wait in part events, each for an event of its own (100000)
  --rate N,…     events per second in part events, one stage after the other (500)
  --events N     in each stage of part events (as many as there are instances for)
                 in part scale: the most that wait or are pending (1000000)
  --growth-of G  in part scale: waiting, pending or both (waiting,pending)
  --herd N       timers in one second in parts timers and scale (10000)
  --peers-dir D  folder in which part peers installs (among the temporary files)
  --data-dir D   folder in which the database of the run is made and removed
  --out D        folder of the results (bench/results)
  --no-save      store no results
  --quick        tiny durations: checks that everything runs, measures nothing`;

/** Every segment costs tens of milliseconds when it is first made: 2 GB outlast a run. */
const WAL_SEGMENTS = 128;

/**
 * @param resultsFolder where results go unless a flag says otherwise
 * @throws UsageError that says which word or flag is wrong
 */
export function readOptions(args: readonly string[], resultsFolder: string): BenchOptions {
  const { values, positionals } = parse(args);
  const quick = values.quick === true;
  const [named, behindPaths] = readNames(positionals, PATHS, ROW_NAMES);
  const [peers, behindPeers] = readNames(behindPaths, PEERS, WORK_NAMES);
  const [attacks, others] = readNames(behindPeers, PRESSURE, PRESSURE_NAMES);
  const isPressed = attacks.includes(SNAPSHOT);
  const usual = others.filter((word) => !NAMED_ONLY.includes(word));
  const [micro, load] = readParts(usual);
  const isAlone = positionals.length > 0 && usual.length === 0;
  return {
    micro: micro && !isAlone,
    load: isAlone ? [] : load,
    neighbours: positionals.includes(NEIGHBOURS),
    cron: positionals.includes(CRON),
    timers: positionals.includes(TIMERS),
    release: positionals.includes(RELEASE),
    events: positionals.includes(EVENTS),
    worker: positionals.includes(WORKER),
    paths: named.filter((name) => PATH_NAMES.includes(name)),
    checks: CHECK_NAMES.filter((name) => named.includes(name) || (isPressed && name === SNAPSHOT)),
    contextInstances: quick ? 2 : 16,
    snapshotSeconds: number(values.held, 'held', quick ? 0.3 : isPressed ? 600 : 20, 0.1),
    fullSeconds: number(values.full, 'full', quick ? 0.3 : 60, 0.1),
    server: values.server,
    against: values.against,
    lanes: values.lanes === undefined ? undefined : number(values.lanes, 'lanes', 1, 1),
    statements: values.statements === true,
    profile: values.profile,
    backlog: number(values.backlog, 'backlog', quick ? 200 : 20_000, 1),
    scale: positionals.includes(SCALE),
    growthOf: readGrowths(values['growth-of']),
    scaleTo: number(values.instances, 'instances', quick ? 2_000 : 1_000_000, 10),
    herd: number(values.herd, 'herd', quick ? 100 : 10_000, 1),
    peers,
    attacks: ATTACK_NAMES.filter((name) => attacks.includes(name)),
    peersFolder: values['peers-dir'],
    instances: number(values.instances, 'instances', quick ? 200 : 100_000, 1),
    rates: (values.rate ?? '500').split(',').map((text) => number(text, 'rate', 500, 1)),
    eventsPerRate: values.events === undefined ? undefined : number(values.events, 'events', 1, 1),
    seconds: number(values.seconds, 'seconds', quick ? 0.3 : 5, 0.1),
    rounds: number(values.rounds, 'rounds', quick ? 1 : 3, 1),
    microMs: number(values['micro-ms'], 'micro-ms', quick ? 1 : 500, 1),
    shards: values.shards === undefined ? undefined : number(values.shards, 'shards', 1, 1),
    walSegments: quick ? 0 : WAL_SEGMENTS,
    isDurable: !quick,
    results: values['no-save'] === true ? undefined : (values.out ?? resultsFolder),
    dataParent: values['data-dir'],
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        seconds: { type: 'string' },
        rounds: { type: 'string' },
        'micro-ms': { type: 'string' },
        shards: { type: 'string' },
        server: { type: 'string' },
        against: { type: 'string' },
        lanes: { type: 'string' },
        statements: { type: 'boolean' },
        profile: { type: 'string' },
        backlog: { type: 'string' },
        held: { type: 'string' },
        full: { type: 'string' },
        instances: { type: 'string' },
        rate: { type: 'string' },
        events: { type: 'string' },
        'growth-of': { type: 'string' },
        herd: { type: 'string' },
        'peers-dir': { type: 'string' },
        'data-dir': { type: 'string' },
        out: { type: 'string' },
        'no-save': { type: 'boolean' },
        quick: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function readParts(words: readonly string[]): [micro: boolean, load: readonly LoadPart[]] {
  if (words.length === 0) return [true, LOAD_PARTS];
  let micro = false;
  let load: readonly LoadPart[] = [];
  for (let i = 0; i < words.length; i += 1) {
    const next = words[i + 1];
    if (words[i] === 'micro') {
      micro = true;
    } else if (words[i] === 'load') {
      const isNamed = next !== undefined && next !== 'micro';
      load = isNamed ? readLoad(next) : LOAD_PARTS;
      if (isNamed) i += 1;
    } else {
      throw new UsageError(`unknown part ${words[i]}`);
    }
  }
  return [micro, load];
}

/** @returns what of a part is asked for, and the words that say something else */
function readNames(
  words: readonly string[],
  part: string,
  all: readonly string[],
): [named: readonly string[], others: string[]] {
  const at = words.indexOf(part);
  if (at < 0) return [[], [...words]];
  const next = words[at + 1];
  const isNamed = next !== undefined && !PARTS.includes(next);
  const others = words.toSpliced(at, isNamed ? 2 : 1);
  if (!isNamed) return [all, others];
  const names = next.split(',');
  const unknown = names.find((name) => !all.includes(name));
  if (unknown !== undefined) throw new UsageError(`unknown row ${unknown} of ${part}`);
  return [names, others];
}

function readLoad(text: string): readonly LoadPart[] {
  const names = text.split(',').map((name) => (name === 'd' ? 'a' : name));
  const unknown = names.find((name) => !(LOAD_PARTS as readonly string[]).includes(name));
  if (unknown !== undefined) throw new UsageError(`unknown load run ${unknown}`);
  return LOAD_PARTS.filter((part) => names.includes(part));
}

function readGrowths(text: string | undefined): readonly Growth[] {
  if (text === undefined) return GROWTHS;
  const names = text.split(',');
  const unknown = names.find((name) => !(GROWTHS as readonly string[]).includes(name));
  if (unknown !== undefined) throw new UsageError(`--growth-of: unknown growth ${unknown}`);
  return GROWTHS.filter((growth) => names.includes(growth));
}

function number(text: string | undefined, flag: string, fallback: number, min: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!Number.isFinite(value) || value < min) {
    throw new UsageError(`--${flag} must be a number of at least ${min}, not "${text}"`);
  }
  return min < 1 ? value : Math.floor(value);
}
