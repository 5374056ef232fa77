/** Name and version of a sequence, as a link. */

import { Link } from 'wouter';
import { useSequence } from '../api/sequences.ts';
import { ShortId } from './copy.tsx';

export function SequenceName({ id }: { readonly id: string }) {
  const sequence = useSequence(id);
  return (
    <Link href={`/sequences/${id}`}>
      {sequence ? `${sequence.name}\u00a0${sequence.version}` : <ShortId id={id} />}
    </Link>
  );
}
