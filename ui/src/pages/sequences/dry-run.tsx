/** The flow of a definition that is being written; a dry run on the data of a past instance shows how it would run. */

import { useMutation } from '@tanstack/react-query';
import type { CreateSequence, DryRun } from 'durable-workflow-engine-client';
import { useId, useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { StateBadge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { Form, TextField } from '../../components/field.tsx';
import { InstanceLink } from '../../components/instance-link.tsx';
import { JsonView } from '../../components/json-view.tsx';
import { FlowGraph } from '../../flow/later.tsx';
import { formatRelative } from '../../lib/format.ts';
import styles from './sequences.module.css';

/** Of these one is chosen; another one by its id. */
const RECENT = 20;

/** @param props.definition a valid one; `isCurrent` unless the text has changed since */
export function TriedFlow(props: {
  readonly definition: CreateSequence;
  readonly isCurrent: boolean;
}) {
  const { definition, isCurrent } = props;
  const { client, allowed } = useEngine();
  const [selected, setSelected] = useState<string>();
  const dryRun = useMutation({
    mutationFn: ({ instance, of }: { instance: string; of: CreateSequence }) =>
      client.instances.dryRun(instance, of),
  });
  const { data, variables } = dryRun;
  const result = isCurrent && variables?.of === definition ? data : undefined;
  return (
    <div className={styles.stack}>
      {allowed.operate && (
        <div>
          <InstanceForm
            definition={definition}
            isDisabled={!isCurrent}
            isBusy={dryRun.isPending}
            onRun={(instance) => dryRun.mutate({ instance, of: definition })}
          />
          {dryRun.error && <ErrorBox error={dryRun.error} />}
          <div role="status">
            {result && variables && <Outcome result={result} instance={variables.instance} />}
          </div>
        </div>
      )}
      {result && <Output result={result} block={selected?.split('/').at(-1)} />}
      <FlowGraph
        definition={definition}
        run={result}
        label="Flow of the definition"
        selected={selected ?? null}
        onSelect={setSelected}
      />
    </div>
  );
}

function InstanceForm(props: {
  readonly definition: CreateSequence;
  readonly isDisabled: boolean;
  readonly isBusy: boolean;
  readonly onRun: (instance: string) => void;
}) {
  const { namespace, name } = props.definition;
  const listId = useId();
  const [typed, setTyped] = useState<string>();
  const { data: recent = [] } = useRead(
    'instances.list',
    [{ namespace, sequence_name: name, limit: RECENT }],
    { select: ({ items }) => items },
  );
  const instance = typed ?? recent[0]?.id ?? '';
  return (
    <Form onSubmit={() => props.onRun(instance.trim())}>
      <div className={styles.tried}>
        <TextField
          label="Data of the instance"
          list={listId}
          required
          spellCheck={false}
          placeholder="Id of an instance"
          value={instance}
          onChange={setTyped}
        />
        <datalist id={listId}>
          {recent.map(({ id, state, created_at }) => (
            <option key={id} value={id}>
              {state}, {formatRelative(new Date(created_at), Date.now())}
            </option>
          ))}
        </datalist>
        <Button submits disabled={props.isDisabled} isBusy={props.isBusy}>
          Dry run
        </Button>
      </div>
    </Form>
  );
}

function Outcome({ result, instance }: { readonly result: DryRun; readonly instance: string }) {
  const { state, failure } = result;
  return (
    <>
      <p className={`${styles.note} ${styles.outcome}`}>
        <StateBadge state={state} /> on the data of <InstanceLink id={instance} />
        <span className="dim small">No step was sent out, and nothing was stored.</span>
      </p>
      {failure && (
        <p>
          {failure.path && <code>{failure.path}</code>} {failure.message}
        </p>
      )}
    </>
  );
}

/** Of the selected block, else the data. */
function Output(props: { readonly result: DryRun; readonly block: string | undefined }) {
  const { result, block } = props;
  const [label, value] =
    block === undefined
      ? ['Data at the end', result.data]
      : [`Output of ${block}`, result.outputs[block] ?? null];
  return (
    <div className={styles.output}>
      <p className="dim small">{label}</p>
      <JsonView value={value} label={label} />
    </div>
  );
}
