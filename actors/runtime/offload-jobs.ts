/**
 * What is worked on beside the turn: one row per job. A job is a synchronous function of plain data;
 * its module is loaded by the thread that carries it out, on first use.
 */

export interface Job<Input, Output> {
  /** Imports the module of the job. */
  readonly load: () => Promise<(input: Input) => Output>;
  /** Takes some milliseconds: less than the way to another thread, and carried out in place. */
  readonly isSmall: (input: Input) => boolean;
  /** How long it may take once a thread has begun it. */
  readonly ms: number;
}

const KIB = 1024;
/** Capsules and definitions at their bounds take seconds; ten times that on a machine that is busy. */
const LARGE_MS = 60_000;
/** Of one replay: a usual one takes milliseconds, and the longest within the ceiling of turns seconds. */
const REPLAY_MS = 10_000;

export const JOBS = {
  sealCapsule: job({
    load: async () => (await import('../../src/core/continuity/sealed-payload.js')).sealCapsule,
    isSmall: ({ outputs }) =>
      outputs.reduce((sum, { output_size }) => sum + output_size, 0) <= 256 * KIB,
    ms: LARGE_MS,
  }),
  openCapsule: job({
    load: async () => (await import('../continuity/sealed-capsules.js')).openCapsule,
    isSmall: ({ sealed }) => sealed.length <= 256 * KIB,
    ms: LARGE_MS,
  }),
  compareDefinitions: job({
    load: async () => (await import('../../src/core/releases/diff.js')).compareDefinitions,
    isSmall: ({ baseline, candidate }) => baseline.length + candidate.length <= 128 * KIB,
    ms: LARGE_MS,
  }),
  verifyProvenance: job({
    load: async () => (await import('../../src/core/continuity/provenance.js')).verifyChain,
    // Some 70 entries; each signature takes a tenth of a millisecond.
    isSmall: ({ text }) => text.length <= 48 * KIB,
    ms: LARGE_MS,
  }),
  // Of a request: what is wrong with it is looked for in the whole. To look a definition through takes longer.
  judgeBody: job({
    load: async () => (await import('../../src/http/body.js')).judgeBody,
    isSmall: ({ text, callMsMax }) => callMsMax === undefined && text.length <= 128 * KIB,
    ms: LARGE_MS,
  }),
  // For admission, which counts short ones itself.
  countBlocks: job({
    load: async () => (await import('../../src/http/count-blocks.js')).countBlocks,
    isSmall: () => false,
    ms: LARGE_MS,
  }),
  // Definitions are a stranger's, and histories as large as their instances made them.
  compileCandidate: job({
    load: async () => (await import('../release/stored-replays.js')).compileCandidate,
    isSmall: () => false,
    ms: LARGE_MS,
  }),
  replayRun: job({
    load: async () => (await import('../release/stored-replays.js')).replayRun,
    isSmall: () => false,
    ms: REPLAY_MS,
  }),
  replayMigration: job({
    load: async () => (await import('../release/stored-replays.js')).replayMigration,
    isSmall: () => false,
    ms: REPLAY_MS,
  }),
} satisfies Record<string, Job<never, unknown>>;

export type JobName = keyof typeof JOBS;
type RowOf<Name extends JobName> = (typeof JOBS)[Name];
export type JobInput<Name extends JobName> = Parameters<RowOf<Name>['isSmall']>[0];
export type JobOutput<Name extends JobName> = ReturnType<Awaited<ReturnType<RowOf<Name>['load']>>>;

export function jobNamed<Name extends JobName>(name: Name): Job<JobInput<Name>, JobOutput<Name>> {
  return JOBS[name] as unknown as Job<JobInput<Name>, JobOutput<Name>>;
}

function job<Input, Output>(row: Job<Input, Output>): Job<Input, Output> {
  return row;
}
