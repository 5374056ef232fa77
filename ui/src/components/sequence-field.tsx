/** A field for the name of a sequence, with suggestions. */

import { useId } from 'react';
import { useSequenceNames } from '../api/sequences.ts';
import { FilterField, TextField } from './field.tsx';

export function SequenceField(props: {
  readonly value: string;
  readonly onChange: (name: string) => void;
  readonly wrong?: string | undefined;
  /** As a filter: empty means all. */
  readonly isFilter?: boolean;
}) {
  const listId = useId();
  const names = useSequenceNames() ?? [];
  const { isFilter = false, ...rest } = props;
  const Control = isFilter ? FilterField : TextField;
  return (
    <>
      <Control label="Sequence" list={listId} required={!isFilter} {...rest} />
      <datalist id={listId}>
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}
