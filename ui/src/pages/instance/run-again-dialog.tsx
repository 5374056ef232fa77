/** Retries an instance, reruns it from a block or forks it, with its data unchanged or edited. */

import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useClose } from '../../components/dialog.tsx';
import { Checkbox, Select } from '../../components/field.tsx';
import { FormDialog, useForm } from '../../components/form.tsx';
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
    about: 'The instance runs again from where it failed:',
    action: 'Retry',
  },
  'resume-from': {
    title: 'Run again from a block',
    about:
      'The block and everything after it run again as if they had never started: their outputs are deleted, their external effects are repeated, and new children are started.',
    action: 'Run again',
  },
  fork: {
    title: 'Fork from a block',
    about:
      'Creates a copy that keeps everything before the block and continues from there with its own children. The original does not change. Unless it is a dry run, external effects from the block on are repeated.',
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
  const { run, mode, onLead } = props;
  const { client } = useEngine();
  const close = useClose();
  const { id, context } = run.instance;
  // The data when the dialog opened: if it was not edited, later changes are not overwritten.
  const [before] = useState(() => jsonTextOf(context.data));
  const form = useForm(
    () => ({ data: before, block: props.block ?? firstBlock(run), isDryRun: true }),
    async ({ data, block, isDryRun }) => {
      const amended =
        data === before ? {} : { context: dataOf(data), context_mode: 'replace' as const };
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
      done: ({ isCopy }) => (isCopy ? 'You are viewing the copy.' : 'The instance runs again.'),
      onDone: (result) => {
        close();
        if (result.isCopy) onLead(`/instances/${result.id}`);
      },
    },
  );
  const { at, draft } = form;
  const words = WORDS[mode];
  const again = mode === 'retry-with-data' ? againIn(run.explanation, 'retry') : undefined;
  const isRepeating = again?.blocks.some((one) => one.repeats_effects) === true;
  return (
    <FormDialog
      form={form}
      title={words.title}
      isWide
      label={isRepeating ? `${words.action} and repeat effects` : words.action}
      kind={mode === 'resume-from' || again?.repeats_effects ? 'danger' : 'primary'}
      isDisabled={mode !== 'retry-with-data' && draft.block === ''}
    >
      <p>{words.about}</p>
      {again && <RunsAgainList again={again} />}
      {mode !== 'retry-with-data' && (
        <Select
          label="Start from block"
          options={(run.outline?.blocks ?? []).map((one) => ({ value: one.id, label: one.id }))}
          {...at('block')}
        />
      )}
      {mode === 'fork' && (
        <Checkbox
          label="Dry run: steps are not sent to workers and have no external effects"
          {...at('isDryRun')}
        />
      )}
      <p>
        Data{' '}
        <span className="dim small">
          initial data of {mode === 'fork' ? 'the copy' : 'the instance'}
        </span>
      </p>
      <Editor label="Data" {...at('data')} />
    </FormDialog>
  );
}

/** The block of the root list that failed or contains the failed block; else the first one. */
function firstBlock({ outline, instance }: Run): string {
  const failed = instance.failure?.path?.split(/[[/]/)[0];
  return failed ?? outline?.blocks[0]?.id ?? '';
}
