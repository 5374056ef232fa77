/** A field for the name of a sequence, with those that there are to choose from. */

import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import { useEngine } from '../api/engine.tsx';
import { TextField } from './field.tsx';

/** More names than anybody looks through. */
const SEQUENCES_READ = 500;

export function SequenceField(props: {
  readonly value: string;
  readonly onChange: (name: string) => void;
  readonly wrong?: string | undefined;
  /** Of a filter: nothing stands for all. */
  readonly isFilter?: boolean;
}) {
  const { client } = useEngine();
  const listId = useId();
  const { data } = useQuery({
    queryKey: ['sequences.names'],
    queryFn: async ({ signal }) => client.sequences.list({ limit: SEQUENCES_READ }, { signal }),
    select: ({ items }) => [...new Set(items.map(({ name }) => name))],
  });
  const { isFilter = false, ...rest } = props;
  return (
    <>
      <TextField
        label="Sequence"
        list={listId}
        required={!isFilter}
        placeholder={isFilter ? 'All' : undefined}
        {...rest}
      />
      <datalist id={listId}>
        {data?.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}
