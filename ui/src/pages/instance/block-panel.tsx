/** Everything about one block of a run: its state, attempts, input, output and log. */

import { X } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { Button, IconButton } from '../../components/button.tsx';
import { InstanceLink } from '../../components/instance-link.tsx';
import { JsonView } from '../../components/json-view.tsx';
import { LogLines } from '../../components/log-lines.tsx';
import { Facts, Panel } from '../../components/page.tsx';
import { Time } from '../../components/time.tsx';
import { StateMark } from '../../flow/block-state.tsx';
import type { IterationOrder } from '../../flow/iteration.ts';
import { lookName } from '../../flow/kinds.ts';
import type { OutlineBlock } from '../../flow/outline.ts';
import { attemptsText, type BlockStatus, statusesOf } from '../../flow/run-states.ts';
import { hrefOf } from '../../lib/address.ts';
import { elapsedMs, formatDuration } from '../../lib/format.ts';
import { useKnownNow } from '../../lib/now.ts';
import { Awaited } from './awaited.tsx';
import { Attempts } from './block-attempts.tsx';
import { BlockOutputs } from './block-outputs.tsx';
import styles from './block-panel.module.css';
import { OutLinks } from './out-links.tsx';
import type { Drawn, Run } from './run.ts';

/** Other blocks have no output or show it with their attempts; outputs of loops are internal. */
const WITH_OUTPUTS = new Set<OutlineBlock['look']>(['approval', 'sub_sequence', 'unknown']);

export function BlockPanel(props: {
  readonly run: Run;
  readonly drawn: Drawn;
  readonly block: OutlineBlock;
  /** The iteration of the block that failed, in loops. */
  readonly failedIteration: string | undefined;
  readonly onClose: () => void;
}) {
  const { run, drawn, block, failedIteration, onClose } = props;
  const status = statusesOf(drawn.outline, drawn.facts).get(block.path);
  const isStep = block.slots.length === 0 && block.look !== 'sub_sequence';
  return (
    <Panel title={block.id} actions={<IconButton label="Close" icon={X} onClick={onClose} />}>
      <div className={styles.panel}>
        <p className={styles.head}>
          {status && <StateMark state={status.state} />}
          <span className="dim">
            {[lookName(block.look), block.isInjected && 'injected', block.detail]
              .filter(Boolean)
              .join(' · ')}
          </span>
        </p>
        {status && status.note !== '' && <p className={styles.note}>{status.note}</p>}
        <StatusFacts run={run} block={block} status={status} />
        <BlockActions run={run} block={block} status={status} />
        {isStep && <OutLinks run={run} blockId={block.id} />}
        {isStep && <Attempts run={run} block={block} failedIteration={failedIteration} />}
        {block.slots.length > 0 && <Inside run={run} drawn={drawn} block={block} />}
        {WITH_OUTPUTS.has(block.look) && <BlockOutputs run={run} block={block} />}
        <BlockLogs run={run} block={block} />
        {block.source && (
          <details>
            <summary>Definition</summary>
            <JsonView value={block.source} label={`Definition of ${block.id}`} />
          </details>
        )}
      </div>
    </Panel>
  );
}

function StatusFacts(props: { run: Run; block: OutlineBlock; status: BlockStatus | undefined }) {
  const { run, block, status } = props;
  const now = useKnownNow();
  if (status?.startedAt === undefined) return null;
  const { startedAt, endedAt, attemptNumber, attemptsMax, childInstanceId, until } = status;
  const at = (ms: number) => new Date(ms).toISOString();
  const attempts = attemptsText(attemptNumber, attemptsMax);
  // Once the instance has ended, nothing in it is open, even if that was not read yet.
  const last = run.isOpen ? now : Date.parse(run.explanation?.since ?? run.instance.updated_at);
  return (
    <Facts
      facts={{
        Started: <Time at={at(startedAt)} />,
        [endedAt === undefined ? 'Elapsed' : 'Duration']: formatDuration(
          elapsedMs(startedAt, last, { to: endedAt, until }),
        ),
        Until: until !== undefined && <Time at={at(until)} />,
        Attempts: attempts !== '' && block.slots.length === 0 && attempts,
        Child: childInstanceId && <InstanceLink id={childInstanceId} />,
      }}
    />
  );
}

/** Only blocks of the root list can be rerun, and only while the instance is not running. */
function BlockActions(props: { run: Run; block: OutlineBlock; status: BlockStatus | undefined }) {
  const { run, block, status } = props;
  const { allowed } = useEngine();
  const { state } = run.instance;
  const isRoot = block.parent === null && block.look !== 'hooks';
  if (!allowed.operate || !isRoot || status?.startedAt === undefined) return null;
  const isAtRest = !run.isOpen || state === 'paused';
  return (
    <p className={styles.actions}>
      {isAtRest && (
        <Button onClick={() => run.ask('resume-from', block.id)}>Run again from here…</Button>
      )}
      <Button onClick={() => run.ask('fork', block.id)}>Fork from here…</Button>
    </p>
  );
}

/** The graph shows the others. */
const INSIDE_SHOWN = 40;

function Inside({ run, drawn, block }: { run: Run; drawn: Drawn; block: OutlineBlock }) {
  const statuses = statusesOf(drawn.outline, drawn.facts);
  const inner = block.slots.flatMap((slot) => slot.blocks);
  const isLoop = block.look === 'loop' || block.look === 'for_each';
  const timeline = (order: IterationOrder) =>
    hrefOf(`/instances/${run.instance.id}/timeline`, { order });
  return (
    <section className={styles.section}>
      <h3>Inside</h3>
      {isLoop && (
        <p className="dim small">
          Select a block to find one of its iterations, or those that failed. The timeline lists the{' '}
          <Link href={timeline('slowest')}>slowest</Link> or{' '}
          <Link href={timeline('failed')}>failed</Link> iterations first.
        </p>
      )}
      <ul className={styles.inside}>
        {inner.slice(0, INSIDE_SHOWN).map((one) => {
          const status = statuses.get(one.path);
          return (
            <li key={one.path}>
              <Link href={run.hrefOfBlock(one.path)}>{one.id}</Link>
              {status && <StateMark state={status.state} />}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** The newest lines of the block, oldest first. */
const LINES_SHOWN = 50;

function BlockLogs({ run, block }: { readonly run: Run; readonly block: OutlineBlock }) {
  const { id } = run.instance;
  const asked = { block_id: block.id, limit: LINES_SHOWN, order: 'newest' as const };
  const query = useRead('instances.logs', [id, asked], { live: id });
  const { data } = query;
  if (data === undefined) return <Awaited query={query} />;
  if (data.items.length === 0) return null;
  return (
    <section className={styles.section}>
      <h3>Log</h3>
      <LogLines lines={data.items.toReversed()} />
      {data.items.length === LINES_SHOWN && (
        <p className="dim small">
          The last {LINES_SHOWN} lines;{' '}
          <Link href={hrefOf(`/instances/${id}/logs`, { of: block.id })}>the log</Link> has all of
          them.
        </p>
      )}
    </section>
  );
}
