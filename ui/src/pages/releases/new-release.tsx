/** The form for a new release: the sequence, both versions and the gates. */

import { useQuery } from '@tanstack/react-query';
import type { Release } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useSequences } from '../../api/sequences.ts';
import { useAction } from '../../components/action.ts';
import { Dialog, DialogActions } from '../../components/dialog.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { FieldRow, Form, Select, wrongOf } from '../../components/field.tsx';
import { Place } from '../../components/later.tsx';
import { useFilters } from '../../lib/address.ts';
import { FIRST_GATE, type GateDraft, gateOf } from './gates.ts';
import { GatesEditor } from './gates-editor.tsx';
import { baselineFor, type Releasable, releasable } from './versions.ts';

type Policy = Release['in_flight_policy'];

const POLICIES: readonly { readonly value: Policy; readonly label: string }[] = [
  { value: 'pin', label: 'Stay on their version' },
  { value: 'operator_decision', label: 'An operator decides and migrates them' },
];

interface Props {
  readonly onClose: () => void;
  readonly onMade: (release: Release) => void;
}

/** `?candidate=<sequence id>` in the address preselects the versions. */
export function NewRelease({ onClose, onMade }: Props) {
  const [{ candidate }] = useFilters();
  const known = useSequences();
  const isElsewhere = known !== undefined && givenIn(releasable(known), candidate) === undefined;
  const others = useVersionsOf(isElsewhere ? candidate : undefined);
  const isThere = known !== undefined && !others.isLoading;
  const choices = releasable([...(known ?? []), ...(others.data ?? [])]);
  const given = givenIn(choices, candidate);
  return (
    <Dialog title="New release" isWide onClose={onClose}>
      {!isThere ? (
        <Place height={360} />
      ) : others.error ? (
        <ErrorBox error={others.error} onRetry={() => void others.refetch()} />
      ) : choices.length === 0 ? (
        <p>
          A release needs two versions of a sequence, and every sequence has only one.{' '}
          <Link href="/sequences">Publish a second version</Link> first.
        </p>
      ) : candidate !== undefined && given === undefined ? (
        <p>
          A release needs two versions of a sequence, and this one has only one.{' '}
          <Link href={`/sequences/new?from=${candidate}`}>Publish a second version</Link> first.
        </p>
      ) : (
        <Draft choices={choices} given={given} onClose={onClose} onMade={onMade} />
      )}
    </Dialog>
  );
}

function givenIn(choices: readonly Releasable[], candidate: string | undefined) {
  return choices.find(({ versions }) => versions.some(({ id }) => id === candidate));
}

const VERSIONS_MAX = 500;

/** All versions of the sequence with this id, which may not be among those that are already loaded. */
function useVersionsOf(id: string | undefined) {
  const { client } = useEngine();
  return useQuery({
    queryKey: ['sequences.list', 'versions with', id],
    queryFn: async ({ signal }) => {
      const sequence = await client.sequences.get(id ?? '', { signal });
      const { namespace, name } = sequence;
      const { items } = await client.sequences.list(
        { namespace, name, include_definition: false, limit: VERSIONS_MAX },
        { signal },
      );
      return [sequence, ...items];
    },
    enabled: id !== undefined,
  });
}

function Draft(
  props: Props & { readonly choices: readonly Releasable[]; given: Releasable | undefined },
) {
  const { choices, given, onClose, onMade } = props;
  const { client } = useEngine();
  const [{ candidate: wanted }] = useFilters();
  const [key, setKey] = useState((given ?? choices[0])?.key ?? '');
  const { versions = [] } = choices.find((choice) => choice.key === key) ?? {};
  const [chosen, choose] = useState<{ baseline?: string; candidate?: string }>({
    ...(given && wanted !== undefined && { candidate: wanted }),
  });
  const candidate = chosen.candidate ?? versions[0]?.id ?? '';
  const baseline = chosen.baseline ?? baselineFor(versions, candidate)?.id ?? '';
  const [gates, setGates] = useState<readonly GateDraft[]>([FIRST_GATE]);
  const [policy, setPolicy] = useState<Policy>('pin');
  const create = useAction(
    async () =>
      client.releases.create({
        baseline_sequence_id: baseline,
        candidate_sequence_id: candidate,
        gates: gates.map(gateOf),
        in_flight_policy: policy,
      }),
    { done: () => 'The draft of the release was created. Nothing is routed yet.', onDone: onMade },
  );
  const options = versions.map(({ id, version, deprecated, hold }) => ({
    value: id,
    label: `Version ${version}${deprecated ? ', deprecated' : hold ? ', on hold' : ''}`,
  }));
  return (
    <Form onSubmit={() => create.run(undefined)}>
      <Select
        label="Sequence"
        value={key}
        options={choices.map((choice) => ({ value: choice.key, label: choice.label }))}
        onChange={(next) => {
          setKey(next);
          choose({});
        }}
      />
      <FieldRow>
        <Select
          label="From (baseline)"
          value={baseline}
          options={options}
          onChange={(id) => choose({ candidate, baseline: id })}
          hint="The version that new instances run now"
          wrong={wrongOf(create.error, 'baseline_sequence_id')}
        />
        <Select
          label="To (candidate)"
          value={candidate}
          options={options}
          onChange={(id) => choose({ ...chosen, candidate: id })}
          hint="The version that they will run"
          wrong={wrongOf(create.error, 'candidate_sequence_id')}
        />
      </FieldRow>
      <GatesEditor gates={gates} onChange={setGates} />
      <Select
        label="Running instances"
        value={policy}
        options={POLICIES}
        onChange={setPolicy}
        hint="For information: a release never migrates running instances"
      />
      {create.error !== null && <ErrorBox error={create.error} />}
      <DialogActions
        label="Create draft"
        isBusy={create.isBusy}
        isDisabled={baseline === candidate}
        onClose={onClose}
      />
    </Form>
  );
}
