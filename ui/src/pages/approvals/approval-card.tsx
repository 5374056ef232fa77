/** One question to a person, with a button for each choice. */

import type { Approval } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Button } from '../../components/button.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { TextField, wrongOf } from '../../components/field.tsx';
import { PageLink } from '../../components/page-link.tsx';
import { Time } from '../../components/time.tsx';
import styles from './approvals.module.css';

export function ApprovalCard({ approval }: { readonly approval: Approval }) {
  const { client, allowed } = useEngine();
  const [comment, setComment] = useState('');
  const answer = useAction(
    (value: string) => client.approvals.answer(approval.id, { value, comment }),
    { done: () => `Answered: ${approval.prompt}` },
  );
  const { instance_id, sequence_name, path, waiting_since, deadline, metadata } = approval;
  const wrong = wrongOf(answer.error, 'comment');
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
      {allowed.approve && (
        <div className={styles.choices}>
          {approval.allow_comment && (
            <div className={styles.comment}>
              <TextField label="Comment" value={comment} onChange={setComment} wrong={wrong} />
            </div>
          )}
          {approval.choices.map(({ value, label }, at) => (
            <Button
              key={value}
              kind={at === 0 ? 'primary' : 'plain'}
              isBusy={answer.isBusy}
              onClick={() => answer.run(value)}
            >
              {label}
            </Button>
          ))}
        </div>
      )}
      {answer.error !== null && wrong === undefined && <ErrorBox error={answer.error} />}
    </div>
  );
}
