/** The answer of a person to a step that asks, with a button for each choice. */

import type { GateChoice, Wait } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Button } from '../../components/button.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { TextField, wrongOf } from '../../components/field.tsx';
import styles from './now.module.css';
import { type Run, stepIn } from './run.ts';

export function Answer({ run, wait }: { readonly run: Run; readonly wait: Wait }) {
  const { client, allowed } = useEngine();
  const [comment, setComment] = useState('');
  const { approval_id = '', choices = [] } = wait;
  const answer = useAction(
    (value: string) =>
      client.approvals.answer(approval_id, { value, ...(comment !== '' && { comment }) }),
    { done: (_result, value) => `Answered: ${value}` },
  );
  if (!allowed.approve) return null;
  // Of an injected block only the values are known.
  const gate = stepIn(run, wait.block_id)?.wait_for_input;
  const wrong = wrongOf(answer.error, 'comment');
  const labelOf = (value: string) =>
    gate?.choices?.find((choice: GateChoice) => choice.value === value)?.label ?? value;
  return (
    <>
      <div className={styles.answer}>
        {gate?.allow_comment === true && (
          <div className={styles.comment}>
            <TextField label="Comment" value={comment} onChange={setComment} wrong={wrong} />
          </div>
        )}
        {choices.map((value, at) => (
          <Button
            key={value}
            kind={at === 0 ? 'primary' : 'plain'}
            isBusy={answer.isBusy}
            onClick={() => answer.run(value)}
          >
            {labelOf(value)}
          </Button>
        ))}
      </div>
      {answer.error !== null && wrong === undefined && <ErrorBox error={answer.error} />}
    </>
  );
}
