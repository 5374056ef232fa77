/** The result of replaying finished instances: how many matched, and where the others diverged. */

import type {
  Divergence,
  InconclusiveRun,
  Release,
  ValidationSummary,
} from 'durable-workflow-engine-client';
import { StateBadge } from '../../components/badge.tsx';
import { Empty } from '../../components/error-box.tsx';
import { InstanceLink } from '../../components/instance-link.tsx';
import { Facts, Panel } from '../../components/page.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { formatCount } from '../../lib/format.ts';

const instance = {
  name: 'Instance',
  cell: ({ instance_id }: { readonly instance_id: string }) => <InstanceLink id={instance_id} />,
};

const DIVERGENCES: readonly Column<Divergence>[] = [
  instance,
  { name: 'Ended', cell: ({ recorded_state }) => <StateBadge state={recorded_state} /> },
  {
    name: 'Ended in the replay',
    cell: ({ replayed_state }) => <StateBadge state={replayed_state} />,
  },
  {
    name: 'Calls changed',
    cell: ({ calls_changed = [] }) => (
      <Names names={calls_changed.map(({ block_id, member }) => `${block_id}: ${member}`)} />
    ),
  },
  { name: 'Blocks added', cell: ({ blocks_added }) => <Names names={blocks_added} /> },
  { name: 'Blocks removed', cell: ({ blocks_removed }) => <Names names={blocks_removed} /> },
];

const INCONCLUSIVE: readonly Column<InconclusiveRun>[] = [
  instance,
  { name: 'Reason', cell: ({ reason }) => reason },
];

function Names({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return <span className="dim">–</span>;
  return names.map((name) => (
    <span key={name}>
      <code>{name}</code>{' '}
    </span>
  ));
}

export function Evidence({ release }: { readonly release: Release }) {
  const { validation_summary: summary, state } = release;
  if (summary !== undefined) return <Summary summary={summary} />;
  return (
    <Panel title="Evidence">
      <Empty title="No replay yet">
        <p>
          {state === 'draft'
            ? 'Validate the release to replay the newest finished instances of the baseline with the candidate.'
            : state === 'validating'
              ? 'The replay is running.'
              : 'The validation was skipped.'}
        </p>
      </Empty>
    </Panel>
  );
}

function Summary({ summary }: { readonly summary: ValidationSummary }) {
  const { divergences, diverged, inconclusive_runs: unclear = [], inconclusive } = summary;
  return (
    <>
      <Panel title="Evidence">
        <Facts
          facts={{
            Replayed: formatCount(summary.replayed),
            'Same result': formatCount(summary.matches),
            Diverged: formatCount(diverged),
            Inconclusive: formatCount(inconclusive),
            Validated: <Time at={summary.validated_at} />,
          }}
        />
        {summary.replayed === 0 && (
          <p className="dim">The baseline had no finished instances to replay.</p>
        )}
      </Panel>
      {divergences.length > 0 && (
        <Panel title={titleOf('Diverged instances', divergences.length, diverged)} isFlush>
          <Table
            label="Diverged instances"
            columns={DIVERGENCES}
            rows={divergences}
            idOf={({ instance_id }) => instance_id}
          />
        </Panel>
      )}
      {unclear.length > 0 && (
        <Panel title={titleOf('Inconclusive instances', unclear.length, inconclusive)} isFlush>
          <Table
            label="Inconclusive instances"
            columns={INCONCLUSIVE}
            rows={unclear}
            idOf={({ instance_id }) => instance_id}
          />
        </Panel>
      )}
    </>
  );
}

function titleOf(title: string, shown: number, all: number): string {
  return shown < all ? `${title}: the first ${formatCount(shown)} of ${formatCount(all)}` : title;
}
