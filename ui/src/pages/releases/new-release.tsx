/** The form for a new release: the sequence, both versions and the gates. */

import { useQuery } from '@tanstack/react-query';
import type { Release } from 'durable-workflow-engine-client';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useSequences } from '../../api/sequences.ts';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { FieldRow, Select, wrongOf } from '../../components/field.tsx';
import { FormBody, useForm } from '../../components/form.tsx';
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
  readonly onMade: (release: Release) => void;
}

/** `?candidate=<sequence id>` in the address preselects the versions. */
export function NewRelease({ onMade }: Props) {
  const [{ candidate }] = useFilters();
  const known = useSequences();
  const isElsewhere = known !== undefined && givenIn(releasable(known), candidate) === undefined;
  const others = useVersionsOf(isElsewhere ? candidate : undefined);
  const isThere = known !== undefined && !others.isLoading;
  const choices = releasable([...(known ?? []), ...(others.data ?? [])]);
  const given = givenIn(choices, candidate);
  return (
    <Dialog title="New release" isWide>
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
        <Draft choices={choices} given={given} onMade={onMade} />
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

/** By the user, as far as one has. */
type Chosen = { readonly baseline?: string; readonly candidate?: string };

function Draft(
  props: Props & { readonly choices: readonly Releasable[]; given: Releasable | undefined },
) {
  const { choices, given, onMade } = props;
  const { client } = useEngine();
  const [{ candidate: wanted }] = useFilters();
  const form = useForm(
    {
      key: (given ?? choices[0])?.key ?? '',
      chosen: (given && wanted !== undefined ? { candidate: wanted } : {}) as Chosen,
      gates: [FIRST_GATE] as readonly GateDraft[],
      policy: 'pin' as Policy,
    },
    ({ gates, policy }) =>
      client.releases.create({
        baseline_sequence_id: baseline,
        candidate_sequence_id: candidate,
        gates: gates.map(gateOf),
        in_flight_policy: policy,
      }),
    { done: () => 'The draft of the release was created. Nothing is routed yet.', onDone: onMade },
  );
  const { draft, set, at, error } = form;
  const { versions = [] } = choices.find(({ key }) => key === draft.key) ?? {};
  const candidate: string = draft.chosen.candidate ?? versions[0]?.id ?? '';
  const baseline: string = draft.chosen.baseline ?? baselineFor(versions, candidate)?.id ?? '';
  const options = versions.map(({ id, version, deprecated, hold }) => ({
    value: id,
    label: `Version ${version}${deprecated ? ', deprecated' : hold ? ', on hold' : ''}`,
  }));
  return (
    <FormBody form={form} label="Create draft" isDisabled={baseline === candidate}>
      <Select
        label="Sequence"
        value={draft.key}
        options={choices.map((choice) => ({ value: choice.key, label: choice.label }))}
        onChange={(key) => set({ key, chosen: {} })}
      />
      <FieldRow>
        <Select
          label="From (baseline)"
          value={baseline}
          options={options}
          onChange={(id) => set({ chosen: { candidate, baseline: id } })}
          hint="The version that new instances run now"
          wrong={wrongOf(error, 'baseline_sequence_id')}
        />
        <Select
          label="To (candidate)"
          value={candidate}
          options={options}
          onChange={(id) => set({ chosen: { ...draft.chosen, candidate: id } })}
          hint="The version that they will run"
          wrong={wrongOf(error, 'candidate_sequence_id')}
        />
      </FieldRow>
      <GatesEditor gates={draft.gates} onChange={at('gates').onChange} />
      <Select
        label="Running instances"
        options={POLICIES}
        hint="For information: a release never migrates running instances"
        {...at('policy', 'in_flight_policy')}
      />
    </FormBody>
  );
}
