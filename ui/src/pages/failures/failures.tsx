/** Failed instances grouped by cause, with bulk actions on each cause. */

import { useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { type BulkAction, BulkDialog } from '../../components/bulk-dialog.tsx';
import { Button, ButtonRow } from '../../components/button.tsx';
import { CloseContext } from '../../components/dialog.tsx';
import { FieldRow } from '../../components/field.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Page, Panel } from '../../components/page.tsx';
import { SequenceField } from '../../components/sequence-field.tsx';
import { TableNote } from '../../components/table.tsx';
import { hrefOf, useFilters } from '../../lib/address.ts';
import { formatCount } from '../../lib/format.ts';
import { CauseDetails } from './cause-details.tsx';
import { CauseTable, filterOf, useCauses } from './cause-table.tsx';
import type { Cause } from './causes.ts';
import styles from './failures.module.css';
import { PERIODS, type Period, periodOf } from './periods.ts';
import { RecentRetries } from './recent-retries.tsx';

interface Chosen {
  readonly action: BulkAction;
  readonly cause: Cause;
  readonly failedAfter: string | undefined;
}

export default function Failures() {
  const { allowed } = useEngine();
  const [filters, change, at] = useFilters();
  const [chosen, setChosen] = useState<Chosen>();
  const { sequence } = filters;
  const period = periodOf(filters.period);
  const causes = useCauses(period, sequence);
  const openCause = (cause: Cause | undefined) => change({ cause: cause?.id });
  return (
    <Page title="Failures" about="Failed instances, grouped by cause. Largest first.">
      <FieldRow>
        <SequenceField isFilter {...at('sequence')} />
      </FieldRow>
      <Panel
        title={period.words === undefined ? 'By cause' : `By cause, in ${period.words}`}
        isFlush
        actions={<PeriodChoice period={period} />}
      >
        <Loaded query={causes} height={320}>
          {({ causes: rows, complete, looked_at, failed_after: failedAfter }) => (
            <>
              <CauseTable
                rows={rows}
                {...{ period, sequence, failedAfter }}
                live={{ query: causes, of: `${period.name} ${sequence ?? ''}` }}
                opened={{
                  id: filters.cause,
                  content: (cause) => (
                    <CauseDetails
                      {...{ cause, sequence, failedAfter }}
                      actions={
                        allowed.operate && (
                          <ButtonRow>
                            <Button
                              onClick={() => setChosen({ action: 'cancel', cause, failedAfter })}
                            >
                              Cancel all…
                            </Button>
                          </ButtonRow>
                        )
                      }
                    />
                  ),
                }}
                more={[
                  {
                    name: 'Action',
                    cell: (cause) => (
                      <ButtonRow>
                        <Button
                          aria-expanded={cause.id === filters.cause}
                          onClick={() => openCause(cause.id === filters.cause ? undefined : cause)}
                        >
                          Details
                        </Button>
                        {allowed.operate && (
                          <Button
                            onClick={() => setChosen({ action: 'retry', cause, failedAfter })}
                          >
                            Retry…
                          </Button>
                        )}
                      </ButtonRow>
                    ),
                  },
                ]}
              />
              {!complete && (
                <TableNote>
                  Of the newest {formatCount(looked_at)} failed instances; there are more.
                </TableNote>
              )}
            </>
          )}
        </Loaded>
      </Panel>
      <RecentRetries />
      {chosen && (
        <CloseContext value={() => setChosen(undefined)}>
          <CauseDialog {...chosen} {...{ period, sequence }} />
        </CloseContext>
      )}
    </Page>
  );
}

function PeriodChoice({ period }: { readonly period: Period }) {
  const [filters] = useFilters();
  return (
    <nav aria-label="Period">
      <ButtonRow>
        {PERIODS.map(({ name, label, words }) => (
          <Link
            key={name}
            href={hrefOf('/failures', { ...filters, period: name })}
            className={name === period.name ? undefined : 'dim'}
            aria-current={name === period.name ? 'true' : undefined}
            aria-label={`${label}: ${words ?? 'at any time'}`}
          >
            {label}
          </Link>
        ))}
      </ButtonRow>
    </nav>
  );
}

function CauseDialog(
  props: Chosen & {
    readonly period: Period;
    readonly sequence: string | undefined;
  },
) {
  const { action, cause, period, sequence, failedAfter } = props;
  const filter = filterOf(cause, { sequence, failedAfter });
  const { namespace, sequence_id, sequence_name } = filter;
  const among = { namespace, sequence_id, sequence: sequence_name } as Record<string, string>;
  return (
    <BulkDialog {...{ action, filter, among }} probe={cause.example.id}>
      <p>
        Instances of{' '}
        {cause.affected.map(({ name, versions }, at) => (
          <span key={name}>
            {at > 0 && ', '}
            <strong>{name}</strong> {versions.length === 1 ? 'version' : 'versions'}{' '}
            {versions.join(', ')}
          </span>
        ))}{' '}
        that failed {period.words !== undefined && `in ${period.words} `}of:
      </p>
      <p className={styles.reason}>{cause.reason}</p>
      {cause.handler === null && (
        <p>
          This includes instances that failed for the same reason in any handler: they cannot be
          excluded. The number below includes them.
        </p>
      )}
    </BulkDialog>
  );
}
