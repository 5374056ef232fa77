/** What the list of instances is narrowed to: fields for what is asked often, chips for what a link has brought. */

import { X } from 'lucide-react';
import { StateBadge } from '../../components/badge.tsx';
import { FieldRow, FilterField, Select } from '../../components/field.tsx';
import { SequenceField } from '../../components/sequence-field.tsx';
import { useFilters } from '../../lib/address.ts';
import { wordsOf } from '../../lib/format.ts';
import { AGES, STATES, statesOf, WAITS, WITHOUT_FIELD } from './filters.ts';
import styles from './instances.module.css';

export function FilterBar() {
  const [filters, change] = useFilters();
  const states = statesOf(filters);
  const chips = WITHOUT_FIELD.filter((name) => filters[name]);
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
          onChange={(metadata) => change({ metadata })}
        />
        <Select
          label="Waits for"
          value={WAITS.find(({ value }) => value === filters.waiting_for)?.value ?? ''}
          options={WAITS}
          onChange={(waiting_for) => change({ waiting_for })}
        />
        <Select
          label="Created"
          value={filters.created ?? ''}
          options={AGES}
          onChange={(created) => change({ created })}
        />
      </FieldRow>
      {chips.length > 0 && (
        <ul className={styles.chips} aria-label="Further filters">
          {chips.map((name) => (
            <li key={name}>
              <button
                type="button"
                className={styles.chip}
                aria-label={`Remove the filter ${wordsOf(name)}: ${filters[name]}`}
                onClick={() => change({ [name]: undefined })}
              >
                {wordsOf(name)}: {filters[name]}
                <X size={13} aria-hidden />
              </button>
            </li>
          ))}
        </ul>
      )}
    </search>
  );
}
