/** The columns that all lists of webhooks share. */

import { Link } from 'wouter';
import { ShortId } from '../../components/copy.tsx';
import type { Column } from '../../components/table.tsx';

interface Sent {
  readonly url: string;
  readonly event_type: string;
  readonly instance_id?: string | null | undefined;
}

export const SENT_COLUMNS: readonly Column<Sent>[] = [
  { name: 'URL', cell: ({ url }) => url },
  { name: 'Event', cell: ({ event_type }) => event_type },
  {
    name: 'Instance',
    cell: ({ instance_id }) =>
      instance_id && (
        <Link href={`/instances/${instance_id}`}>
          <ShortId id={instance_id} />
        </Link>
      ),
  },
];
