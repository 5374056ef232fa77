/** The decisions about a release: who, when and why. */

import type { UseQueryResult } from '@tanstack/react-query';
import type { ReleaseDecision } from 'durable-workflow-engine-client';
import { Loaded } from '../../components/loaded.tsx';
import { Panel } from '../../components/page.tsx';
import { type Column, Table } from '../../components/table.tsx';
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

export function Decisions({
  query,
}: {
  readonly query: UseQueryResult<readonly ReleaseDecision[]>;
}) {
  return (
    <Panel title="Decisions, newest first" isFlush>
      <Loaded query={query} height={220}>
        {(decisions) => (
          <Table
            label="Decisions"
            columns={COLUMNS}
            rows={decisions.toReversed()}
            idOf={({ id }) => id}
          />
        )}
      </Loaded>
    </Panel>
  );
}
