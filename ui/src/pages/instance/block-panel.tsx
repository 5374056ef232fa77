/** Everything about one block of a run: its state, tries, what it was given and gave, and what it logged. */

import { useQuery } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { Button, IconButton } from '../../components/button.tsx';
import { ShortId } from '../../components/copy.tsx';
import { JsonView } from '../../components/json-view.tsx';
import { type Fact, Facts, Panel } from '../../components/page.tsx';
import { Time } from '../../components/time.tsx';
import { StateMark } from '../../flow/block-state.tsx';
import type { OutlineBlock } from '../../flow/outline.ts';
import { type BlockStatus, statusesOf, triesText } from '../../flow/run-states.ts';
import { LOOK_WORDS } from '../../flow/words.ts';
import { hrefOf } from '../../lib/address.ts';
import { elapsedMs, formatCount, formatDuration } from '../../lib/format.ts';
import { useKnownNow } from '../../lib/now.ts';
import { Awaited } from './awaited.tsx';
import { BlockOutputs } from './block-outputs.tsx';
import styles from './block-panel.module.css';
import { Tries } from './block-tries.tsx';
import { LogLines } from './logs-tab.tsx';
import type { Drawn, Run } from './run.ts';

/** Others give nothing, or what is shown with their tries; what loops note of their passes is for the engine. */
const WITH_OUTPUTS = new Set<OutlineBlock['look']>(['approval', 'sub_sequence', 'unknown']);

export function BlockPanel(props: {
  readonly run: Run;
  readonly drawn: Drawn;
  readonly block: OutlineBlock;
  /** Of the block that failed, in loops. */
  readonly failedPass: string | undefined;
  readonly onClose: () => void;
}) {
  const { run, drawn, block, failedPass, onClose } = props;
  const status = statusesOf(drawn.outline, drawn.facts).get(block.path);
  const isStep = block.lanes.length === 0 && block.look !== 'sub_sequence';
  return (
    <Panel
      title={block.id}
      actions={<IconButton label="Close" icon={<X size={16} aria-hidden />} onClick={onClose} />}
    >
      <div className={styles.panel}>
        <p className={styles.head}>
          {status && <StateMark state={status.state} />}
          <span className="dim">
            {[LOOK_WORDS[block.look], block.isInjected && 'injected', block.detail]
              .filter(Boolean)
              .join(' · ')}
          </span>
        </p>
        {status && status.note !== '' && <p className={styles.note}>{status.note}</p>}
        <StatusFacts run={run} block={block} status={status} />
        <BlockActions run={run} block={block} status={status} />
        {isStep && <Tries run={run} block={block} failedPass={failedPass} />}
        {block.lanes.length > 0 && <Inside run={run} drawn={drawn} block={block} />}
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
  const { startedAt, endedAt, tryNumber, triesMax, childInstanceId, until } = status;
  const at = (ms: number) => new Date(ms).toISOString();
  const tries = triesText(tryNumber, triesMax);
  // Behind the end of the instance nothing goes on, whether that was read already or not.
  const last = run.isOpen ? now : Date.parse(run.explanation?.since ?? run.instance.updated_at);
  return (
    <Facts
      facts={[
        ['Started', <Time key="" at={at(startedAt)} />],
        [
          endedAt === undefined ? 'Elapsed' : 'Took',
          formatDuration(elapsedMs(startedAt, last, { to: endedAt, until })),
        ],
        until !== undefined && ['Until', <Time key="" at={at(until)} />],
        tries !== '' && block.lanes.length === 0 && ['Tries', tries],
        childInstanceId !== undefined &&
          ([
            'Child',
            <Link key="" href={`/instances/${childInstanceId}`}>
              <ShortId id={childInstanceId} />
            </Link>,
          ] satisfies Fact),
      ]}
    />
  );
}

/** Only blocks of the root list can be gone back to, and only by what is at rest. */
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

/** More are found in the graph. */
const INSIDE_SHOWN = 40;

function Inside({ run, drawn, block }: { run: Run; drawn: Drawn; block: OutlineBlock }) {
  const statuses = statusesOf(drawn.outline, drawn.facts);
  const inner = block.lanes.flatMap((lane) => lane.blocks);
  const isLoop = block.look === 'loop' || block.look === 'for_each';
  return (
    <section className={styles.section}>
      <h3>Inside</h3>
      {isLoop && (
        <p className="dim small">
          Each block has its passes: choose one to look for a pass, or for those that failed.
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

/** Of the block, from its first one on. */
const LINES_READ = 1_000;
const LINES_SHOWN = 50;

function BlockLogs({ run, block }: { readonly run: Run; readonly block: OutlineBlock }) {
  const { client } = useEngine();
  const { id } = run.instance;
  const asked = { block_id: block.id, limit: LINES_READ };
  const query = useQuery({
    queryKey: ['instances.logs', id, asked],
    queryFn: async ({ signal }) => client.instances.logs(id, asked, { signal }),
    meta: { live: id },
  });
  const { data } = query;
  if (data === undefined) return <Awaited query={query} />;
  if (data.items.length === 0) return null;
  const { length } = data.items;
  return (
    <section className={styles.section}>
      <h3>Log</h3>
      <LogLines lines={data.items.slice(-LINES_SHOWN)} />
      {length > LINES_SHOWN && (
        <p className="dim small">
          The last {LINES_SHOWN} of {length < LINES_READ ? '' : 'the first '}
          {formatCount(length)} lines;{' '}
          <Link href={hrefOf(`/instances/${id}/logs`, { of: block.id })}>the log</Link> has all of
          them.
        </p>
      )}
    </section>
  );
}
