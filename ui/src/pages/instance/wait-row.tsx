/** One thing that an instance waits for: since when, until when, who serves it, and the actions for it. */

import type { GateChoice, Wait, WaitKind } from 'durable-workflow-engine-client';
import {
  CalendarClock,
  CircleHelp,
  Clock,
  Cpu,
  Gauge,
  GitFork,
  Hourglass,
  type LucideIcon,
  Moon,
  Pause,
  Radio,
  RotateCw,
  Users,
} from 'lucide-react';
import { Fragment, type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import { Badge, StateBadge } from '../../components/badge.tsx';
import { InstanceLink } from '../../components/instance-link.tsx';
import { Elapsed, Time } from '../../components/time.tsx';
import { attemptsText } from '../../flow/run-states.ts';
import { countOf } from '../../lib/format.ts';
import { AnswerForm } from '../approvals/answer-form.tsx';
import styles from './now.module.css';
import { iterationText } from './places.ts';
import { iterationAt, pathIn, type Run, stepIn } from './run.ts';
import { WaitActions } from './wait-actions.tsx';

/** How a wait looks, and what its block does: words, perhaps around a name. */
interface Look {
  readonly icon: LucideIcon;
  readonly words: string;
  readonly nameIn?: (wait: Wait) => string | undefined;
  readonly wordsBehind?: string;
  /** The sentence is about the instance. */
  readonly isWhole?: true;
}

const PAUSED = 'The instance is paused: no new steps start until it is resumed';

/** A newer server may have kinds that this page does not know. */
const LOOKS: Readonly<Partial<Record<WaitKind, Look>>> = {
  pause: { icon: Pause, words: PAUSED, isWhole: true },
  start: { icon: CalendarClock, words: 'The instance has not started yet', isWhole: true },
  handoff: {
    icon: GitFork,
    words: 'The instance is being handed over to another runtime',
    isWhole: true,
  },
  slot: { icon: Users, words: 'waits for a slot of', nameIn: ({ key }) => key },
  throttle: {
    icon: Gauge,
    words: 'waits to start: the throttle',
    nameIn: ({ key }) => key,
    wordsBehind: 'delays it',
  },
  signal: { icon: Radio, words: 'waits for a signal' },
  task: { icon: Hourglass, words: 'waits for a worker' },
  worker: { icon: Cpu, words: 'is with the worker', nameIn: ({ worker_id }) => worker_id },
  handler: { icon: Cpu, words: 'is running' },
  approval: { icon: CircleHelp, words: 'asks:' },
  sleep: { icon: Moon, words: 'sleeps' },
  delay: { icon: CalendarClock, words: 'is delayed' },
  retry: { icon: RotateCw, words: 'failed and is retried' },
  child: { icon: GitFork, words: 'waits for its child' },
  rate_limit: { icon: Gauge, words: 'waits for a permit of', nameIn: ({ key }) => key },
  event: { icon: Radio, words: 'waits for the event', nameIn: ({ name }) => name },
  engine: { icon: Cpu, words: 'is about to continue' },
};

/** @param props.isGone the wait is over, and stays only while the user points at it */
export function WaitRow(props: {
  readonly run: Run;
  readonly wait: Wait;
  readonly isGone: boolean;
}) {
  const { run, wait, isGone } = props;
  const Icon = LOOKS[wait.kind]?.icon ?? Clock;
  const [goneAt, setGoneAt] = useState<string>();
  // The end of the wait is known only as the time it disappeared.
  if (isGone && goneAt === undefined) setGoneAt(new Date().toISOString());
  const { block_id } = wait;
  const iteration = block_id === null ? '' : iterationAt(run, block_id, wait.path);
  const facts = factsOf(wait).filter((fact) => fact !== false && fact !== undefined);
  return (
    <div className={styles.wait} inert={isGone}>
      <Icon size={18} aria-hidden className={styles.icon} />
      <div className={styles.body}>
        <p className={styles.title}>
          <Title run={run} wait={wait} />
        </p>
        <p className={styles.facts}>
          {iteration !== '' && <span>{iterationText(iteration)}</span>}
          {wait.since !== null && (
            <span>
              for <Elapsed from={wait.since} to={goneAt} until={wait.until} />
            </span>
          )}
          {wait.until !== null && !isGone && (
            <span>
              until <Time at={wait.until} /> at the latest
            </span>
          )}
          {facts.map((fact, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: facts have no names, and keep their order
            <Fragment key={at}>{fact}</Fragment>
          ))}
        </p>
        {wait.last_error !== undefined && <p className={styles.error}>{wait.last_error}</p>}
        {wait.kind === 'approval' ? (
          <Answer run={run} wait={wait} isClosed={isGone} />
        ) : (
          <WaitActions run={run} wait={wait} />
        )}
      </div>
    </div>
  );
}

function Title({ run, wait }: { readonly run: Run; readonly wait: Wait }) {
  const { kind, block_id, path, prompt, until } = wait;
  const look = LOOKS[kind];
  if (look === undefined) return wait.summary;
  if (look.isWhole) return look.words;
  const name = look.nameIn?.(wait);
  return (
    <>
      {block_id === null ? (
        'It'
      ) : (
        <Link href={run.hrefOfBlock(pathIn(run, block_id), iterationAt(run, block_id, path))}>
          {pathIn(run, block_id)}
        </Link>
      )}{' '}
      {look.words}
      {kind === 'approval' && ` ${prompt === '' ? 'Continue?' : prompt}`}
      {name !== undefined && (
        <>
          {' '}
          <code>{name}</code>
          {look.wordsBehind && ` ${look.wordsBehind}`}
        </>
      )}
      {kind === 'retry' && until !== null && (
        <>
          {' '}
          <Time at={until} />
        </>
      )}
    </>
  );
}

/** A word, and the name that it is about. */
const named = (word: string, name: string) => (
  <span>
    {word} <code>{name}</code>
  </span>
);

const HOLDERS_SHOWN = 3;

/** For other kinds the handler adds nothing to the sentence. */
const WITH_HANDLER: ReadonlySet<WaitKind> = new Set(['task', 'worker', 'handler', 'retry']);

function factsOf(wait: Wait): readonly (ReactNode | false)[] {
  const { workers, attempt, max_attempts, heartbeat_at, limit, max_concurrency, ahead } = wait;
  const { holders = [] } = wait;
  const attempts = attemptsText((attempt ?? 0) + 1, max_attempts ?? undefined);
  return [
    workers !== undefined && <WhoServes workers={workers} />,
    wait.handler !== undefined && WITH_HANDLER.has(wait.kind) && named('handler', wait.handler),
    !!wait.queue && named('queue', wait.queue),
    attempts !== '' && <span>{attempts}</span>,
    heartbeat_at !== undefined && (
      <span>
        last heartbeat <Time at={heartbeat_at} />
      </span>
    ),
    wait.kind === 'event' && wait.key !== undefined && named('key', wait.key),
    wait.child_id !== undefined && (
      <span>
        child <InstanceLink id={wait.child_id} />{' '}
        {wait.child_state && <StateBadge state={wait.child_state} />}
      </span>
    ),
    limit != null && (
      <span>
        {limit.max_count} per {limit.window_seconds} s
        {limit.pattern !== undefined && (
          <>
            , by the pattern <code>{limit.pattern}</code>
          </>
        )}
      </span>
    ),
    max_concurrency !== undefined && <span>{max_concurrency} at once</span>,
    ahead !== undefined && ahead > 0 && <span>{countOf(ahead, 'instance')} before it</span>,
    ...holders.slice(0, HOLDERS_SHOWN).map(({ instance_id }) => (
      <span key={instance_id}>
        held by <InstanceLink id={instance_id} />
      </span>
    )),
    holders.length > HOLDERS_SHOWN && (
      <span>and {countOf(holders.length - HOLDERS_SHOWN, 'other')}</span>
    ),
  ];
}

function WhoServes({ workers }: { readonly workers: NonNullable<Wait['workers']> }) {
  const { polled_lately, last_polled_at, endpoints = [] } = workers;
  if (polled_lately > 0 || endpoints.length > 0) {
    return (
      <>
        {polled_lately > 0 && <Badge tone="ok">{countOf(polled_lately, 'worker')} polling</Badge>}
        {endpoints.map((name) => (
          <span key={name}>
            endpoint <code>{name}</code>
          </span>
        ))}
      </>
    );
  }
  return (
    <>
      <Badge tone="danger">no worker is polling</Badge>
      <span>
        {last_polled_at === null ? (
          'none has polled yet'
        ) : (
          <>
            last poll <Time at={last_polled_at} />
          </>
        )}
      </span>
    </>
  );
}

/** A user's answer to a step that waits for approval. */
function Answer(props: { readonly run: Run; readonly wait: Wait; readonly isClosed: boolean }) {
  const { run, wait, isClosed } = props;
  const { approval_id = '', choices = [], approvers } = wait;
  // Of an injected block only the values are known.
  const gate = stepIn(run, wait.block_id)?.wait_for_input;
  const labelOf = (value: string) =>
    gate?.choices?.find((choice: GateChoice) => choice.value === value)?.label ?? value;
  return (
    <AnswerForm
      approvalId={approval_id}
      approvers={approvers}
      choices={choices.map((value) => ({ value, label: labelOf(value) }))}
      allowsComment={gate?.allow_comment === true}
      isClosed={isClosed}
    />
  );
}
