/** Runs an instance, or a copy of it, again from some block, with its data as it is or as it is edited here. */

import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Dialog, DialogActions } from '../../components/dialog.tsx';
import { useDiscard } from '../../components/discard.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { Checkbox, Form, Select } from '../../components/field.tsx';
import { Editor } from '../../components/later.tsx';
import { jsonTextOf } from '../../lib/format.ts';
import type { ActionDialogProps } from './action-dialog.tsx';
import { dataOf } from './places.ts';
import type { Run } from './run.ts';
import { againIn, RunsAgainList } from './runs-again.tsx';

type Mode = 'retry-with-data' | 'resume-from' | 'fork';

const WORDS: Readonly<Record<Mode, { title: string; about: string; action: string }>> = {
  'retry-with-data': {
    title: 'Retry with other data',
    about: 'It runs again from where it failed:',
    action: 'Retry',
  },
  'resume-from': {
    title: 'Run again from a block',
    about:
      'The block and all behind it run again, as if they had never been reached: their outputs are deleted, what they did outside happens once more, and children are started anew.',
    action: 'Run again',
  },
  fork: {
    title: 'Fork from a block',
    about:
      'A copy takes over what came before the block, and runs on from there, with children of its own. This one stays as it is. Unless it is a dry run, what was done outside from the block on happens once more.',
    action: 'Fork',
  },
};

export function RunAgainDialog(
  props: ActionDialogProps & {
    readonly mode: Mode;
    readonly block: string | undefined;
    readonly onLead: (href: string) => void;
  },
) {
  const { run, mode, onClose, onLead } = props;
  const { client } = useEngine();
  const { id, context } = run.instance;
  // What the data was when the dialog opened: later changes are not undone unseen where nothing was edited.
  const [before] = useState(() => jsonTextOf(context.data));
  const [text, setText] = useState(before);
  const [block, setBlock] = useState(() => props.block ?? firstBlock(run));
  const [isDryRun, setDryRun] = useState(true);
  const act = useAction(
    async () => {
      const amended =
        text === before ? {} : { context: dataOf(text), context_mode: 'replace' as const };
      switch (mode) {
        case 'retry-with-data':
          return { ...(await client.instances.retry(id, amended)), isCopy: false };
        case 'resume-from':
          return { ...(await client.instances.resumeFrom(id, block, amended)), isCopy: false };
        case 'fork': {
          const body = { from_block_id: block, dry_run: isDryRun, ...amended };
          return { ...(await client.instances.fork(id, body)), isCopy: true };
        }
      }
    },
    {
      done: ({ isCopy }) => (isCopy ? 'This is the copy.' : 'It runs again.'),
      onDone: (result) => {
        onClose();
        if (result.isCopy) onLead(`/instances/${result.id}`);
      },
    },
  );
  const words = WORDS[mode];
  const again = mode === 'retry-with-data' ? againIn(run.explanation, 'retry') : undefined;
  const isRepeating = again?.blocks.some((one) => one.repeats_effects) === true;
  const { leave, question } = useDiscard(text !== before, onClose);
  return (
    <>
      <Dialog title={words.title} isWide onClose={leave}>
        <Form onSubmit={() => act.run(undefined)}>
          <p>{words.about}</p>
          {again && <RunsAgainList again={again} />}
          {mode !== 'retry-with-data' && (
            <Select
              label="From the block"
              value={block}
              options={(run.outline?.blocks ?? []).map((one) => ({ value: one.id, label: one.id }))}
              onChange={setBlock}
            />
          )}
          {mode === 'fork' && (
            <Checkbox
              label="Dry run: steps are not sent to workers, and nothing happens outside"
              isChecked={isDryRun}
              onChange={setDryRun}
            />
          )}
          <p>
            Data{' '}
            <span className="dim small">as {mode === 'fork' ? 'the copy' : 'it'} begins with</span>
          </p>
          <Editor label="Data" value={text} onChange={setText} />
          {act.error !== null && <ErrorBox error={act.error} />}
          <DialogActions
            label={isRepeating ? `${words.action}, and repeat effects` : words.action}
            kind={mode === 'resume-from' || again?.repeats_effects ? 'danger' : 'primary'}
            isBusy={act.isBusy}
            isDisabled={mode !== 'retry-with-data' && block === ''}
            onClose={leave}
          />
        </Form>
      </Dialog>
      {question}
    </>
  );
}

/** The block of the root list that failed, or in which it failed; else the first one. */
function firstBlock({ outline, instance }: Run): string {
  const failed = instance.failure?.path?.split(/[[/]/)[0];
  return failed ?? outline?.blocks[0]?.id ?? '';
}
