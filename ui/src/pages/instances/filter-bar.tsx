/** The filters of the list of instances: fields for common ones, chips for those that a link has set. */

import { X } from 'lucide-react';
import { useState } from 'react';
import { StateBadge } from '../../components/badge.tsx';
import { FieldRow, FilterField, Select } from '../../components/field.tsx';
import { SequenceField } from '../../components/sequence-field.tsx';
import { useFilters } from '../../lib/address.ts';
import { wordsOf } from '../../lib/format.ts';
import { instantOf, localTimeOf } from '../../lib/local-time.ts';
import { AGES, chipsOf, STATES, shownOf, statesOf, WAITS, type Wrong } from './filters.ts';
import styles from './instances.module.css';

/** The option that shows two date-time fields. */
const BETWEEN = 'between';

export function FilterBar({ wrong }: { readonly wrong: Wrong }) {
  const [filters, change] = useFilters();
  const [isBetween, setBetween] = useState(false);
  const { created_after: after, created_before: before } = filters;
  const states = statesOf(filters);
  const chips = chipsOf(filters, wrong);
  const hasBetween = isBetween || after !== undefined || before !== undefined;
  const created = filters.created ?? (hasBetween ? BETWEEN : '');
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
            </button>
          );
        })}
      </fieldset>
      <FieldRow>
        <SequenceField
          isFilter
          value={filters.sequence ?? ''}
          onChange={(sequence) => change({ sequence, version: undefined })}
        />
        {filters.sequence && (
          <FilterField
            label="Version"
            value={filters.version ?? ''}
            wrong={wrong.version}
            onChange={(version) => change({ version })}
          />
        )}
        <FilterField
          label="Failure"
          placeholder="Text of the message"
          value={filters.failure ?? ''}
          onChange={(failure) => change({ failure })}
        />
        <FilterField
          label="Metadata"
          placeholder="customer=4711"
          value={filters.metadata ?? ''}
          wrong={wrong.metadata}
          onChange={(metadata) => change({ metadata })}
        />
        <Select
          label="Waiting for"
          value={filters.waiting_for ?? ''}
          options={withChosen(WAITS, filters.waiting_for)}
          wrong={wrong.waiting_for}
          onChange={(waiting_for) => change({ waiting_for })}
        />
        <Select
          label="Created"
          value={created}
          options={withChosen([...AGES, { value: BETWEEN, label: 'Between…' }], created)}
          wrong={wrong.created}
          onChange={(next) => {
            setBetween(next === BETWEEN);
            change(
              next === BETWEEN
                ? { created: undefined }
                : { created: next, created_after: undefined, created_before: undefined },
            );
          }}
        />
        {hasBetween && (
          <>
            <FilterField
              label="Created after"
              type="datetime-local"
              value={localTimeOf(after ?? '')}
              wrong={wrong.created_after}
              onChange={(next) => change({ created_after: instantOf(next) })}
            />
            <FilterField
              label="Created before"
              type="datetime-local"
              value={localTimeOf(before ?? '')}
              wrong={wrong.created_before}
              onChange={(next) => change({ created_before: instantOf(next) })}
            />
          </>
        )}
      </FieldRow>
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

interface Option {
  readonly value: string;
  readonly label: string;
}

/** Adds an option for the value in the address if it is none of the others. */
function withChosen(options: readonly Option[], chosen = ''): readonly Option[] {
  const isKnown = options.some(({ value }) => value === chosen);
  return isKnown ? options : [...options, { value: chosen, label: chosen }];
}
