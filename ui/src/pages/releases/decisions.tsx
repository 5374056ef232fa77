/** The decisions about a release: who, when and why. */

import type { UseQueryResult } from '@tanstack/react-query';
import type { ReleaseDecision } from 'durable-workflow-engine-client';
import { TablePanel } from '../../components/list-panel.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { wordsOf } from '../../lib/format.ts';
import { ReleaseBadge } from './release-badge.tsx';

const COLUMNS: readonly Column<ReleaseDecision>[] = [
  { name: 'When', cell: ({ decided_at }) => <Time at={decided_at} /> },
  { name: 'Who', cell: ({ actor }) => whoOf(actor) },
  {
    name: 'Decision',
    cell: ({ from_state, to_state }) =>
      from_state === to_state ? (
        <ReleaseBadge state={to_state} />
      ) : (
        <span className="whole">
          <ReleaseBadge state={from_state} /> → <ReleaseBadge state={to_state} />
        </span>
      ),
  },
  { name: 'Reason', cell: ({ reason }) => reason },
];

/** `gate:error_rate` as `Gate: error rate`. */
function whoOf(actor: string): string {
  return wordsOf(actor.replace(':', ': '));
}

export function Decisions(props: {
  readonly decisions: UseQueryResult<readonly ReleaseDecision[]>;
}) {
  return (
    <TablePanel
      title="Decisions, newest first"
      label="Decisions"
      query={props.decisions}
      height={220}
      columns={COLUMNS}
      rowsOf={(rows) => rows.toReversed()}
      idOf={({ id }) => id}
    />
  );
}
