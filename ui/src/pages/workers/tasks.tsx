/** The tasks of workers, newest first, with filters and the claims of each task. */

import type { WorkerAttempt, WorkerTask, WorkerTaskState } from 'durable-workflow-engine-client';
import { Inbox } from 'lucide-react';
import { Link } from 'wouter';
import { useRead } from '../../api/read.ts';
import { DialogButton } from '../../components/act.tsx';
import { ButtonRow } from '../../components/button.tsx';
import { CopyMenu } from '../../components/copy-menu.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { FieldRow, FilterField, Select } from '../../components/field.tsx';
import { InstanceLink } from '../../components/instance-link.tsx';
import { JsonView } from '../../components/json-view.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { StateWord } from '../../components/state-word.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { chosenIn, hrefOf, useFilters } from '../../lib/address.ts';
import type { Copied } from '../../lib/copy-as.ts';

const STATES: readonly { readonly value: WorkerTaskState | ''; readonly label: string }[] = [
  { value: '', label: 'All' },
  { value: 'pending', label: 'Waiting' },
  { value: 'claimed', label: 'Running' },
  { value: 'completed', label: 'Completed' },
  { value: 'failed', label: 'Failed' },
];

const wordOf = (state: WorkerTaskState) =>
  STATES.find(({ value }) => value === state)?.label.toLowerCase();

const COLUMNS: readonly Column<WorkerTask>[] = [
  { name: 'Handler', cell: ({ handler_name }) => handler_name },
  {
    name: 'Step',
    cell: ({ instance_id, block_id }) => (
      <>
        <code>{block_id}</code> of <InstanceLink id={instance_id} />
      </>
    ),
  },
  {
    name: 'State',
    cell: ({ state, error_message }) => (
      <>
        <StateWord state={state} word={wordOf(state)} />{' '}
        <span className="small">{error_message}</span>
      </>
    ),
  },
  { name: 'Worker', cell: ({ worker_id }) => worker_id },
  { name: 'Attempt', isNumber: true, cell: ({ attempt }) => attempt + 1 },
  { name: 'Queued', cell: ({ created_at }) => <Time at={created_at} /> },
];

export function Tasks() {
  const [{ handler, worker, queue, state }, , at] = useFilters();
  const chosen = chosenIn(STATES, state);
  const asked = {
    handler_name: handler,
    worker_id: worker,
    queue_name: queue,
    state: chosen && [chosen],
  };
  const list = useList('workers.tasks', [asked], { live: true });
  return (
    <>
      <FieldRow>
        <FilterField label="Handler" {...at('handler')} />
        <FilterField label="Queue" {...at('queue')} />
        <FilterField label="Worker" {...at('worker')} />
        <Select label="State" options={STATES} {...at('state')} />
      </FieldRow>
      <ListPanel
        title="Tasks, newest first"
        label="Tasks"
        list={list}
        columns={COLUMNS}
        idOf={({ id }) => id}
        rowActions={(task) => (
          <DialogButton label="Show">
            <TaskDialog task={task} />
          </DialogButton>
        )}
        empty={{
          title: 'No matching tasks',
          icon: Inbox,
          about: (
            <>
              Tasks of steps that need a worker are listed here.{' '}
              <Link href="/workers/tasks">Show all tasks</Link>
            </>
          ),
        }}
      />
    </>
  );
}

const CLAIM_COLUMNS: readonly Column<WorkerAttempt>[] = [
  { name: 'When', cell: ({ created_at }) => <Time at={created_at} /> },
  { name: 'Event', cell: ({ event, reason }) => [event, reason].filter(Boolean).join(': ') },
  { name: 'Claim', isNumber: true, cell: ({ claim_epoch }) => claim_epoch },
  { name: 'Worker', cell: ({ worker_id }) => worker_id },
];

/** No command shows one task; its page is the step of its instance. */
function copiedOf(task: WorkerTask): Copied {
  const { id, instance_id, block_id, handler_name, state, attempt, worker_id } = task;
  return {
    request: `/workers/tasks/${id}/attempts`,
    page: hrefOf(`/instances/${instance_id}`, { block: block_id }),
    note: {
      title: `Task of ${handler_name} · ${state}`,
      facts: [
        ['Task', id],
        ['Instance', instance_id],
        ['Step', block_id],
        ['Attempt', String(attempt + 1)],
        worker_id !== null && ['Worker', worker_id],
      ],
      reason: task.error_message ?? undefined,
    },
  };
}

function TaskDialog({ task }: { task: WorkerTask }) {
  const claims = useRead('workers.attempts', [task.id, {}], { live: task.instance_id });
  return (
    <Dialog title={`Task of ${task.handler_name}`} isWide>
      <ButtonRow>
        <CopyMenu copied={copiedOf(task)} />
      </ButtonRow>
      <h3>Params</h3>
      <JsonView label="params" value={task.params} />
      {task.output !== null && (
        <>
          <h3>Output</h3>
          <JsonView label="output" value={task.output} />
        </>
      )}
      <h3>Claims</h3>
      <Loaded query={claims} height={120}>
        {({ items }) => (
          <Table
            label="Claims"
            columns={CLAIM_COLUMNS}
            rows={items}
            idOf={({ id }) => id}
            empty={<p className="dim">No worker has claimed it yet.</p>}
          />
        )}
      </Loaded>
    </Dialog>
  );
}
