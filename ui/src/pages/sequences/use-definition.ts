/** Reads a version of a sequence with its definition. */

import { useRead } from '../../api/read.ts';

/** @param id undefined: nothing is read yet */
export function useDefinition(id: string | undefined) {
  return useRead('sequences.get', [id ?? ''], { enabled: id !== undefined });
}
