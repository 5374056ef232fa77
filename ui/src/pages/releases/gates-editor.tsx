/** The editor for the gates of a release. */

import { Plus, Trash2 } from 'lucide-react';
import { Button, IconButton } from '../../components/button.tsx';
import { NumberField, Select } from '../../components/field.tsx';
import { boundTo } from '../../components/form.tsx';
import { FIRST_GATE, type GateDraft, REGRESSION, SAMPLE } from './gates.ts';
import styles from './releases.module.css';

const METRICS = [
  { value: 'error_rate', label: 'Error rate' },
  { value: 'cancel_rate', label: 'Cancel rate' },
] as const;

/** The server's limit. */
const GATES_MAX = 16;

export function GatesEditor(props: {
  readonly gates: readonly GateDraft[];
  readonly onChange: (gates: readonly GateDraft[]) => void;
}) {
  const { gates, onChange } = props;
  const atOf = (gate: GateDraft, index: number) =>
    boundTo(gate, (changes) => onChange(gates.with(index, { ...gate, ...changes })));
  return (
    <fieldset className={styles.gates}>
      <legend>Gates</legend>
      <p className="dim small">
        {gates.length === 0
          ? 'Without gates there is no automatic rollback, and you decide when to promote.'
          : 'The canary is rolled back automatically when a gate fails, and can be promoted when all pass.'}
      </p>
      {gates.map((gate, index) => {
        const at = atOf(gate, index);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: gates have no names, and may be alike
          <div key={index} className={styles.gate}>
            <Select label="Rate" options={METRICS} {...at('metric')} />
            <NumberField
              label="Allowed increase, in percentage points"
              limits={REGRESSION}
              required
              {...at('regression')}
            />
            <NumberField
              label="Minimum finished instances"
              limits={SAMPLE}
              required
              {...at('sample')}
            />
            <IconButton
              label={`Remove gate ${index + 1}`}
              icon={Trash2}
              onClick={() => onChange(gates.filter((_, at) => at !== index))}
            />
          </div>
        );
      })}
      {gates.length < GATES_MAX && (
        <div>
          <Button icon={Plus} onClick={() => onChange([...gates, FIRST_GATE])}>
            Add gate
          </Button>
        </div>
      )}
    </fieldset>
  );
}
