/** All keyboard shortcuts of the dashboard. */

import { useMaySee } from '../api/engine.tsx';
import { Dialog } from '../components/dialog.tsx';
import { Checkbox } from '../components/field.tsx';
import { useSingleKeys } from '../lib/keys.ts';
import { NAVIGATION } from './navigation.ts';
import styles from './shortcuts.module.css';

type Row = readonly [keys: readonly string[], does: string];

const ON_EACH_PAGE: readonly Row[] = [
  [['/'], 'Find anything, also Ctrl K'],
  [['r'], 'Refresh the page'],
  [['?'], 'Show the keyboard shortcuts'],
];

/** The palette leads back to this dialog. */
const COMBINED: readonly Row[] = [[['Ctrl', 'K'], 'Find anything, also these shortcuts']];

const IN_APPROVALS: readonly Row[] = [
  [['j', 'k'], 'Next, previous question'],
  [['1', '9'], 'Answer, by its number'],
  [['u'], 'Undo the answer'],
  [['Enter'], 'Data and flow'],
];

const IN_GRAPHS: readonly Row[] = [
  [['↓', '↑'], 'Next, previous block'],
  [['→', '←'], 'Expand, collapse a group'],
  [['Enter'], 'Select the block'],
];

export default function ShortcutDialog() {
  const maySee = useMaySee();
  const [areOn, switchTo] = useSingleKeys();
  const pages = NAVIGATION.flatMap(({ items }) => items).flatMap(
    ({ key, label, href }): readonly Row[] =>
      key !== undefined && maySee(href) ? [[['g', key], label]] : [],
  );
  return (
    <Dialog title="Keyboard shortcuts">
      <Checkbox label="Single-key shortcuts" value={areOn} onChange={switchTo} />
      {areOn ? (
        <>
          <Shortcuts title="Go to" rows={pages} />
          <Shortcuts title="On each page" rows={ON_EACH_PAGE} />
          {maySee('/approvals') && <Shortcuts title="In Approvals" rows={IN_APPROVALS} />}
        </>
      ) : (
        <Shortcuts title="On each page" rows={COMBINED} />
      )}
      <Shortcuts title="In a graph" rows={IN_GRAPHS} />
    </Dialog>
  );
}

function Shortcuts({ title, rows }: { readonly title: string; readonly rows: readonly Row[] }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl className={styles.shortcuts}>
        {rows.map(([keys, does]) => (
          <div key={does}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
