/** Changes many instances at once: shows how many first, and follows a long change as a job. */

import { useQuery } from '@tanstack/react-query';
import type { BatchAction, Client } from 'durable-workflow-engine-client';
import { type ReactNode, useId, useRef, useState } from 'react';
import { useEngine } from '../api/engine.tsx';
import { countOf, formatCount, formatDuration } from '../lib/format.ts';
import { readNumber } from '../lib/numbers.ts';
import { type BulkAnswer, BulkOutcome, type BulkReach, isJob } from './bulk-outcome.tsx';
import { ConfirmDialog } from './dialog.tsx';
import { ErrorBox } from './error-box.tsx';
import { Checkbox, NumberField, Select } from './field.tsx';
import { Loaded } from './loaded.tsx';

export type BulkAction = Exclude<BatchAction['action'], 'signal'>;
export type BulkFilter = BatchAction['filter'];

const WORDS: Record<BulkAction, readonly [verb: string, done: string]> = {
  retry: ['Retry', 'retried'],
  pause: ['Pause', 'paused'],
  resume: ['Resume', 'resumed'],
  cancel: ['Cancel', 'cancelled'],
};

/** The most that the engine changes by one request. */
const LIMIT = 10_000;

/** Counting many instances runs as a job, whose progress is polled. */
const COUNT_EVERY_MS = 1000;

type Plan = 'all' | 'pace' | 'probe';

const PLANS: readonly { readonly value: Plan; readonly label: string }[] = [
  { value: 'all', label: 'All at once' },
  { value: 'pace', label: 'All, at a pace' },
  { value: 'probe', label: 'One first: the newest failure' },
];

const PACE = { isInteger: true, min: 1, max: 600_000 } as const;
const PACE_DEFAULT = '60';

interface Counted {
  readonly applied: number;
  readonly skipped: number;
  readonly repeats_effects: number;
  readonly isCounting: boolean;
}

/**
 * @param props.filter which instances; all of its members apply
 * @param props.children shown above the count, such as what the instances have in common
 */
export function BulkDialog(props: {
  readonly action: BulkAction;
  readonly filter: BulkFilter;
  /** Filters that find the changed instances afterwards. */
  readonly among: BulkReach['among'];
  readonly children?: ReactNode;
  /** An instance that can be retried alone, to see whether it works now. */
  readonly probe?: string | undefined;
  readonly onDone?: () => void;
}) {
  const { action, among, children, onDone } = props;
  const { client } = useEngine();
  const opened = useId();
  const [probes, setProbes] = useState(0);
  const counting = useRef<string | undefined>(undefined);
  const [verb, done] = WORDS[action];
  const [orphans, setOrphans] = useState(false);
  const [plan, setPlan] = useState<Plan>('all');
  const [pace, setPace] = useState(PACE_DEFAULT);
  const isProbe = plan === 'probe' && props.probe !== undefined;
  const filter = isProbe ? { ...props.filter, ids: [props.probe as string] } : props.filter;
  const read = plan === 'pace' ? readNumber(pace, PACE) : undefined;
  const perMinute = read?.wrong === undefined ? read?.value : undefined;
  const isPaceWrong = plan === 'pace' && perMinute === undefined;
  const what = { filter, action, limit: LIMIT, ...(orphans && { orphans }) };
  const body = { ...what, ...(perMinute !== undefined && { per_minute: perMinute }) };
  const count = useQuery({
    queryKey: ['instances.batchAction', opened, probes, what],
    queryFn: ({ signal }) => countMatches(client, { ...what, dry_run: true }, counting, signal),
    refetchInterval: ({ state }) =>
      state.data?.isCounting && state.error === null ? COUNT_EVERY_MS : false,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const [answer, setAnswer] = useState<{ readonly told: BulkAnswer; readonly begunAt: number }>();
  const repeating = count.data?.repeats_effects ?? 0;
  const isRetry = action === 'retry' || action === 'resume';
  const counted = count.data?.isCounting === false ? count.data.applied : undefined;
  if (answer !== undefined) {
    const { told, begunAt } = answer;
    const reach = { among, ids: filter.ids ?? undefined };
    const probe = isProbe ? props.probe : undefined;
    const goOn = () => {
      setProbes(probes + 1);
      setPlan('all');
      setAnswer(undefined);
    };
    return <BulkOutcome answer={told} {...{ done, reach, begunAt, probe }} onGoOn={goOn} />;
  }
  return (
    <ConfirmDialog
      title={`${verb} many instances?`}
      {...(action === 'cancel' && { keep: 'Keep them' })}
      action={counted === undefined ? verb : `${verb} ${countOf(counted, 'instance')}`}
      kind={action === 'cancel' || repeating > 0 ? 'danger' : 'primary'}
      isDisabled={!counted || isPaceWrong}
      act={async () => {
        const begunAt = Date.now();
        return { told: await client.instances.batchAction(body), begunAt };
      }}
      onDone={(answered) => {
        onDone?.();
        setAnswer(answered);
      }}
    >
      {children}
      {action === 'retry' && props.probe !== undefined && (
        <Select label="Retry" value={plan} options={PLANS} onChange={setPlan} />
      )}
      {plan === 'pace' && (
        <NumberField
          label="Instances per minute"
          required
          value={pace}
          limits={PACE}
          onChange={setPace}
        />
      )}
      {isRetry && (
        <Checkbox
          label="Include children whose parents have continued without them"
          value={orphans}
          onChange={setOrphans}
        />
      )}
      <Loaded query={count} height={24}>
        {({ applied, skipped, isCounting }) => (
          <p role="status">
            <strong>{countOf(applied, 'instance')}</strong> would be {done}
            {perMinute !== undefined && `, in ${formatDuration((applied * 60_000) / perMinute)}`}
            {skipped > 0 &&
              `, ${formatCount(skipped)} skipped because the action does not apply to them`}
            {skipped > 0 && isRetry && !orphans && ' or their parents have continued without them'}
            {isCounting ? '; counting…' : '.'}
            {applied + skipped >= LIMIT &&
              ` One change reaches at most ${formatCount(LIMIT)}: repeat it for the others.`}
          </p>
        )}
      </Loaded>
      {repeating > 0 && (
        <p>
          <strong>{formatCount(repeating)}</strong> of them {repeating === 1 ? 'repeats' : 'repeat'}{' '}
          external effects: completed work runs a second time, such as the charge of a compensated
          saga, or a child continues whose parent has continued without it. The page of each
          instance lists these effects.
        </p>
      )}
      {count.data && count.error && (
        <ErrorBox error={count.error} onRetry={() => void count.refetch()} />
      )}
    </ConfirmDialog>
  );
}

/**
 * Starts the count once; if it became a job, later calls read the progress of the job.
 * @throws Error when the job ended before it had counted everything
 */
async function countMatches(
  client: Client,
  body: BatchAction,
  counting: { current: string | undefined },
  signal: AbortSignal,
): Promise<Counted> {
  const result =
    counting.current === undefined
      ? await client.instances.batchAction(body, { signal })
      : await client.bulkJobs.get(counting.current, { signal });
  const { applied, skipped, repeats_effects } = result;
  const counts = { applied, skipped, repeats_effects };
  if (!isJob(result)) return { ...counts, isCounting: false };
  const { id, state, error, ended_at } = result;
  counting.current = ended_at === null ? id : undefined;
  if (ended_at !== null && state !== 'completed') {
    throw new Error(error ?? 'The count did not finish.');
  }
  return { ...counts, isCounting: ended_at === null };
}
