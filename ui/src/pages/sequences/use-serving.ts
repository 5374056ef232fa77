/** The versions of a name and its releases, which decide the version of a new instance. */

import type { SequenceDefinition } from 'durable-workflow-engine-client';
import { useMaySee } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { sharesOf } from './serving.ts';

const PACE_MS = 5_000;

/** The query for the versions of a name, newest first. */
export const versionsOf = ({ namespace, name }: Named) =>
  ({ namespace, name, include_definition: false }) as const;

type Named = Pick<SequenceDefinition, 'namespace' | 'name'>;

/** Newest first. Undefined while loading; releases and shares also for callers who may not read releases. */
export function useServing({ namespace, name }: Named) {
  const maySee = useMaySee();
  const { data: versions } = useRead('sequences.list', [versionsOf({ namespace, name })], {
    select: ({ items }) => items,
  });
  const { data: ofName } = useRead('releases.list', [{ sequence_name: name }], {
    enabled: maySee('/releases'),
    live: 'all',
    paceMs: PACE_MS,
    select: ({ items }) => items,
  });
  const releases = ofName?.filter((release) => release.namespace === namespace);
  return { versions, releases, shares: versions && releases && sharesOf(versions, releases) };
}
