/** The form to answer an approval, with a button for each choice. */

import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { TextField, wrongOf } from '../../components/field.tsx';
import styles from './approvals.module.css';

interface Choice {
  readonly value: string;
  readonly label: string;
}

/** Renders nothing for callers who may not answer. */
export function AnswerForm(props: {
  readonly approvalId: string;
  readonly choices: readonly Choice[];
  readonly allowsComment: boolean;
  /** The approval is no longer open and cannot be answered. */
  readonly isClosed: boolean;
  /** The message after it was answered with this value. */
  readonly done: (value: string) => string;
}) {
  const { approvalId, choices, allowsComment, isClosed, done } = props;
  const { client, allowed } = useEngine();
  const [comment, setComment] = useState('');
  const [given, setGiven] = useState<string>();
  const answer = useAction(
    (value: string) =>
      client.approvals.answer(approvalId, { value, ...(comment !== '' && { comment }) }),
    { done: (_result, value) => done(value), onDone: (_result, value) => setGiven(value) },
  );
  if (!allowed.approve) return null;
  const wrong = wrongOf(answer.error, 'comment');
  const answered = choices.find(({ value }) => value === given);
  const isOver = isClosed || given !== undefined;
  return (
    <>
      <div className={styles.choices}>
        {allowsComment && (
          <div className={styles.comment}>
            <TextField
              label="Comment"
              value={comment}
              onChange={setComment}
              wrong={wrong}
              disabled={isOver}
            />
          </div>
        )}
        {choices.map(({ value, label }, at) => (
          <Button
            key={value}
            kind={at === 0 ? 'primary' : 'plain'}
            isBusy={answer.isBusy}
            disabled={isOver}
            onClick={() => answer.run(value)}
          >
            {label}
          </Button>
        ))}
        {isOver && (
          <Badge tone={answered ? 'ok' : 'idle'}>
            {answered ? `answered: ${answered.label}` : 'no longer open'}
          </Badge>
        )}
      </div>
      {answer.error !== null && wrong === undefined && <ErrorBox error={answer.error} />}
    </>
  );
}
