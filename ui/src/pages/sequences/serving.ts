/** Which versions new instances of a name get, by its releases (docs/releases.md). Pure. */

import type { Release, SequenceListed } from 'durable-workflow-engine-client';

export interface Share {
  readonly percent: number;
  /** That gives the version its share; undefined: it is the newest that the name leads to. */
  readonly release: Release | undefined;
}

type Version = Pick<SequenceListed, 'id' | 'deprecated' | 'hold'>;

/** The shares by the id of the version. @param versions and releases of the name, newest first */
export function sharesOf(
  versions: readonly Version[],
  releases: readonly Release[],
): ReadonlyMap<string, Share> {
  const named = namedIn(versions, releases);
  if (named === undefined) return new Map();
  const deprecated = new Set(versions.filter((one) => one.deprecated).map(({ id }) => id));
  const passed = new Set<string>();
  let [at, target] = [named, named];
  let promoted: Release | undefined;
  // A later release may lead back to a version that was left before.
  while (!passed.has(at)) {
    passed.add(at);
    const release = releases.find(
      ({ baseline_sequence_id, state }) =>
        baseline_sequence_id === at && (state === 'canary' || state === 'promoted'),
    );
    if (release === undefined) break;
    const { candidate_sequence_id: candidate, canary_percent: percent } = release;
    const isRouted = !deprecated.has(candidate);
    if (release.state === 'canary') {
      if (!isRouted) break;
      return new Map([
        [target, { percent: 100 - percent, release }],
        [candidate, { percent, release }],
      ]);
    }
    if (passed.has(candidate)) break;
    at = candidate;
    if (isRouted) [target, promoted] = [candidate, release];
  }
  return new Map([[target, { percent: 100, release: promoted }]]);
}

/** The version that the name leads to before its releases; candidates of unpromoted ones only if there is no other. */
function namedIn(versions: readonly Version[], releases: readonly Release[]): string | undefined {
  const active = versions.filter(({ deprecated, hold }) => !deprecated && !hold);
  const isCandidate = ({ id }: Version) => {
    const release = releases.find((one) => one.candidate_sequence_id === id);
    return release !== undefined && release.state !== 'promoted';
  };
  return (active.find((version) => !isCandidate(version)) ?? active[0])?.id;
}
