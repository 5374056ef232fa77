/** The servers that a job compares: that of `--against`, where there is one, and that of this checkout. */

import { builtCheckout } from '../base/checkout.js';
import { createBody } from '../base/fixtures.js';
import { BenchServer } from '../base/server.js';
import { findRoles, type ThreadRoles } from '../base/thread-roles.js';
import { postRequest } from '../client/requests.js';
import type { Bench } from '../job.js';

export interface Side {
  readonly name: string;
  readonly server: BenchServer;
  readonly sequenceId: string;
  /** `POST /instances` of that sequence. */
  readonly create: string;
  readonly roles: ThreadRoles;
}

/** Of each of the two loads that tell the threads apart. */
const PROBE_MS_MAX = 1_000;

/** The server of `--against` comes first. @param database the name of theirs begins with it */
export async function openSides(bench: Bench, database: string, sequence: object) {
  const { against } = bench.options;
  const sides: Side[] = [];
  const close = async () => {
    for (const { server } of sides) await server.stop();
  };
  try {
    if (against !== undefined) {
      const { name, folder } = builtCheckout(against);
      sides.push(await openSide(bench, `${database}_against`, sequence, name, folder));
    }
    sides.push(await openSide(bench, database, sequence, 'this'));
  } catch (error) {
    await close();
    throw error;
  }
  return { sides, close };
}

/** To be stopped. */
export async function openSide(
  bench: Bench,
  database: string,
  sequence: object,
  name: string,
  checkout?: string,
): Promise<Side> {
  const { profile, seconds } = bench.options;
  const server = await BenchServer.open(bench, database, {
    ...(checkout === undefined ? {} : { checkout }),
    nodeArgs: profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}/${database}`],
  });
  try {
    const sequenceId = await server.store(sequence);
    const create = postRequest('/instances', JSON.stringify(createBody(sequenceId)));
    const probeMs = Math.min(PROBE_MS_MAX, seconds * 250);
    const roles = await findRoles(server, bench.generator, create, probeMs);
    return { name, server, sequenceId, create, roles };
  } catch (error) {
    await server.stop();
    throw error;
  }
}
