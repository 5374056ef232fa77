/** What a retry runs once more and what it leaves as it is, in the words of the engine, and the question before it. */

import type { InstanceExplanation, RunsAgain } from 'durable-workflow-engine-client';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { countOf } from '../../lib/format.ts';
import type { ActionDialogProps } from './action-dialog.tsx';

/** What goes on with an instance that has failed, or was paused after that. */
export type RetryAction = 'retry' | 'resume';

/** Undefined: the action is none that runs something again. */
export function againIn(
  explanation: InstanceExplanation | undefined,
  action: RetryAction,
): RunsAgain | undefined {
  return explanation?.next.find((one) => one.action === action)?.runs_again;
}

/** Whether its parent has gone on without it. */
const isOrphan = ({ parent }: RunsAgain) =>
  parent?.stands === 'went_on' || parent?.stands === 'ended';

const SHOWN = 20;

export function RunsAgainList({ again }: { readonly again: RunsAgain }) {
  const { blocks, blocks_count, stays, stays_count, ends, parent } = again;
  const first = [...blocks].sort((a, b) => Number(b.repeats_effects) - Number(a.repeats_effects));
  const shown = first.slice(0, SHOWN);
  const more = blocks_count - shown.length;
  const staying = stays.slice(0, SHOWN);
  const moreStay = stays_count - staying.length;
  return (
    <>
      <ul>
        {shown.map((block) => (
          <li key={`${block.kind} ${block.path}`}>
            {block.repeats_effects ? <strong>{block.summary}</strong> : block.summary}
          </li>
        ))}
        {more > 0 && <li>and {countOf(more, 'further block')}</li>}
      </ul>
      <p>
        {stays_count === 0
          ? 'Nothing else had completed.'
          : `What completed stays: ${staying.join(', ')}${moreStay > 0 ? ` and ${moreStay} more` : ''}.`}
        {ends === 'failed' && ' Then it fails for the reason that it had.'}
        {ends === 'cancelled' && ' Then it is cancelled, as it was to be.'}
      </p>
      {parent && <p>{isOrphan(again) ? <strong>{parent.summary}</strong> : parent.summary}</p>}
    </>
  );
}

/** Asked only where effects outside are repeated: everything else goes on at once. */
export function RepeatDialog(props: ActionDialogProps & { readonly action: RetryAction }) {
  const { run, action, onClose } = props;
  const { client } = useEngine();
  const { id } = run.instance;
  const again = againIn(run.explanation, action);
  const isRepeating = again?.blocks.some((block) => block.repeats_effects) !== false;
  const verb = action === 'retry' ? 'Retry' : 'Resume';
  const act = useAction(
    async () => {
      if (action === 'retry') await client.instances.retry(id);
      else await client.instances.signal(id, { signal_type: 'resume' });
    },
    { done: () => 'It runs again.', onDone: onClose },
  );
  return (
    <ConfirmDialog
      title={isRepeating ? 'Repeat effects outside?' : 'Run without its parent?'}
      action={isRepeating ? `${verb}, and repeat them` : `${verb} all the same`}
      kind="danger"
      isBusy={act.isBusy}
      error={act.error}
      onConfirm={() => act.run(undefined)}
      onClose={onClose}
    >
      <p>
        {isRepeating
          ? 'Something that had completed acts outside a second time, such as a charge, with a new idempotency key:'
          : 'Nobody takes what it comes to any more, and another one may have done its work:'}
      </p>
      {again && <RunsAgainList again={again} />}
    </ConfirmDialog>
  );
}
