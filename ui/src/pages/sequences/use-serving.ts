/** The versions of a name and its releases, which decide the version of a new instance. */

import { useQuery } from '@tanstack/react-query';
import type { SequenceDefinition } from 'durable-workflow-engine-client';
import { useEngine, useMaySee } from '../../api/engine.tsx';
import { sharesOf } from './serving.ts';

const PACE_MS = 5_000;

/** Newest first. Undefined while loading; releases and shares also for callers who may not read releases. */
export function useServing({ namespace, name }: Pick<SequenceDefinition, 'namespace' | 'name'>) {
  const { client } = useEngine();
  const maySee = useMaySee();
  const { data: versions } = useQuery({
    queryKey: ['sequences.list', 'newest of', namespace, name],
    queryFn: async ({ signal }) => {
      const query = { namespace, name, include_definition: false };
      return (await client.sequences.list(query, { signal })).items;
    },
  });
  const { data: ofName } = useQuery({
    queryKey: ['releases.list', 'of', name],
    queryFn: async ({ signal }) =>
      (await client.releases.list({ sequence_name: name }, { signal })).items,
    enabled: maySee('/releases'),
    meta: { live: 'all', paceMs: PACE_MS },
  });
  const releases = ofName?.filter((release) => release.namespace === namespace);
  return { versions, releases, shares: versions && releases && sharesOf(versions, releases) };
}
