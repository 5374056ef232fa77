/** The receipts of external effects, and the form to resolve one in doubt. */

import type { EffectReceipt } from 'durable-workflow-engine-client';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { DialogButton } from '../../components/act.tsx';
import { ShortId } from '../../components/copy.tsx';
import { Select, TextField } from '../../components/field.tsx';
import { FormDialog, useForm } from '../../components/form.tsx';
import { ListTable, NO_MORE, useList } from '../../components/list.tsx';
import { Panel } from '../../components/page.tsx';
import { StateWord } from '../../components/state-word.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { Awaited } from './awaited.tsx';
import { pathIn, type Run } from './run.ts';

export function Effects({ run }: { readonly run: Run }) {
  const { allowed } = useEngine();
  const { id } = run.instance;
  const list = useList('instances.effects', [id, {}], { cursorName: 'effects', live: id });
  const { data } = list.query;
  if (data === undefined) return <Awaited query={list.query} />;
  if (data.items.length === 0 && list.cursor === undefined) return null;
  const columns: readonly Column<EffectReceipt>[] = [
    {
      name: 'Block',
      cell: ({ block_id }) => <Link href={run.hrefOfBlock(pathIn(run, block_id))}>{block_id}</Link>,
    },
    { name: 'Kind', cell: ({ kind }) => kind },
    { name: 'Attempt', isNumber: true, cell: ({ attempt }) => attempt + 1 },
    { name: 'State', cell: ({ state }) => <StateWord state={state} /> },
    {
      name: 'Receipt',
      cell: ({ provider_receipt_id }) =>
        provider_receipt_id === null ? '' : <code>{provider_receipt_id}</code>,
    },
    { name: 'When', cell: ({ updated_at }) => <Time at={updated_at} /> },
  ];
  const resolve: Column<EffectReceipt> = {
    name: 'Action',
    cell: (receipt) =>
      isInDoubt(receipt) && (
        <DialogButton label="Resolve…">
          <ResolveDialog receipt={receipt} />
        </DialogButton>
      ),
  };
  const canResolve = allowed.operate && data.items.some(isInDoubt);
  return (
    <Panel title="External effects" isFlush>
      <ListTable
        list={list}
        label="Receipts of effects"
        columns={canResolve ? [...columns, resolve] : columns}
        idOf={(receipt) => receipt.id}
        empty={NO_MORE}
      />
    </Panel>
  );
}

/** A running effect may still finish by itself. */
function isInDoubt({ state }: EffectReceipt): boolean {
  return state === 'unknown' || state === 'dispatched';
}

const OUTCOMES = [
  { value: 'verified', label: 'It happened' },
  { value: 'abandoned', label: 'It did not happen' },
  { value: 'compensated', label: 'It happened and was undone' },
] as const;

function ResolveDialog(props: { receipt: EffectReceipt }) {
  const { receipt } = props;
  const { client } = useEngine();
  const form = useForm(
    { state: 'verified' as (typeof OUTCOMES)[number]['value'], provider: '' },
    ({ state, provider }) =>
      client.continuity.resolveEffect(receipt.id, {
        state,
        ...(provider !== '' && { provider_receipt_id: provider }),
      }),
    { done: () => 'Receipt resolved.' },
  );
  return (
    <FormDialog form={form} title={`Resolve the effect of ${receipt.block_id}`} label="Resolve">
      <p>
        The engine does not know whether the effect <ShortId id={receipt.id} /> happened. Look it up
        in the system that received it, and record the outcome here. Until then the instance cannot
        be handed over or migrated.
      </p>
      <Select label="Outcome" options={OUTCOMES} {...form.at('state')} />
      <TextField
        label="Receipt of the provider"
        hint="The provider's id for it, if any"
        {...form.at('provider', 'provider_receipt_id')}
      />
    </FormDialog>
  );
}
