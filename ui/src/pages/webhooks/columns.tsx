/** The columns that all lists of webhooks share. */

import { InstanceLink } from '../../components/instance-link.tsx';
import type { Column } from '../../components/table.tsx';

interface Sent {
  readonly url: string;
  readonly event_type: string;
  readonly instance_id?: string | null | undefined;
}

export const SENT_COLUMNS: readonly Column<Sent>[] = [
  { name: 'URL', cell: ({ url }) => url },
  { name: 'Event', cell: ({ event_type }) => event_type },
  { name: 'Instance', cell: ({ instance_id }) => instance_id && <InstanceLink id={instance_id} /> },
];
