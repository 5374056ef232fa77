/** The filters of the list of instances: fields for common ones, chips for those that a link has set. */

import type { InstanceCounts } from 'durable-workflow-engine-client';
import { X } from 'lucide-react';
import { useState } from 'react';
import { StateBadge } from '../../components/badge.tsx';
import { FilterField, Select } from '../../components/field.tsx';
import { SequenceField } from '../../components/sequence-field.tsx';
import { useFilters } from '../../lib/address.ts';
import { wordsOf } from '../../lib/format.ts';
import { instantOf, localTimeOf } from '../../lib/local-time.ts';
import {
  AGE_FILTERS,
  AGES,
  type AgeFilter,
  chipsOf,
  countIn,
  STATES,
  shownOf,
  statesOf,
  WAITS,
  type Wrong,
} from './filters.ts';
import styles from './instances.module.css';

/** The option that shows two date-time fields. */
const BETWEEN = 'between';

/** @param props.counts matches by state, with all other filters; undefined while they are not known */
export function FilterBar({
  wrong,
  counts,
}: {
  readonly wrong: Wrong;
  readonly counts: InstanceCounts | undefined;
}) {
  const [filters, change, at] = useFilters();
  const states = statesOf(filters);
  const chips = chipsOf(filters, wrong);
  return (
    <search className={styles.bar}>
      <fieldset className={styles.states} aria-label="States">
        {STATES.map((state) => {
          const isChosen = states.includes(state);
          const next = isChosen ? states.filter((other) => other !== state) : [...states, state];
          return (
            <button
              key={state}
              type="button"
              className={styles.state}
              aria-pressed={isChosen}
              onClick={() => change({ state: next.join(',') })}
            >
              <StateBadge state={state} />
              <span className={styles.count}>{counts && countIn(counts, counts[state])}</span>
            </button>
          );
        })}
      </fieldset>
      <div className={styles.fields}>
        <SequenceField
          isFilter
          value={filters.sequence ?? ''}
          onChange={(sequence) => change({ sequence, version: undefined })}
        />
        {filters.sequence && (
          <FilterField label="Version" wrong={wrong.version} {...at('version')} />
        )}
        <FilterField label="Failure" placeholder="Message" {...at('failure')} />
        <FilterField
          label="Metadata"
          placeholder="name=value"
          wrong={wrong.metadata}
          {...at('metadata')}
        />
        <Select
          label="Waiting for"
          options={withChosen(WAITS, filters.waiting_for)}
          wrong={wrong.waiting_for}
          {...at('waiting_for')}
        />
        <AgeField name="created" label="Created" wrong={wrong} />
        <AgeField name="changed" label="Changed" wrong={wrong} />
        <AgeField name="failed" label="Failed" wrong={wrong} />
      </div>
      {chips.length > 0 && (
        <ul className={styles.chips} aria-label="Further filters">
          {chips.map((name) => (
            <li key={name}>
              <button
                type="button"
                className={styles.chip}
                aria-label={`Remove the filter ${wordsOf(name)}: ${shownOf(name, filters[name])}`}
                onClick={() => change({ [name]: undefined })}
              >
                {wordsOf(name)}: {shownOf(name, filters[name])}
                {wrong[name] && <span className={styles.wrong}>{wrong[name]}</span>}
                <X size={13} aria-hidden />
              </button>
            </li>
          ))}
        </ul>
      )}
    </search>
  );
}

/** An age, or two date-time fields. */
function AgeField(props: {
  readonly name: AgeFilter;
  readonly label: string;
  readonly wrong: Wrong;
}) {
  const { name, label, wrong } = props;
  const [filters, change] = useFilters();
  const [isBetween, setBetween] = useState(false);
  const [after, before] = [`${AGE_FILTERS[name]}_after`, `${AGE_FILTERS[name]}_before`] as const;
  const hasBetween = isBetween || filters[after] !== undefined || filters[before] !== undefined;
  const chosen = filters[name] ?? (hasBetween ? BETWEEN : '');
  return (
    <>
      <Select
        label={label}
        value={chosen}
        options={withChosen([...AGES, { value: BETWEEN, label: 'Between…' }], chosen)}
        wrong={wrong[name]}
        onChange={(next) => {
          setBetween(next === BETWEEN);
          change(
            next === BETWEEN
              ? { [name]: undefined }
              : { [name]: next, [after]: undefined, [before]: undefined },
          );
        }}
      />
      {hasBetween &&
        ([after, before] as const).map((bound) => (
          <FilterField
            key={bound}
            label={`${label} ${bound === after ? 'after' : 'before'}`}
            type="datetime-local"
            value={localTimeOf(filters[bound] ?? '')}
            wrong={wrong[bound]}
            onChange={(next) => change({ [bound]: instantOf(next) })}
          />
        ))}
    </>
  );
}

interface Option {
  readonly value: string;
  readonly label: string;
}

/** Adds an option for the value in the address if it is none of the others. */
function withChosen(options: readonly Option[], chosen = ''): readonly Option[] {
  const isKnown = options.some(({ value }) => value === chosen);
  return isKnown ? options : [...options, { value: chosen, label: chosen }];
}
