/** One open approval with a button for each choice; the current one also with the data and the flow behind it. */

import type { Approval } from 'durable-workflow-engine-client';
import { ChevronDown, ChevronRight } from 'lucide-react';
import { useEffect, useRef } from 'react';
import { useMaySee } from '../../api/engine.tsx';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { PageLink } from '../../components/page-link.tsx';
import { Elapsed, Time } from '../../components/time.tsx';
import { useNow } from '../../lib/now.ts';
import { AnswerForm } from './answer-form.tsx';
import styles from './approvals.module.css';
import { Behind } from './behind.tsx';

export interface Current {
  readonly isCurrent: boolean;
  /** It was selected by a key: it is scrolled to. */
  readonly isByKey: boolean;
  readonly isOpen: boolean;
  readonly onSelect: () => void;
  readonly onToggle: () => void;
}

/** @param props.current absent: a card outside of the inbox, without keys */
export function ApprovalCard(props: {
  readonly approval: Approval;
  readonly isClosed: boolean;
  readonly current?: Current;
}) {
  const { approval, isClosed, current } = props;
  const { isCurrent = false, isByKey = false, isOpen = false } = current ?? {};
  const { id, instance_id, sequence_name, path, waiting_since, approvers, metadata } = approval;
  const question = approval.prompt || `Step ${path} waits for an answer.`;
  const isSeen = useMaySee()('/instances');
  const card = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isCurrent && isByKey) card.current?.scrollIntoView({ block: 'nearest' });
  }, [isCurrent, isByKey]);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: selects what the keys of the page act on; all of it is reachable without
    <div
      ref={card}
      className={isCurrent ? `${styles.card} ${styles.current}` : styles.card}
      aria-current={isCurrent || undefined}
      onPointerDown={current?.onSelect}
      onFocus={current?.onSelect}
    >
      <p className={styles.prompt}>{question}</p>
      <p className={styles.about}>
        <span>
          <PageLink href={`/instances/${instance_id}`}>{sequence_name ?? instance_id}</PageLink> at{' '}
          <code>{path}</code>
        </span>
        <span>
          waits for <Elapsed from={waiting_since} />
        </span>
        <Deadline approval={approval} />
        <span>
          {approvers.length === 0 ? 'for every approver' : `for ${approvers.join(' or ')}`}
        </span>
        {Object.entries(metadata).map(([name, value]) => (
          <span key={name}>
            {name}: {typeof value === 'string' ? value : JSON.stringify(value)}
          </span>
        ))}
      </p>
      <AnswerForm
        approvalId={id}
        choices={approval.choices}
        approvers={approvers}
        allowsComment={approval.allow_comment}
        isClosed={isClosed}
        isCurrent={isCurrent}
        question={question}
      />
      {current && isSeen && (
        <div>
          <Button
            kind="quiet"
            icon={isOpen ? ChevronDown : ChevronRight}
            aria-expanded={isOpen}
            onClick={current.onToggle}
          >
            Data and flow
          </Button>
          {isOpen && <Behind approval={approval} />}
        </div>
      )}
    </div>
  );
}

/** A deadline within this time is urgent. */
const SOON_MS = 60 * 60_000;

function Deadline({ approval }: { readonly approval: Approval }) {
  const now = useNow();
  const { deadline, escalation_handler: handler } = approval;
  if (deadline === null) return <span>no deadline</span>;
  const then = handler === null ? 'then the step fails' : `then escalated: ${handler}`;
  const text = (
    <>
      due <Time at={deadline} />, {then}
    </>
  );
  return Date.parse(deadline) - now < SOON_MS ? (
    <Badge tone="warn">{text}</Badge>
  ) : (
    <span>{text}</span>
  );
}
