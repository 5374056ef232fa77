/** Completion of definitions by their schemas, and by the names that the tenant has. */

import { useQuery } from '@tanstack/react-query';
import { useEngine } from '../../api/engine.tsx';
import { useSequenceNames } from '../../api/sequences.ts';
import type { Complete } from '../../components/completion.ts';
import { completionsAt } from './completions.ts';

export function useComplete(): Complete {
  const { client, allowed } = useEngine();
  const sequences = useSequenceNames() ?? [];
  const { data: handlers = [] } = useQuery({
    queryKey: ['handlers'],
    queryFn: async ({ signal }) => {
      const [{ builtin, external }, { queues }] = await Promise.all([
        client.handlers({}, { signal }),
        client.queues.list({}, { signal }),
      ]);
      // Tasks may wait for a handler that no worker serves yet.
      return [...builtin, ...external, ...queues.map(({ handler }) => handler)];
    },
    enabled: allowed.readAll,
  });
  const { data: schemas } = useQuery({
    queryKey: ['schemas of definitions'],
    queryFn: async () => (await import('virtual:definition-schemas')).default,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (text, at) => schemas && completionsAt(text, at, schemas, { handlers, sequences });
}
