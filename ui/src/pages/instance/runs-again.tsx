/** What a retry repeats and what it keeps, in the engine's words, and the confirmation. */

import type { InstanceExplanation, RunsAgain } from 'durable-workflow-engine-client';
import { useEngine } from '../../api/engine.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { countOf } from '../../lib/format.ts';
import type { ActionDialogProps } from './action-dialog.tsx';

/** Actions that continue an instance that failed, or was paused after a failure. */
export type RetryAction = 'retry' | 'resume';

/** Undefined if the action repeats nothing. */
export function againIn(
  explanation: InstanceExplanation | undefined,
  action: RetryAction,
): RunsAgain | undefined {
  return explanation?.next.find((one) => one.action === action)?.runs_again;
}

/** Whether its parent has continued without it. */
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
          ? 'Nothing else has completed.'
          : `Completed blocks are kept: ${staying.join(', ')}${moreStay > 0 ? ` and ${moreStay} more` : ''}.`}
        {ends === 'failed' && ' The instance then fails for the original reason.'}
        {ends === 'cancelled' && ' The instance is then cancelled as requested.'}
      </p>
      {parent && <p>{isOrphan(again) ? <strong>{parent.summary}</strong> : parent.summary}</p>}
    </>
  );
}

/** Needed only if external effects are repeated: everything else continues at once. */
export function RepeatDialog(props: ActionDialogProps & { readonly action: RetryAction }) {
  const { run, action } = props;
  const { client } = useEngine();
  const { id } = run.instance;
  const again = againIn(run.explanation, action);
  const isRepeating = again?.blocks.some((block) => block.repeats_effects) !== false;
  const verb = action === 'retry' ? 'Retry' : 'Resume';
  return (
    <ConfirmDialog
      title={isRepeating ? 'Repeat external effects?' : 'Run without the parent?'}
      action={isRepeating ? `${verb} and repeat effects` : `${verb} anyway`}
      kind="danger"
      act={async (): Promise<unknown> =>
        action === 'retry'
          ? client.instances.retry(id)
          : client.instances.signal(id, { signal_type: 'resume' })
      }
      done={() => 'The instance runs again.'}
    >
      <p>
        {isRepeating
          ? 'Completed work has external effects that happen a second time, such as a charge, with a new idempotency key:'
          : 'The parent no longer uses its result, and another instance may have done its work:'}
      </p>
      {again && <RunsAgainList again={again} />}
    </ConfirmDialog>
  );
}
