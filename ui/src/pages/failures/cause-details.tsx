/** An opened cause: where it strikes, and what the failed instances have in common. */

import { useQuery } from '@tanstack/react-query';
import type { FailureAttribute } from 'durable-workflow-engine-client';
import { type ReactNode, useId } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Time } from '../../components/time.tsx';
import { countOf, formatCount, formatShare } from '../../lib/format.ts';
import { placeOf } from './cause-table.tsx';
import type { Cause } from './causes.ts';
import styles from './failures.module.css';

const PACE_MS = 15_000;
/** By how much a value is more frequent among the failed than among all runs, to stand out. */
const TELLING = 0.2;

export function CauseDetails(props: {
  readonly cause: Cause;
  readonly sequence: string | undefined;
  readonly failedAfter: string | undefined;
  readonly actions: ReactNode;
}) {
  const { cause, sequence, failedAfter } = props;
  const { client } = useEngine();
  const compared = useQuery({
    queryKey: ['instances.failureAttributes', cause.id, sequence],
    queryFn: ({ signal }) =>
      client.instances.failureAttributes(
        {
          failure_code: cause.code,
          failure_reason: cause.reason,
          failure_handler: cause.handler ?? undefined,
          sequence_name: sequence,
          failed_after: failedAfter,
        },
        { signal },
      ),
    meta: { live: 'all', paceMs: PACE_MS },
  });
  return (
    <div className={styles.details}>
      <section aria-label="Affected sequences">
        <h3>Affected sequences</h3>
        <ul>
          {cause.affected.map((affected) => (
            <li key={affected.name}>
              {placeOf(affected)} <span className="numbers">{formatCount(affected.count)}</span>
            </li>
          ))}
        </ul>
        <p className="dim small">
          First seen <Time at={cause.firstAt} />
        </p>
        {props.actions}
      </section>
      <section aria-label="In common">
        <h3>In common</h3>
        <Loaded query={compared} height={120}>
          {({ attributes, failed, runs, complete }) => (
            <>
              <div className={styles.attributes}>
                {attributes.map((attribute) => (
                  <Attribute key={attribute.name} {...attribute} />
                ))}
              </div>
              <p className="dim small">
                Of the {complete ? '' : 'newest '}
                {countOf(failed, 'failed instance')}, beside the newest {countOf(runs, 'run')} of
                these sequences.
              </p>
            </>
          )}
        </Loaded>
      </section>
    </div>
  );
}

function Attribute({ name, distinct, values }: FailureAttribute) {
  const id = useId();
  return (
    <div>
      <h4 id={id}>{name.replace('_', ' ')}</h4>
      <ul aria-labelledby={id}>
        {values.map(({ value, count, share, share_of_runs }) => (
          <li
            key={value}
            title={countOf(count, 'failed instance')}
            className={share - (share_of_runs ?? 1) >= TELLING ? styles.telling : undefined}
          >
            <span>{name === 'attempt' ? Number(value) + 1 : value}</span>
            <meter value={share} aria-label="Share of the failed instances" />
            <span>{formatShare(share)}</span>
            <span className="dim">
              {share_of_runs !== null && `${formatShare(share_of_runs)} of runs`}
            </span>
          </li>
        ))}
      </ul>
      {distinct > values.length && (
        <p className="dim small">and {countOf(distinct - values.length, 'other value')}</p>
      )}
    </div>
  );
}
