/** One open approval with a button for each choice. */

import type { Approval } from 'durable-workflow-engine-client';
import { PageLink } from '../../components/page-link.tsx';
import { Time } from '../../components/time.tsx';
import { AnswerForm } from './answer-form.tsx';
import styles from './approvals.module.css';

export function ApprovalCard(props: { readonly approval: Approval; readonly isClosed: boolean }) {
  const { approval, isClosed } = props;
  const { instance_id, sequence_name, path, waiting_since, deadline, metadata } = approval;
  return (
    <div className={styles.card}>
      <p className={styles.prompt}>{approval.prompt}</p>
      <p className={styles.about}>
        <span>
          <PageLink href={`/instances/${instance_id}`}>{sequence_name ?? instance_id}</PageLink> at{' '}
          <code>{path}</code>
        </span>
        <span>
          asked <Time at={waiting_since} />
        </span>
        {deadline && (
          <span>
            until <Time at={deadline} />
          </span>
        )}
        {Object.entries(metadata).map(([name, value]) => (
          <span key={name}>
            {name}: {typeof value === 'string' ? value : JSON.stringify(value)}
          </span>
        ))}
      </p>
      <AnswerForm
        approvalId={approval.id}
        choices={approval.choices}
        allowsComment={approval.allow_comment}
        isClosed={isClosed}
        done={() => `Answered: ${approval.prompt}`}
      />
    </div>
  );
}
