/** Reads a version of a sequence with its definition. */

import { useQuery } from '@tanstack/react-query';
import { useEngine } from '../../api/engine.tsx';

/** @param id undefined: nothing is read yet */
export function useDefinition(id: string | undefined) {
  const { client } = useEngine();
  return useQuery({
    queryKey: ['sequences.get', id],
    queryFn: ({ signal }) => client.sequences.get(id ?? '', { signal }),
    enabled: id !== undefined,
  });
}
