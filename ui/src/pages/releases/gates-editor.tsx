/** The gates of a release as they are typed: each may be changed, taken away, and others added. */

import { Plus, Trash2 } from 'lucide-react';
import { Button, IconButton } from '../../components/button.tsx';
import { NumberField, Select } from '../../components/field.tsx';
import { FIRST_GATE, type GateDraft, REGRESSION, SAMPLE } from './gates.ts';
import styles from './releases.module.css';

const METRICS = [
  { value: 'error_rate', label: 'Error rate' },
  { value: 'cancel_rate', label: 'Cancel rate' },
] as const;

/** What the server takes. */
const GATES_MAX = 16;

export function GatesEditor(props: {
  readonly gates: readonly GateDraft[];
  readonly onChange: (gates: readonly GateDraft[]) => void;
}) {
  const { gates, onChange } = props;
  const set = (index: number, changes: Partial<GateDraft>) =>
    onChange(gates.map((gate, at) => (at === index ? { ...gate, ...changes } : gate)));
  return (
    <fieldset className={styles.gates}>
      <legend>Gates</legend>
      <p className="dim small">
        {gates.length === 0
          ? 'Without gates nothing is rolled back by itself, and you decide when to promote.'
          : 'The canary is rolled back by itself when one fails; it can be promoted when all pass.'}
      </p>
      {gates.map((gate, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: gates have no names, and may be alike
        <div key={index} className={styles.gate}>
          <Select
            label="Rate"
            value={gate.metric}
            options={METRICS}
            onChange={(metric) => set(index, { metric })}
          />
          <NumberField
            label="May be higher by, in percentage points"
            limits={REGRESSION}
            required
            value={gate.regression}
            onChange={(regression) => set(index, { regression })}
          />
          <NumberField
            label="Ended instances needed"
            limits={SAMPLE}
            required
            value={gate.sample}
            onChange={(sample) => set(index, { sample })}
          />
          <IconButton
            label={`Remove gate ${index + 1}`}
            icon={<Trash2 size={16} aria-hidden />}
            onClick={() => onChange(gates.filter((_, at) => at !== index))}
          />
        </div>
      ))}
      {gates.length < GATES_MAX && (
        <div>
          <Button
            icon={<Plus size={15} aria-hidden />}
            onClick={() => onChange([...gates, FIRST_GATE])}
          >
            Add a gate
          </Button>
        </div>
      )}
    </fieldset>
  );
}
