/**
 * The servers of a comparison: that of this checkout, or of one that is named, and the one it is compared
 * with. Each has a database of its own in the same Postgres.
 */

import path from 'node:path';
import type { BenchOptions } from '../options.js';
import type { Span } from './profile.js';
import { profilesOf, profileText, type ThreadProfile } from './profile-report.js';
import type { LoadContext } from './run.js';
import { type BenchServer, startServer, type Variant } from './server.js';
import { findRoles, type ThreadRoles } from './thread-roles.js';

export type Side = 'this' | 'against';

export interface Candidate {
  readonly side: Side;
  readonly database: string;
  readonly server: BenchServer;
  readonly roles: ThreadRoles;
  /** The turns that were measured: profiles are about nothing else. */
  readonly measured: Span[];
  /** Of its threads, where they are asked for: there when the server has ended. */
  readonly profiles: ThreadProfile[];
}

/** Of each of the two loads that tell the threads apart. */
const PROBE_MS_MAX = 1_000;

/** In turns: A B, B A, A B … */
export function inTurn<T>(candidates: readonly T[], round: number): readonly T[] {
  return round % 2 === 0 ? candidates : candidates.toReversed();
}

/**
 * Starts the servers, and stops them whatever happens.
 * @param name of what is measured, for the databases and the profiles
 */
export async function withCandidates<T>(
  context: LoadContext,
  options: BenchOptions,
  name: string,
  variant: Variant,
  use: (candidates: readonly Candidate[]) => Promise<T>,
): Promise<T> {
  const sides: readonly Side[] = options.against === undefined ? ['this'] : ['against', 'this'];
  let candidates: readonly Candidate[] = [];
  const result = await withServers(context, options, name, variant, sides, (opened) => {
    candidates = opened;
    return use(opened);
  });
  if (options.profile === undefined) return result;
  for (const { side, measured, profiles } of candidates) {
    const folder = profileFolder(options.profile, name, side);
    profiles.push(...profilesOf(folder, measured));
    context.progress(`\n${profileText(folder, profiles)}`);
  }
  return result;
}

async function withServers<T>(
  context: LoadContext,
  options: BenchOptions,
  name: string,
  variant: Variant,
  sides: readonly Side[],
  use: (candidates: readonly Candidate[]) => Promise<T>,
): Promise<T> {
  const candidates: Candidate[] = [];
  try {
    for (const side of sides) {
      candidates.push(await openCandidate(context, options, name, variant, side));
    }
    return await use(candidates);
  } finally {
    for (const { server } of candidates) await server.stop();
  }
}

/** To be stopped. @param name of what is measured, for the database and the profile */
export async function openCandidate(
  { postgres, generator }: LoadContext,
  options: BenchOptions,
  name: string,
  variant: Variant,
  side: Side,
): Promise<Candidate> {
  const checkout = side === 'this' ? options.server : options.against;
  const { lanes, profile } = options;
  const database = databaseOf(name, side);
  const server = await startServer(postgres, database, variant, options.shards, {
    ...(checkout === undefined ? {} : { checkout }),
    env: lanes === undefined ? {} : { ENGINE_WRITER_LANES: String(lanes) },
    nodeArgs:
      profile === undefined
        ? []
        : ['--cpu-prof', `--cpu-prof-dir=${profileFolder(profile, name, side)}`],
  });
  try {
    const probeMs = Math.min(PROBE_MS_MAX, options.seconds * 250);
    const roles = await findRoles(server, generator, probeMs);
    return { side, database, server, roles, measured: [], profiles: [] };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

function databaseOf(name: string, side: Side): string {
  return `${name}_${side}`;
}

function profileFolder(profile: string, name: string, side: Side): string {
  return path.resolve(profile, databaseOf(name, side));
}
