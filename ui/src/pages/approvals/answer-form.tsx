/** The form to answer an approval, with a button for each choice. An answer can be taken back before it is sent. */

import { useEffect, useRef, useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { TextField, wrongOf } from '../../components/field.tsx';
import { useHeld } from '../../components/held.tsx';
import { isShortcut, useSingleKeys } from '../../lib/keys.ts';
import { randomId } from '../../lib/random-id.ts';
import styles from './approvals.module.css';

interface Choice {
  readonly value: string;
  readonly label: string;
}

/** A message is no place for a long text. */
const QUESTION_LENGTH_MAX = 100;

/** A question that the user does not see is not answered by a key. */
function isInView(element: Element | null): boolean {
  if (element === null) return false;
  const { top, bottom } = element.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}

/** Renders nothing for callers who may not answer. */
export function AnswerForm(props: {
  readonly approvalId: string;
  readonly choices: readonly Choice[];
  readonly approvers?: readonly string[] | undefined;
  readonly allowsComment: boolean;
  /** The approval is no longer open and cannot be answered. */
  readonly isClosed: boolean;
  /** The number of a choice, as a key, gives this answer. */
  readonly isCurrent?: boolean;
  /** For messages, where several are open on one page. */
  readonly question?: string;
}) {
  const { approvalId, choices, approvers = [], allowsComment, isClosed, question = '' } = props;
  const { client, mayAnswer } = useEngine();
  const [areKeysOn] = useSingleKeys();
  const [comment, setComment] = useState('');
  const [given, setGiven] = useState<string>();
  const { isHeld, undo, hold } = useHeld(approvalId);
  const [chosen, setChosen] = useState<Choice>();
  const buttons = useRef<HTMLDivElement>(null);
  const textOf = ({ label }: Choice) =>
    question === '' ? label : `${label} – ${question.slice(0, QUESTION_LENGTH_MAX)}`;
  const answer = useAction(
    ({ choice: { value }, answer_id }: { choice: Choice; answer_id: string }) =>
      client.approvals.answer(approvalId, {
        value,
        answer_id,
        ...(comment !== '' && { comment }),
      }),
    {
      done: (_, { choice }) => `Answered: ${textOf(choice)}`,
      onDone: (_, { choice }) => setGiven(choice.value),
    },
  );
  const isOver = isClosed || given !== undefined;
  const isShut = isOver || isHeld || answer.isBusy;
  const isCurrent = props.isCurrent === true && mayAnswer(approvers) && !isShut;
  const choose = (choice: Choice) => {
    const answer_id = randomId();
    setChosen(choice);
    hold(() => answer.run({ choice, answer_id }), `Answer: ${textOf(choice)}`);
  };
  useEffect(() => {
    if (!isCurrent) return undefined;
    const onKey = (event: KeyboardEvent) => {
      const choice = isShortcut(event) ? choices[Number(event.key) - 1] : undefined;
      if (choice === undefined) return;
      if (isInView(buttons.current)) choose(choice);
      else buttons.current?.scrollIntoView({ block: 'center' });
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });
  if (!mayAnswer(approvers)) return null;
  const wrong = wrongOf(answer.error, 'comment');
  const answered = choices.find(({ value }) => value === given);
  return (
    <>
      <div ref={buttons} className={styles.choices}>
        {allowsComment && (
          <div className={styles.comment}>
            <TextField
              label="Comment"
              value={comment}
              onChange={setComment}
              wrong={wrong}
              disabled={isShut}
            />
          </div>
        )}
        {choices.map((choice, at) => (
          <Button
            key={choice.value}
            kind={at === 0 ? 'primary' : 'plain'}
            isBusy={answer.isBusy}
            disabled={isShut}
            onClick={() => choose(choice)}
          >
            {choice.label}
            {props.isCurrent && areKeysOn && at < 9 && <kbd aria-hidden>{at + 1}</kbd>}
          </Button>
        ))}
        {isHeld && (
          <>
            <Badge tone="info">{`${chosen?.label ?? 'answer'}: sent in a few seconds`}</Badge>
            <Button kind="quiet" onClick={undo}>
              Undo
            </Button>
          </>
        )}
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
