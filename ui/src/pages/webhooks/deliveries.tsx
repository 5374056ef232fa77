/** Deliveries and their attempts: of one subscription, or for the root key of all. */

import type { DeliveryAttempt, DeliverySummary } from 'durable-workflow-engine-client';
import { MailCheck } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { DialogButton } from '../../components/act.tsx';
import { Badge } from '../../components/badge.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Empty } from '../../components/error-box.tsx';
import { FieldRow, Select } from '../../components/field.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { chosenIn, useFilters } from '../../lib/address.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import { SENT_COLUMNS } from './columns.tsx';

const COLUMNS: readonly Column<DeliverySummary>[] = [
  ...SENT_COLUMNS,
  {
    name: 'Outcome',
    cell: ({ delivered, status_code, error_class }) => (
      <Outcome isDelivered={delivered} status={status_code} errorClass={error_class} />
    ),
  },
  { name: 'Attempts', isNumber: true, cell: ({ attempts }) => formatCount(attempts) },
  { name: 'Last attempt', cell: ({ last_attempted_at }) => <Time at={last_attempted_at} /> },
];

function Outcome(props: {
  isDelivered: boolean;
  status: number | null | undefined;
  errorClass: string | null | undefined;
}) {
  const why = [props.status, props.errorClass].filter(Boolean).join(' ');
  return (
    <Badge tone={props.isDelivered ? 'ok' : 'danger'}>
      {props.isDelivered ? 'delivered' : `failed ${why}`}
    </Badge>
  );
}

/** A delivery may happen long after its instance has changed. */
export const READ_EVERY_MS = 5_000;

const OUTCOMES = [
  { value: '', label: 'All' },
  { value: 'true', label: 'Delivered' },
  { value: 'false', label: 'Not delivered' },
] as const;

export function Deliveries() {
  const { allowed } = useEngine();
  const [{ subscription, delivered }, , at] = useFilters();
  const chosen = chosenIn(OUTCOMES, delivered);
  const asked = { delivered: chosen && chosen === 'true' };
  const options = { live: true, refetchInterval: READ_EVERY_MS };
  const all = useList('webhooks.deliveries', [asked], {
    ...options,
    enabled: subscription === undefined,
  });
  const one = useList('webhooks.subscriptionDeliveries', [subscription ?? '', asked], {
    ...options,
    enabled: subscription !== undefined,
  });
  return (
    <>
      <FieldRow>
        <Select label="Outcome" options={OUTCOMES} {...at('delivered')} />
      </FieldRow>
      <ListPanel
        title={
          subscription === undefined
            ? 'Deliveries, newest first'
            : 'Deliveries to one subscription, newest first'
        }
        label="Deliveries"
        actions={
          subscription !== undefined &&
          allowed.administer && <Link href="/webhooks/deliveries">Show all deliveries</Link>
        }
        list={subscription === undefined ? all : one}
        columns={COLUMNS}
        idOf={({ delivery_id }) => delivery_id}
        mayChange={allowed.administer}
        rowActions={({ delivery_id }) => (
          <DialogButton label="Show attempts">
            <Attempts id={delivery_id} />
          </DialogButton>
        )}
        empty={
          chosen === undefined
            ? {
                title: 'No deliveries',
                icon: MailCheck,
                about: (
                  <>
                    All deliveries to subscriptions are listed here, with every attempt.{' '}
                    <Link href="/webhooks">Go to the subscriptions</Link>
                  </>
                ),
              }
            : {
                title: 'No matching deliveries',
                icon: MailCheck,
                about: 'Choose another outcome.',
              }
        }
      />
    </>
  );
}

const ATTEMPT_COLUMNS: readonly Column<DeliveryAttempt>[] = [
  { name: 'Attempt', isNumber: true, cell: ({ attempt_number }) => attempt_number },
  { name: 'When', cell: ({ attempted_at }) => <Time at={attempted_at} /> },
  {
    name: 'Outcome',
    cell: ({ success, status_code, error_class, error_excerpt }) => (
      <>
        <Outcome isDelivered={success} status={status_code} errorClass={error_class} />{' '}
        <span className="small">{error_excerpt}</span>
      </>
    ),
  },
  { name: 'Duration', isNumber: true, cell: ({ duration_ms }) => formatDuration(duration_ms) },
];

function Attempts({ id }: { id: string }) {
  const tries = useRead('webhooks.delivery', [id]);
  return (
    <Dialog title="Delivery attempts" isWide>
      <Loaded query={tries} height={160}>
        {(rows) => (
          <Table
            label="Attempts"
            columns={ATTEMPT_COLUMNS}
            rows={rows}
            idOf={(one) => one.id}
            empty={
              <Empty title="No attempts">
                <p>Earlier attempts were deleted when their retention period ended.</p>
              </Empty>
            }
          />
        )}
      </Loaded>
    </Dialog>
  );
}
