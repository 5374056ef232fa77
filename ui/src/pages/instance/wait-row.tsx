/** One thing that an instance waits for: since when, until when, who serves it, and the actions for it. */

import type { Wait, WaitKind } from 'durable-workflow-engine-client';
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
import { Answer } from './answer.tsx';
import styles from './now.module.css';
import { iterationOf } from './places.ts';
import { pathIn, type Run } from './run.ts';
import { WaitActions } from './wait-actions.tsx';

/** A newer server may have kinds that this page does not know. */
const ICONS: Readonly<Partial<Record<WaitKind, LucideIcon>>> = {
  pause: Pause,
  start: CalendarClock,
  handoff: GitFork,
  slot: Users,
  throttle: Gauge,
  signal: Radio,
  task: Hourglass,
  worker: Cpu,
  handler: Cpu,
  approval: CircleHelp,
  sleep: Moon,
  delay: CalendarClock,
  retry: RotateCw,
  child: GitFork,
  rate_limit: Gauge,
  event: Radio,
  engine: Cpu,
};

/** @param props.isGone the wait is over, and stays only while the user points at it */
export function WaitRow(props: {
  readonly run: Run;
  readonly wait: Wait;
  readonly isGone: boolean;
}) {
  const { run, wait, isGone } = props;
  const Icon = ICONS[wait.kind] ?? Clock;
  const [goneAt, setGoneAt] = useState<string>();
  // The end of the wait is known only as the time it disappeared.
  if (isGone && goneAt === undefined) setGoneAt(new Date().toISOString());
  const facts = factsOf(wait).filter((fact) => fact !== false && fact !== undefined);
  return (
    <div className={styles.wait} inert={isGone}>
      <Icon size={18} aria-hidden className={styles.icon} />
      <div className={styles.body}>
        <p className={styles.title}>
          <Title run={run} wait={wait} />
        </p>
        <p className={styles.facts}>
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
  const { block_id, path } = wait;
  const block =
    block_id === null ? (
      'It'
    ) : (
      <Link href={run.hrefOfBlock(pathIn(run, block_id), iterationOf(path ?? ''))}>{path}</Link>
    );
  switch (wait.kind) {
    case 'pause':
      return <>The instance is paused: no new steps start until it is resumed</>;
    case 'start':
      return <>The instance has not started yet</>;
    case 'handoff':
      return <>The instance is being handed over to another runtime</>;
    case 'slot':
      return (
        <>
          {block} waits for a slot of <code>{wait.key}</code>
        </>
      );
    case 'throttle':
      return (
        <>
          {block} waits to start: the throttle <code>{wait.key}</code> delays it
        </>
      );
    case 'signal':
      return <>{block} waits for a signal</>;
    case 'task':
      return <>{block} waits for a worker</>;
    case 'worker':
      return (
        <>
          {block} is with the worker <code>{wait.worker_id}</code>
        </>
      );
    case 'handler':
      return <>{block} is running</>;
    case 'approval':
      return (
        <>
          {block} asks: {wait.prompt === '' ? 'Continue?' : wait.prompt}
        </>
      );
    case 'sleep':
      return <>{block} sleeps</>;
    case 'delay':
      return <>{block} is delayed</>;
    case 'retry':
      return (
        <>
          {block} failed and is retried
          {wait.until !== null && (
            <>
              {' '}
              <Time at={wait.until} />
            </>
          )}
        </>
      );
    case 'child':
      return <>{block} waits for its child</>;
    case 'rate_limit':
      return (
        <>
          {block} waits for a permit of <code>{wait.key}</code>
        </>
      );
    case 'event':
      return (
        <>
          {block} waits for the event <code>{wait.name}</code>
        </>
      );
    case 'engine':
      return <>{block} is about to continue</>;
    default:
      // A kind that this page does not know.
      return <>{(wait as Wait).summary}</>;
  }
}

const HOLDERS_SHOWN = 3;

/** For other kinds the handler adds nothing to the sentence. */
const WITH_HANDLER: ReadonlySet<WaitKind> = new Set(['task', 'worker', 'handler', 'retry']);

function factsOf(wait: Wait): readonly (ReactNode | false)[] {
  const { workers, attempt, max_attempts, heartbeat_at, limit, max_concurrency, ahead } = wait;
  const { holders = [] } = wait;
  const attempts = attemptsText((attempt ?? 0) + 1, max_attempts ?? undefined);
  return [
    workers !== undefined && <WhoServes workers={workers} />,
    wait.handler !== undefined && WITH_HANDLER.has(wait.kind) && (
      <span>
        handler <code>{wait.handler}</code>
      </span>
    ),
    !!wait.queue && (
      <span>
        queue <code>{wait.queue}</code>
      </span>
    ),
    attempts !== '' && <span>{attempts}</span>,
    heartbeat_at !== undefined && (
      <span>
        last heartbeat <Time at={heartbeat_at} />
      </span>
    ),
    wait.kind === 'event' && wait.key !== undefined && (
      <span>
        key <code>{wait.key}</code>
      </span>
    ),
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
