/** The shortened id of an instance, as a link to its page. */

import { Link } from 'wouter';
import { ShortId } from './copy.tsx';

export function InstanceLink({ id }: { readonly id: string }) {
  return (
    <Link href={`/instances/${id}`}>
      <ShortId id={id} />
    </Link>
  );
}
