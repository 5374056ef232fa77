/** A user's answer to a step that waits for approval. */

import type { GateChoice, Wait } from 'durable-workflow-engine-client';
import { AnswerForm } from '../approvals/answer-form.tsx';
import { type Run, stepIn } from './run.ts';

export function Answer(props: {
  readonly run: Run;
  readonly wait: Wait;
  readonly isClosed: boolean;
}) {
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
